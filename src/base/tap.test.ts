import { afterAll, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { streamOf } from './http/pushed-body.ts'
import { Reply } from './http/reply.ts'
import { serveHttp } from './http/server.ts'
import { silentLog } from './log.ts'
import { Tap } from './tap.ts'

/** A tap, and what it tells its watcher. */
function tapped(signal: AbortSignal = new AbortController().signal) {
  const told: string[] = []
  const watcher = { wanted: () => void told.push('wanted'), gone: () => void told.push('gone') }
  return { tap: new Tap(watcher, signal), told }
}

const taps: Tap[] = []
const server = serveHttp({
  hostname: '127.0.0.1',
  port: 0,
  setting: 'PORT',
  log: silentLog,
  answer(_request, connection) {
    connection.follow()
    return new Reply(200, {}, taps.shift() ?? new Uint8Array())
  },
})
afterAll(() => server.stop('at-once'))

/** A client on its own socket that is sent a tapped body, and reads it only if `isReading`, or once it is resumed. */
async function visit({ signal, isReading = true }: { signal?: AbortSignal; isReading?: boolean } = {}) {
  const { tap, told } = tapped(signal)
  taps.push(tap)
  const socket: Socket = connect(server.port, '127.0.0.1')
  let read = ''
  socket.on('data', (bytes) => (read += bytes.toString('latin1')))
  socket.on('error', () => {}) // a close follows
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  if (!isReading) socket.pause()
  socket.write('GET / HTTP/1.1\r\nhost: here\r\n\r\n')
  await until(() => told.length > 0)
  return { tap, told, socket, closed, read: () => bodyOf(read) }
}

/** What came after the response head, as it was on the wire. */
function bodyOf(read: string): string {
  const headEnd = read.indexOf('\r\n\r\n')
  return headEnd === -1 ? '' : read.slice(headEnd + 4)
}

async function until(isTrue: () => boolean): Promise<void> {
  for (let tries = 0; tries < 500 && !isTrue(); tries++) await Bun.sleep(10)
}

const bytes = (text: string) => new TextEncoder().encode(text)
const lastChunk = '0\r\n\r\n'

test('bytes are sent as soon as they are put, and the body ends with a last chunk', async () => {
  const abort = new AbortController()
  const { tap, told, read } = await visit({ signal: abort.signal })
  expect(tap.put(bytes('one'))).toBe(true)
  await until(() => read().endsWith('3\r\none\r\n'))
  expect(tap.put(bytes('three'))).toBe(true)
  tap.end()
  await until(() => read().endsWith(lastChunk))
  expect(read()).toBe(`3\r\none\r\n5\r\nthree\r\n${lastChunk}`)
  abort.abort()
  expect(told).toEqual(['wanted'])
})

test('the watcher is asked for bytes only once the body is read', async () => {
  const { tap, told } = tapped()
  await Bun.sleep(10)
  expect(told).toEqual([])
  const text = new Response(streamOf(tap)).text()
  expect(told).toEqual(['wanted'])
  tap.put(bytes('now'))
  tap.end()
  expect(await text).toBe('now')
})

test('a body that fails is cut off without a last chunk, and no client is reported gone', async () => {
  const abort = new AbortController()
  const { tap, told, read, closed } = await visit({ signal: abort.signal })
  tap.put(bytes('half'))
  tap.fail()
  await closed
  abort.abort()
  expect(read()).toBe('4\r\nhalf\r\n')
  expect(told).toEqual(['wanted'])
})

test('a body that fails before it is read is cut off', async () => {
  const { tap, told } = tapped()
  tap.fail()
  const outcome = await new Response(streamOf(tap)).text().then(
    () => 'whole',
    () => 'cut',
  )
  expect(outcome).toBe('cut')
  expect(told).toEqual([])
})

test('bytes that are put after the end of the body are dropped', async () => {
  const { tap, told, read } = await visit()
  tap.put(bytes('one'))
  tap.end()
  expect(tap.put(bytes('late'))).toBe(false)
  tap.end()
  tap.fail()
  await until(() => read().endsWith(lastChunk))
  expect(read()).toBe(`3\r\none\r\n${lastChunk}`)
  expect(told).toEqual(['wanted'])
})

test('a body that is over is not asked for more when its reader has room again', () => {
  const { tap, told } = tapped()
  tap.begin({ write: () => false, end() {}, cut() {} })
  tap.put(bytes('more than there is room for'))
  tap.end()
  tap.drained()
  expect(told).toEqual(['wanted'])
})

test('cancelling the body before the first read reports the client gone', async () => {
  const { tap, told } = tapped()
  await streamOf(tap).cancel()
  expect(told).toEqual(['wanted', 'gone'])
})

test('an abort before the first read reports the client gone once and empties the body', async () => {
  const abort = new AbortController()
  const { tap, told } = tapped(abort.signal)
  abort.abort()
  expect(told).toEqual(['gone'])
  expect(await new Response(streamOf(tap)).text()).toBe('')
  expect(told).toEqual(['gone'])
})

test('a signal aborted beforehand reports the client gone once and empties the body', async () => {
  const { tap, told } = tapped(AbortSignal.abort())
  expect(told).toEqual(['gone'])
  expect(await new Response(streamOf(tap)).text()).toBe('')
  expect(told).toEqual(['gone'])
})

test('a client that disconnects in the middle is reported gone and takes no more bytes', async () => {
  const { tap, told, read, socket } = await visit()
  tap.put(bytes('one'))
  await until(() => read().length > 0)
  socket.destroy()
  await until(() => told.includes('gone'))
  expect(tap.put(bytes('two'))).toBe(false)
  tap.end()
  expect(told).toEqual(['wanted', 'gone'])
})

test('an abort in the middle ends the body and reports the client gone once, even if it disconnects then', async () => {
  const abort = new AbortController()
  const { tap, told, read, socket } = await visit({ signal: abort.signal })
  tap.put(bytes('one'))
  abort.abort()
  await until(() => read().endsWith(lastChunk))
  expect(read()).toBe(`3\r\none\r\n${lastChunk}`)
  socket.destroy()
  await Bun.sleep(50)
  expect(told).toEqual(['wanted', 'gone'])
})

/** Puts bytes until the client is behind, which is after far more than the system buffers, and gives their number. */
function fill(tap: Tap): number {
  const piece = new Uint8Array(64 * 1024).fill(120)
  for (let put = piece.length; put <= 64 * 1024 * 1024; put += piece.length) if (!tap.put(piece)) return put
  throw new Error('a reader that does not read was never behind')
}

/** Fills again for as long as more is wanted: a busy system takes its time to move bytes to the reader's side. */
async function fillForGood(tap: Tap, told: readonly string[]): Promise<number> {
  let put = 0
  for (let wanted = 0; wanted < told.length; await Bun.sleep(50)) {
    wanted = told.length
    put += fill(tap)
  }
  return put
}

test('a reader that falls behind is waited for and loses no bytes', async () => {
  const { tap, told, read, socket } = await visit({ isReading: false })
  const put = await fillForGood(tap, told)
  const before = [...told]
  socket.resume()
  await until(() => told.length > before.length)
  expect(told).toEqual([...before, 'wanted'])
  expect(tap.put(bytes('last'))).toBe(true)
  tap.end()
  await until(() => read().endsWith(lastChunk))
  expect(read().match(/x/g)?.length).toBe(put)
  expect(read()).toEndWith(`4\r\nlast\r\n${lastChunk}`)
})

test('a reader that falls behind gets the rest of a body that has ended', async () => {
  const { tap, read, socket } = await visit({ isReading: false })
  const put = fill(tap)
  expect(tap.put(bytes('last'))).toBe(false)
  tap.end()
  await Bun.sleep(50)
  socket.resume()
  await until(() => read().endsWith(lastChunk))
  expect(read().match(/x/g)?.length).toBe(put)
  expect(read()).toEndWith(`4\r\nlast\r\n${lastChunk}`)
})

test('a reader that falls behind and disconnects is reported gone once', async () => {
  const { tap, told, socket } = await visit({ isReading: false })
  await fillForGood(tap, told)
  const before = [...told]
  socket.destroy()
  await until(() => told.includes('gone'))
  await Bun.sleep(50)
  expect(told).toEqual([...before, 'gone'])
})
