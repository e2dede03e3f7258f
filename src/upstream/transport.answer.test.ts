import { afterEach, describe, expect, test } from 'bun:test'
import { answer, chunk, flood, lastChunk, streamHead } from '../../test/support/vendor.ts'
import { noUnheardRejections, openTransport, startWire, textOf, type Line, type Wire } from '../../test/support/wire.ts'
import { thrownBy } from '../../test/support/thrown.ts'

noUnheardRejections()

let wire: Wire
afterEach(() => wire.stop())

type Socket = Line['socket']

async function start(write: (socket: Socket, path: string) => unknown): Promise<void> {
  wire = await startWire({ reply: ({ socket }, { path }) => void write(socket, path) })
}

/** Writes piece after piece, each when the one before has gone out and been read. */
function writeSlowly(socket: Socket, pieces: readonly Uint8Array[], i = 0): void {
  const piece = pieces[i]
  if (piece === undefined || !socket.writable) return
  socket.write(piece, () => setImmediate(() => setImmediate(() => writeSlowly(socket, pieces, i + 1))))
}

describe('an answer that arrives in pieces', () => {
  const inChunks = `HTTP/1.1 103 Early\r\nlink: x\r\n\r\n${streamHead}5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nx: y\r\n\r\n`
  const byLength = answer(200, 'hello!', { 'x-a': 'b' })

  test.each([
    ['in chunks', inChunks],
    ['by its length', byLength],
  ])('an answer framed %s is read when it arrives byte by byte', async (_how, text) => {
    await start((socket) =>
      writeSlowly(
        socket,
        Array.from(Buffer.from(text), (byte) => Buffer.of(byte)),
      ),
    )
    const transport = openTransport()
    expect(await transport.text(wire.url)).toBe('hello!')
    expect(await transport.text(wire.url)).toBe('hello!')
    expect(wire.lines.length).toBe(1)
  })

  test.each([
    ['in chunks', inChunks],
    ['by its length', byLength],
  ])('an answer framed %s is the same wherever it is cut in two', async (_how, text) => {
    await start((socket, path) => {
      const place = Number(path.slice(1))
      writeSlowly(socket, [Buffer.from(text.slice(0, place)), Buffer.from(text.slice(place))])
    })
    const transport = openTransport()
    const places = Array.from({ length: text.length - 1 }, (_, i) => i + 1)
    const answers = await Promise.all(places.map((place) => transport.text(`${wire.url}/${place}`)))
    expect(new Set(answers)).toEqual(new Set(['hello!']))
  })

  test('the status and headers of an answer can be read', async () => {
    await start((socket) => socket.write(answer(429, '{}', { 'Retry-After': '7', 'X-A': 'caf\xe9' })))
    const exchange = await openTransport().open(wire.url)
    expect([exchange.status, exchange.header('retry-after'), exchange.header('none')]).toEqual([429, '7', null])
    exchange.abort()
  })
})

