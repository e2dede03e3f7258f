import { describe, expect, test } from 'bun:test'
import type { Framing } from './body-decoder.ts'
import { MalformedMessageError } from './malformed-message-error.ts'
import { RequestBody } from './request-body.ts'

const measured = (bytes: number): Framing => ({ kind: 'length', bytes })
const bytes = (text: string) => Buffer.from(text)
const textOf = async (read: Promise<Uint8Array>) => Buffer.from(await read).toString()

/** A body and what it asks of the connection. */
function bodyOf(framing: Framing) {
  const asked: string[] = []
  const body = new RequestBody(framing, {
    pause: () => asked.push('pause'),
    resume: () => asked.push('resume'),
    wanted: () => asked.push('wanted'),
  })
  return { body, asked }
}

const gone = new Error('gone')

describe('a body that is read whole', () => {
  test('it is read after it has come', async () => {
    const { body, asked } = bodyOf(measured(5))
    expect([body.take(bytes('ab')), body.take(bytes('cdeNEXT')), body.isOver]).toEqual([2, 3, true])
    expect(await textOf(body.bytes())).toBe('abcde')
    expect(asked).toEqual([])
  })

  test('it is read while it comes, and asked for', async () => {
    const { body, asked } = bodyOf(measured(5))
    body.take(bytes('ab'))
    const read = textOf(body.bytes())
    expect([asked, body.isUsed]).toEqual([['wanted'], true])
    body.take(bytes('cde'))
    expect(await read).toBe('abcde')
  })

  test('one of chunks is joined, and without its trailers', async () => {
    const { body } = bodyOf({ kind: 'chunked' })
    const read = textOf(body.bytes())
    for (const byte of '3\r\nabc\r\n2;x\r\nde\r\n0\r\nx: y\r\n\r\n') expect(body.take(bytes(byte))).toBe(1)
    expect(await read).toBe('abcde')
  })

  test('an empty one is there at once', async () => {
    expect(await textOf(bodyOf({ kind: 'none' }).body.bytes())).toBe('')
    expect(await textOf(bodyOf(measured(0)).body.bytes())).toBe('')
  })

  test('however long it is, its client need not wait', async () => {
    const { body, asked } = bodyOf(measured(300_000))
    const read = body.bytes()
    for (let i = 0; i < 3; i++) body.take(Buffer.alloc(100_000))
    expect((await read).length).toBe(300_000)
    expect(asked).toEqual(['wanted'])
  })

  test('a client that waits goes on when it is asked for', async () => {
    const { body, asked } = bodyOf(measured(200_000))
    body.take(Buffer.alloc(100_000))
    expect(asked).toEqual(['pause'])
    const read = body.bytes()
    expect(asked).toEqual(['pause', 'wanted', 'resume'])
    body.take(Buffer.alloc(100_000))
    expect((await read).length).toBe(200_000)
  })

  test('it fails where the client left before its end, now and later', async () => {
    const { body } = bodyOf(measured(5))
    const read = body.bytes()
    body.fail(gone)
    body.fail(new Error('again'))
    expect(read).rejects.toBe(gone)
    const late = bodyOf(measured(5)).body
    late.fail(gone)
    expect(late.bytes()).rejects.toBe(gone)
  })

  test('one that has come whole does not fail any more', async () => {
    const { body } = bodyOf(measured(2))
    body.take(bytes('ab'))
    body.fail(gone)
    expect(await textOf(body.bytes())).toBe('ab')
  })

  test('it is given once', async () => {
    const { body } = bodyOf(measured(2))
    const read = textOf(body.bytes())
    expect(body.bytes()).rejects.toThrow('read before')
    body.take(bytes('ab'))
    expect(await read).toBe('ab')
  })
})

describe('a body that is read piece by piece', () => {
  test('each piece is given as it comes, and those that waited as one', async () => {
    const { body, asked } = bodyOf(measured(8))
    body.take(bytes('ab'))
    body.take(bytes('cd'))
    const reader = body.stream().getReader()
    expect(body.isUsed).toBe(false)
    expect((await reader.read()).value?.toString()).toBe('abcd')
    expect(asked).toEqual([])
    const next = reader.read()
    await Bun.sleep(0)
    expect(asked).toEqual(['wanted'])
    body.take(bytes('ef'))
    body.take(bytes('gh'))
    expect((await next).value?.toString()).toBe('ef')
    expect((await reader.read()).value?.toString()).toBe('gh')
    expect((await reader.read()).done).toBe(true)
  })

  test('the client waits while too much is unread, and goes on when it is read', async () => {
    const { body, asked } = bodyOf(measured(500_000))
    const reader = body.stream().getReader()
    body.take(Buffer.alloc(60_000))
    expect(asked).toEqual([])
    body.take(Buffer.alloc(60_000))
    body.take(Buffer.alloc(60_000)) // what was on its way
    expect(asked).toEqual(['pause'])
    expect((await reader.read()).value?.length).toBe(180_000)
    expect(asked).toEqual(['pause', 'resume'])
    body.take(Buffer.alloc(100_000))
    expect(asked).toEqual(['pause', 'resume', 'pause'])
  })

  test('its last piece does not make anybody wait', () => {
    const { body, asked } = bodyOf(measured(100_000))
    body.take(Buffer.alloc(100_000))
    expect(asked).toEqual([])
  })

  test('it fails after the pieces that have come', async () => {
    const { body } = bodyOf(measured(5))
    const reader = body.stream().getReader()
    body.take(bytes('ab'))
    body.fail(gone)
    expect((await reader.read()).value?.toString()).toBe('ab')
    expect(reader.read()).rejects.toBe(gone)
  })

  test('a reader that waits hears that the client left', async () => {
    const { body } = bodyOf(measured(5))
    const read = body.stream().getReader().read()
    await Bun.sleep(0)
    body.fail(gone)
    expect(read).rejects.toBe(gone)
  })

  test('what nobody wants any more is dropped, and its client goes on', async () => {
    const { body, asked } = bodyOf(measured(300_000))
    const stream = body.stream()
    body.take(Buffer.alloc(100_000))
    await stream.cancel()
    expect([asked, body.isUsed]).toEqual([['pause', 'resume'], true])
    body.take(Buffer.alloc(150_000))
    expect(body.take(Buffer.alloc(60_000))).toBe(50_000)
    expect([asked, body.isOver]).toEqual([['pause', 'resume'], true])
  })
})

test('chunks that are none are refused', () => {
  const { body } = bodyOf({ kind: 'chunked' })
  expect(() => body.take(bytes('x\r\n'))).toThrow(MalformedMessageError)
})
