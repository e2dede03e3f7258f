import { afterEach, describe, expect, test } from 'bun:test'
import { standingClock } from '../../test/support/movable-clock.ts'
import { answer, chunk, lastChunk, streamHead } from '../../test/support/vendor.ts'
import {
  noUnheardRejections,
  openTransport,
  startWire,
  textOf,
  type Asked,
  type Line,
  type Wire,
} from '../../test/support/wire.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import type { Exchange } from './transport.ts'

noUnheardRejections()

let wire: Wire
afterEach(() => wire.stop())

/** Answers every request after the first with the number of the connection it came over. */
async function firstReply(reply: (line: Line, asked: Asked) => void): Promise<void> {
  let isFirst = true
  wire = await startWire({
    reply(line, asked, index) {
      if (isFirst) reply(line, asked)
      else line.socket.write(answer(200, `over ${index}`))
      isFirst = false
    },
  })
}

/** Waits until the first connection is closed, and gives the connection that the next call comes over. */
async function nextAfterClose(transport: ReturnType<typeof openTransport>): Promise<string> {
  await wire.lines[0]?.closed
  return transport.text(wire.url)
}

const readToTheEnd = (exchange: Exchange) => textOf(exchange)

describe('the reuse of a connection', () => {
  // More than may wait unread, but still one read of a socket.
  const padding = 'p'.repeat(100_000)
  test.each<[how: string, written: (string | Uint8Array)[], take: (exchange: Exchange) => Promise<unknown>]>([
    ['after a whole answer', [answer(200, 'hello')], readToTheEnd],
    [
      'after an answer that came in halves',
      ['HTTP/1.1 200 OK\r\ncontent-', 'length: 5\r\n\r\nhe', 'llo'],
      readToTheEnd,
    ],
    ['after a refusal', [answer(429, '{"error":{}}')], readToTheEnd],
    ['after an answer without a body', ['HTTP/1.1 204 No Content\r\n\r\n'], readToTheEnd],
    ['after an empty answer', [answer(200, '')], readToTheEnd],
    ['after a stream that was read through its end', [streamHead, chunk('a'), chunk('b'), lastChunk], readToTheEnd],
    ['after a stream with trailers', [streamHead, chunk('a'), '0\r\nx: y\r\n\r\n'], readToTheEnd],
    ['after an answer that was never read', [answer(200, 'hello')], async (exchange) => exchange.abort()],
    ['after a large answer that was never read', [answer(200, padding)], async (exchange) => exchange.abort()],
    ['after a large answer that was read', [answer(200, padding)], readToTheEnd],
  ])('a connection is used again %s', async (_how, written, take) => {
    const transport = openTransport()
    const isWritten = Promise.withResolvers<void>()
    await firstReply(({ socket }) => {
      const [first = '', ...later] = written
      socket.write(first)
      const write = (i: number) => {
        if (i === later.length) return isWritten.resolve()
        socket.write(later[i] ?? '', () => setImmediate(write, i + 1))
      }
      setImmediate(write, 0)
    })
    const exchange = await transport.open(wire.url)
    await isWritten.promise
    // Bytes at the client's socket are read in the next turns of the loop, which calls to another server take.
    await turns()
    await take(exchange)
    await turns()
    expect(await transport.text(wire.url)).toBe('over 0')
  })

  test('a connection is used again after a finished stream whose last event was read', async () => {
    const transport = openTransport()
    const rest = Promise.withResolvers<void>()
    await firstReply(({ socket }) => {
      socket.write(streamHead)
      socket.write(chunk('data: [DONE]\n\n'))
      void rest.promise.then(() => socket.write(lastChunk))
    })
    const exchange = await transport.open(wire.url)
    expect(Buffer.from((await exchange.read()) ?? '').toString()).toBe('data: [DONE]\n\n')
    exchange.finish()
    rest.resolve()
    await turns()
    expect(await transport.text(wire.url)).toBe('over 0')
  })

  test('the connection that was used last is used again', async () => {
    const transport = openTransport()
    wire = await startWire({
      reply({ socket }, { path }, index) {
        socket.write(path === '/held' ? streamHead : answer(200, `over ${index}`))
      },
    })
    for (const order of [
      [1, 0],
      [0, 1],
    ]) {
      const held = [await transport.open(`${wire.url}/held`), await transport.open(`${wire.url}/held`)]
      for (const index of order) {
        wire.lines[index]?.socket.write(lastChunk)
        await held[index]?.readAll(0)
      }
      for (let call = 0; call < 3; call++) expect(await transport.text(wire.url)).toBe(`over ${order[1]}`)
    }
    expect(wire.lines.length).toBe(2)
  })

  test('no more connections are made than are used at once', async () => {
    const transport = openTransport()
    wire = await startWire({ reply: ({ socket }, _asked, index) => void socket.write(answer(200, `over ${index}`)) })
    for (let turn = 0; turn < 5; turn++) await Promise.all([transport.text(wire.url), transport.text(wire.url)])
    expect(wire.lines.length).toBe(2)
    expect(wire.lines.map(({ asked }) => asked.length)).toEqual([5, 5])
  })

  test('a new connection is made for each call that asks for one', async () => {
    const transport = openTransport()
    wire = await startWire({ reply: ({ socket }, _asked, index) => void socket.write(answer(200, `over ${index}`)) })
    for (let i = 0; i < 3; i++) expect(await transport.text(wire.url, { connection: 'new' })).toBe(`over ${i}`)
    expect(await transport.text(wire.url)).toBe('over 2')
  })

  test('a connection is only used for calls to its own origin', async () => {
    const transport = openTransport()
    wire = await startWire({ reply: ({ socket }, _asked, index) => void socket.write(answer(200, `over ${index}`)) })
    const other = wire.url.replace('127.0.0.1', 'localhost')
    const urls = [`${wire.url}/a?b=c`, `${wire.url}/d`, `${other}/a`, `${other}/e`, wire.url]
    const answers: string[] = []
    for (const url of urls) answers.push(await transport.text(url))
    expect(answers).toEqual(['over 0', 'over 0', 'over 1', 'over 1', 'over 0'])
    expect(wire.lines[0]?.asked.map(({ path }) => path)).toEqual(['/a?b=c', '/d', '/'])
  })
})

