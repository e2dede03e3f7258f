import { afterEach, describe, expect, test } from 'bun:test'
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net'
import { systemClock } from './clock.ts'
import { makeSocketTable } from './socket-table.ts'

let server: Server | undefined
const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
  server?.close()
})

/** Two ends of a connection: one that writes, and one that starts paused and reads only once it is resumed. */
async function connected(listening: string, dialled: string) {
  const made = createServer()
  server = made
  const writer = new Promise<Socket>((resolve) => made.on('connection', resolve))
  await new Promise<void>((resolve) => made.listen(0, listening, resolve))
  const { port: localPort } = made.address() as AddressInfo
  const reader = connect(localPort, dialled)
  reader.pause()
  const end = await writer
  sockets.push(reader, end)
  const line = { localPort, address: end.remoteAddress ?? '', port: end.remotePort ?? 0 }
  return { writer: end, reader, line }
}

/** Writes until the system takes no more. */
async function fill(writer: Socket): Promise<void> {
  const piece = new Uint8Array(256 * 1024)
  while (writer.write(piece));
  for (let before = -1; before !== writer.writableLength; await Bun.sleep(50)) before = writer.writableLength
}

/**
 * The count once it has stood still for a while, or undefined if it never does. On a busy machine the system goes on
 * moving bytes from the writer's buffer to the reader's for some time after the last write.
 */
async function settledCount(count: () => Promise<number | undefined>): Promise<number | undefined> {
  let before = await count()
  for (let tries = 0; tries < 50; tries++) {
    await Bun.sleep(100)
    const now = await count()
    if (now === before) return now
    before = now
  }
  return undefined
}

describe.skipIf(process.platform !== 'linux')('the bytes that a reader has not taken', () => {
  test.each([
    ['IPv4', '127.0.0.1', '127.0.0.1'],
    ['IPv6', '::1', '::1'],
    ['IPv4 on a dual-stack port', '::', '127.0.0.1'],
  ])('%s: the count is what the system holds, and falls as the reader reads', async (_name, listening, dialled) => {
    const { writer, reader, line } = await connected(listening, dialled)
    const table = makeSocketTable(systemClock)
    expect(await table.unreadBytes(line, 0)).toBe(0)
    await fill(writer)
    expect(await settledCount(() => table.unreadBytes(line, 0))).toBeGreaterThan(100_000)
    reader.resume()
    for (let tries = 0; tries < 500 && (await table.unreadBytes(line, 0)) !== 0; tries++) await Bun.sleep(10)
    expect(await table.unreadBytes(line, 0)).toBe(0)
  })

  test('the count of an unknown connection or an invalid address is undefined', async () => {
    const { line } = await connected('127.0.0.1', '127.0.0.1')
    const table = makeSocketTable(systemClock)
    expect(await table.unreadBytes({ ...line, port: 1 }, 0)).toBeUndefined()
    expect(await table.unreadBytes({ ...line, address: '127.0.0.2' }, 0)).toBeUndefined()
    expect(await table.unreadBytes({ ...line, address: '' }, 0)).toBeUndefined()
  })

  test('a count that is recent enough for the caller is reused', async () => {
    const { writer, line } = await connected('127.0.0.1', '127.0.0.1')
    let now = 0
    const table = makeSocketTable({ monotonic: () => now })
    expect(await table.unreadBytes(line, 10)).toBe(0)
    await fill(writer)
    now = 10
    expect(await table.unreadBytes(line, 10)).toBe(0)
    now = 11
    expect(await table.unreadBytes(line, 10)).toBeGreaterThan(0)
  })
})