describe('the head of an answer', () => {
  test('interim responses before the answer are skipped, however many there are', async () => {
    const atIt = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\nx: y\r\n\r\n'
    await start((socket) => socket.write(atIt.repeat(20_000) + answer(200, 'hello')))
    const transport = openTransport()
    expect(await transport.text(wire.url)).toBe('hello')
    expect(await transport.text(wire.url)).toBe('hello')
    expect(wire.lines.length).toBe(1)
  })

  test.each<[what: string, text: string]>([
    ['change the protocol', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n'],
    ['use another protocol', 'SSH-2.0-OpenSSH_9.6\r\n\r\n'],
    ['begin with an empty line', `\r\n${answer(200, 'hello')}`],
    ['fold its headers', 'HTTP/1.1 200 OK\r\nx: y\r\n z\r\ncontent-length: 0\r\n\r\n'],
    ['end a line with a bare LF', 'HTTP/1.1 200 OK\r\ncontent-length: 5\nx: y\r\n\r\nhello'],
    ['give two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!'],
    ['send headers without end', `HTTP/1.1 200 OK\r\n${`x: ${'y'.repeat(1_000)}\r\n`.repeat(80)}`],
    ['send a first line without end', `HTTP/1.1 200 ${'y'.repeat(80_000)}`],
  ])('a vendor may not %s', async (_what, text) => {
    await start((socket) => socket.write(text))
    expect(await openTransport().failure(wire.url)).toBe('upstream-failed, unknown')
    await wire.lines[0]?.closed
  })

  test('a head of sixty kilobytes is accepted', async () => {
    await start((socket) => socket.write(answer(200, 'hello', { 'x-a': 'y'.repeat(60_000) })))
    expect(await openTransport().text(wire.url)).toBe('hello')
  })
})

describe('an answer without a length', () => {
  test('the body is read until the vendor closes the connection', async () => {
    await start((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nhello'))
    expect(await openTransport().text(wire.url)).toBe('hello')
  })

  test('the body may be empty', async () => {
    await start((socket) => socket.end('HTTP/1.0 200 OK\r\n\r\n'))
    expect(await openTransport().text(wire.url)).toBe('')
  })

  test('a late reader gets the body to its last byte', async () => {
    const body = Buffer.alloc(3_000_000, 'abc')
    await start((socket) => socket.end(Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\n\r\n'), body])))
    const exchange = await openTransport().open(wire.url)
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(await textOf(exchange)).toBe(body.toString())
  })

  test('a reset of the connection is an upstream failure', async () => {
    await start((socket) => socket.write('HTTP/1.1 200 OK\r\n\r\nhello'))
    const exchange = await openTransport().open(wire.url)
    expect(Buffer.from((await exchange.read()) ?? '').toString()).toBe('hello')
    wire.lines[0]?.socket.resetAndDestroy()
    expect(await thrownBy(exchange.read())).toMatchObject({ kind: 'upstream-failed' })
  })
})

describe('a stream that the vendor cuts off', () => {
  test('the bytes before the cut can be read, and every later read fails', async () => {
    await start((socket) => socket.end(`${streamHead}5\r\nhello\r\n`))
    const exchange = await openTransport().open(wire.url)
    await wire.lines[0]?.closed
    expect(Buffer.from((await exchange.read()) ?? '').toString()).toBe('hello')
    expect(await thrownBy(exchange.read())).toMatchObject({ kind: 'upstream-failed' })
    expect(await thrownBy(exchange.read())).toMatchObject({ kind: 'upstream-failed' })
  })
})

describe('a vendor that sends faster than its answer is read', () => {
  const block = Buffer.alloc(64 * 1024, 'x')
  test.each<[how: string, head: string, bytes: Uint8Array]>([
    ['in chunks', streamHead, chunk(block)],
    ['without a length', 'HTTP/1.1 200 OK\r\n\r\n', block],
  ])('a vendor that answers %s is made to wait', async (_how, head, bytes) => {
    await start((socket) => {
      socket.write(head)
      void flood(socket, bytes)
    })
    const exchange = await openTransport().open(wire.url)
    for (let reads = 0; reads < 20; reads++) await exchange.read()
    // From here on nothing is read: the buffers of both sockets fill up, and then the vendor has to wait.
    const { socket } = await wire.line(0)
    const endlessBytes = 256 * 1024 * 1024
    let sent = 0
    for (let quietTurns = 0; quietTurns < 200 && socket.bytesWritten < endlessBytes; quietTurns++) {
      await new Promise((resolve) => setImmediate(resolve))
      if (socket.bytesWritten > sent) quietTurns = 0
      sent = socket.bytesWritten
    }
    expect(sent).toBeGreaterThan(20 * bytes.length)
    expect(sent).toBeLessThan(endlessBytes)
    exchange.abort()
  })

  test('an answer over the size limit fails, and the connection is closed', async () => {
    await start((socket) => {
      socket.write(streamHead)
      void flood(socket, chunk(block))
    })
    const exchange = await openTransport().open(wire.url)
    expect(await thrownBy(exchange.readAll(1_000_000))).toMatchObject({
      kind: 'upstream-failed',
      message: "The model's vendor sent more than 1000000 bytes.",
    })
    await wire.lines[0]?.closed
  })
})

test('two hundred calls at once each get their own answer', async () => {
  // They are answered in another order than they were asked in, in several ways.
  const waiting: (() => void)[] = []
  await start((socket, path) => {
    const body = `the answer to ${path}`
    waiting.push(() => {
      if (path.length % 2 === 0) socket.write(answer(200, body))
      else
        writeSlowly(socket, [
          Buffer.from(streamHead),
          chunk(body.slice(0, 7)),
          chunk(body.slice(7)),
          Buffer.from(lastChunk),
        ])
    })
    if (waiting.length === 200) for (const run of waiting.splice(0).toReversed()) run()
  })
  const transport = openTransport()
  for (let round = 0; round < 3; round++) {
    const paths = Array.from({ length: 200 }, (_, i) => `/${round}/${i}`)
    const answers = await Promise.all(paths.map((path) => transport.text(wire.url + path)))
    expect(answers).toEqual(paths.map((path) => `the answer to ${path}`))
  }
  expect(wire.lines.length).toBe(200)
})