describe('a connection that is not used again', () => {
  test.each<[why: string, written: string]>([
    ['more came than the answer', `${answer(200, 'hello')}x`],
    ['a second answer came with the first', answer(200, 'hello') + answer(200, 'of nobody')],
    ['more came than the last chunk', `${streamHead}1\r\na\r\n${lastChunk}x`],
    ['more came than an answer without a body', 'HTTP/1.1 204 No Content\r\n\r\nx'],
    ['the vendor says that it closes', answer(200, 'hello', { connection: 'close' })],
    ['the vendor speaks HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello'],
    [
      'an answer gives both a length and chunks',
      answer(200, '1\r\na\r\n0\r\n\r\n', { 'transfer-encoding': 'chunked' }),
    ],
    ['the vendor keeps it for only a second', answer(200, 'hello', { 'keep-alive': 'timeout=1' })],
  ])('a connection is not used again when %s', async (_why, written) => {
    const transport = openTransport()
    await firstReply(({ socket }) => void socket.write(written))
    expect(['hello', 'a', '']).toContain(await transport.text(wire.url))
    expect(await nextAfterClose(transport)).toBe('over 1')
  })

  test.each<[why: string, write: (socket: Line['socket']) => void]>([
    ['cut', (socket) => socket.end(answer(200, 'hello').slice(0, -2))],
    ['cut in its chunks', (socket) => socket.end(`${streamHead}5\r\nhel`)],
    ['cut before its last chunk', (socket) => socket.end(`${streamHead}5\r\nhello\r\n`)],
    ['cut before its last byte', (socket) => socket.end(`${streamHead}0\r\n\r`)],
    ['reset', (socket) => socket.write(answer(200, 'hello').slice(0, -2), () => socket.resetAndDestroy())],
    ['garbled', (socket) => socket.write(`${streamHead}5\r\nhelloXX`)],
  ])('an answer that was %s is an error, and its connection is not used again', async (_why, write) => {
    const transport = openTransport()
    await firstReply(({ socket }) => write(socket))
    const exchange = await transport.open(wire.url)
    expect(await thrownBy(textOf(exchange))).toMatchObject({ kind: 'upstream-failed' })
    expect(await nextAfterClose(transport)).toBe('over 1')
  })

  test('a connection is not used again when its call was aborted in the middle of the answer', async () => {
    const transport = openTransport()
    await firstReply(({ socket }) => void socket.write(streamHead + chunk('a').toString()))
    const exchange = await transport.open(wire.url)
    exchange.abort()
    expect(await thrownBy(exchange.read())).toMatchObject({ kind: 'client-gone' })
    expect(await nextAfterClose(transport)).toBe('over 1')
  })

  test('a connection is not used again when more chunks follow the end of its stream', async () => {
    const transport = openTransport()
    await firstReply(({ socket }) => {
      socket.write(streamHead)
      const more = () => {
        if (socket.writable) socket.write(chunk('more'), () => setImmediate(more))
      }
      more()
    })
    const exchange = await transport.open(wire.url)
    await exchange.read()
    exchange.finish()
    expect(await nextAfterClose(transport)).toBe('over 1')
  })

  test('a connection is not used again when an unexpected byte arrives while it is idle', async () => {
    const transport = openTransport()
    await firstReply(({ socket }) => void socket.write(answer(200, 'hello')))
    await transport.text(wire.url)
    wire.lines[0]?.socket.write('x')
    expect(await nextAfterClose(transport)).toBe('over 1')
  })

  test('a connection is not used again when the answer came before the whole request was written', async () => {
    const transport = openTransport()
    wire = await startWire({
      connected({ socket }) {
        socket.once('data', () => socket.pause().write(answer(413, 'too large')))
      },
    })
    const exchange = await transport.open(wire.url, { body: new Uint8Array(8 * 1024 * 1024) })
    expect([exchange.status, await textOf(exchange)]).toEqual([413, 'too large'])
    wire.lines[0]?.socket.resume()
    await wire.lines[0]?.closed
    expect(wire.lines[0]?.received()).toBeLessThan(8 * 1024 * 1024)
    await transport.open(wire.url)
    expect(wire.lines.length).toBe(2)
  })
})

