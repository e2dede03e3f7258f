import { describe, expect, test } from 'bun:test'
import { Tap } from './tap.ts'

type Step = 'bytes' | 'end' | 'fail'

/** A body that follows a script, a step each time that more is wanted, and notes what it is told. */
function scripted(steps: readonly Step[], signal: AbortSignal = new AbortController().signal) {
  const told: string[] = []
  const left = [...steps]
  const tap: Tap = new Tap(
    {
      wanted() {
        told.push('wanted')
        const step = left.shift()
        if (step === 'bytes') tap.put(Uint8Array.of(1))
        if (step === 'end') tap.end()
        if (step === 'fail') tap.fail()
      },
      gone() {
        told.push('gone')
      },
    },
    signal,
  )
  return { tap, told, body: tap.body }
}

const count = (told: readonly string[], what: string) => told.filter((word) => word === what).length

describe('the end is told exactly once', () => {
  test('read to the end: never gone', async () => {
    const abort = new AbortController()
    const { body, told } = scripted(['bytes', 'bytes', 'end'], abort.signal)
    expect((await new Response(body).bytes()).length).toBe(2)
    abort.abort()
    expect(told).toEqual(['wanted', 'wanted', 'wanted'])
  })

  test('left before the first read', async () => {
    const { body, told } = scripted(['bytes'])
    await body.cancel()
    expect(told).toEqual(['gone'])
  })

  test('aborted before the first read', async () => {
    const abort = new AbortController()
    const { body, told } = scripted(['bytes'], abort.signal)
    abort.abort()
    expect(told).toEqual(['gone'])
    expect(await new Response(body).text()).toBe('')
  })

  test('aborted before it was made', async () => {
    const { body, told } = scripted(['bytes'], AbortSignal.abort())
    expect(told).toEqual(['gone'])
    expect(await new Response(body).text()).toBe('')
    expect(told).toEqual(['gone'])
  })

  test('left in the middle', async () => {
    const { body, told } = scripted(['bytes', 'bytes'])
    const reader = body.getReader()
    await reader.read()
    await reader.cancel()
    expect(told).toEqual(['wanted', 'gone'])
  })

  test('aborted and left', async () => {
    const abort = new AbortController()
    const { body, told } = scripted(['bytes', 'bytes'], abort.signal)
    const reader = body.getReader()
    await reader.read()
    abort.abort()
    await reader.cancel()
    expect(count(told, 'gone')).toBe(1)
  })

  test('aborted while somebody reads: what comes then goes nowhere', async () => {
    const abort = new AbortController()
    const { tap, body, told } = scripted([], abort.signal)
    const reader = body.getReader()
    const read = reader.read()
    await Bun.sleep(0)
    abort.abort()
    expect(tap.put(Uint8Array.of(1))).toBe(false)
    tap.end()
    tap.fail()
    await reader.cancel()
    expect((await read).done).toBe(true)
    expect(told).toEqual(['wanted', 'gone'])
  })

  test('one that breaks is an error to the reader, and nobody is gone', async () => {
    const abort = new AbortController()
    const { body, told } = scripted(['bytes', 'fail'], abort.signal)
    const reader = body.getReader()
    await reader.read()
    const outcome = await reader.read().then(
      () => 'read',
      () => 'error',
    )
    abort.abort()
    expect(outcome).toBe('error')
    expect(told).toEqual(['wanted', 'wanted'])
  })
})

test('nothing is wanted that nobody asked for', async () => {
  const { body, told } = scripted(['bytes', 'bytes', 'bytes', 'end'])
  const reader = body.getReader()
  await Bun.sleep(0)
  expect(told).toEqual([])
  await reader.read()
  await Bun.sleep(0)
  expect(told).toEqual(['wanted'])
})

test('what is put before it is wanted is kept, and whoever puts it is told to wait', async () => {
  const { tap, body, told } = scripted([])
  const reader = body.getReader()
  const first = reader.read()
  await Bun.sleep(0)
  expect([tap.put(Uint8Array.of(1)), tap.put(Uint8Array.of(2)), tap.put(Uint8Array.of(3))]).toEqual([
    true,
    false,
    false,
  ])
  expect((await first).value).toEqual(Uint8Array.of(1))
  expect((await reader.read()).value).toEqual(Uint8Array.of(2))
  expect((await reader.read()).value).toEqual(Uint8Array.of(3))
  expect(told).toEqual(['wanted']) // for the first of them
  const last = reader.read()
  await Bun.sleep(0)
  expect(told).toEqual(['wanted', 'wanted'])
  expect(tap.put(Uint8Array.of(4))).toBe(true)
  expect((await last).value).toEqual(Uint8Array.of(4))
})