describe('a kept connection that the vendor closes', () => {
  test('a connection that was closed while idle is forgotten', async () => {
    const transport = openTransport()
    await firstReply(({ socket }) => void socket.write(answer(200, 'hello')))
    await transport.text(wire.url)
    wire.lines[0]?.socket.end()
    expect(await nextAfterClose(transport)).toBe('over 1')
  })

  test.each(['end', 'destroy', 'resetAndDestroy'] as const)(
    'a close with %s as the call goes out has the delivery closed, and a new connection works',
    async (close) => {
      const transport = openTransport()
      await firstReply(({ socket }) => void socket.write(answer(200, 'hello')))
      await transport.text(wire.url)
      wire.lines[0]?.socket[close]()
      expect(await transport.failure(wire.url)).toBe('upstream-failed, closed')
      expect(await transport.text(wire.url, { connection: 'new' })).toBe('over 1')
    },
  )

  test('a close long after the call went out has the delivery unknown', async () => {
    const clock = standingClock()
    const transport = openTransport(clock)
    wire = await startWire({
      reply({ socket, asked }) {
        if (asked.length === 1) return void socket.write(answer(200, 'hello'))
        clock.advance(5_000)
        socket.end()
      },
    })
    await transport.text(wire.url)
    expect(await transport.failure(wire.url)).toBe('upstream-failed, unknown')
    expect(wire.lines.map(({ asked }) => asked.length)).toEqual([2])
  })

  test.each<[heard: string, delivery: string]>([
    ['', 'unknown'],
    ['H', 'unknown'],
    ['HTTP/1.1 200 OK\r\n', 'unknown'],
    ['HTTP/1.1 100 Continue\r\n\r\n', 'unknown'],
    ['HTTP/1.1 102 Processing\r\n\r\nHTTP', 'unknown'],
  ])('a new connection that closes after it has said %j has the delivery %s', async (heard, delivery) => {
    const transport = openTransport()
    wire = await startWire({ reply: ({ socket }) => void socket.end(heard) })
    expect(await transport.failure(wire.url)).toBe(`upstream-failed, ${delivery}`)
  })
})

describe('how long a connection is kept', () => {
  test.each<[said: Record<string, string>, ms: number]>([
    [{}, 30_000],
    [{ 'keep-alive': 'timeout=5' }, 4_000],
    [{ 'keep-alive': 'max=100, Timeout=5' }, 4_000],
    [{ 'keep-alive': 'timeout=600' }, 30_000],
    [{ 'keep-alive': 'timeout=soon' }, 30_000],
  ])('after a response with the headers %j a connection is kept for %d ms', async (said, ms) => {
    const clock = standingClock()
    const transport = openTransport(clock)
    wire = await startWire({
      reply: ({ socket }, _asked, index) => void socket.write(answer(200, `over ${index}`, said)),
    })
    await transport.text(wire.url)
    clock.advance(ms - 1)
    expect(await transport.text(wire.url)).toBe('over 0')
    clock.advance(ms + 1)
    expect(await transport.text(wire.url)).toBe('over 1')
    await wire.lines[0]?.closed
  })
})

test('ending a call that is over does not touch the call that has its connection now', async () => {
  const transport = openTransport()
  await firstReply(({ socket }) => void socket.write(answer(200, 'hello')))
  const first = await transport.open(wire.url)
  await textOf(first)
  const second = transport.open(wire.url)
  first.abort()
  first.finish()
  expect(await thrownBy(first.read())).toMatchObject({ kind: 'client-gone' })
  expect(await textOf(await second)).toBe('over 0')
})

test('reading a large answer late does not touch the call that has its connection now', async () => {
  const transport = openTransport()
  let sent = 0
  wire = await startWire({
    reply(line, { path }) {
      if (path === '/first') line.socket.write(answer(200, 'f'.repeat(100_000)))
      else line.socket.write(answer(200, 's'.repeat(8 * 1024 * 1024)), () => sent++)
    },
  })
  const first = await transport.open(`${wire.url}/first`)
  await turns()
  const second = await transport.open(`${wire.url}/second`)
  await turns()
  expect([(await textOf(first)).length, wire.lines.length]).toEqual([100_000, 1])
  await turns()
  // The second answer is not read, so its vendor waits, even while the first one is being read.
  expect(sent).toBe(0)
  expect((await textOf(second)).length).toBe(8 * 1024 * 1024)
})

/** Enough turns of the loop for everything under way on this machine to arrive. */
async function turns(): Promise<void> {
  const other = await startWire({ reply: ({ socket }) => void socket.write(answer(200, 'x')) })
  const transport = openTransport()
  for (let i = 0; i < 10; i++) await transport.text(other.url)
  await other.stop()
}
