import { connect, type Socket } from 'node:net'
import type { Listener } from '../../src/base/listen.ts'
import { silentLog } from '../../src/base/log.ts'
import { serveHttp, type ServerOptions } from '../../src/base/http/server.ts'

const listeners: Listener[] = []
const sockets: Socket[] = []

/** Opens our own server on a free port of the loopback address. */
export function listen(
  options: Pick<ServerOptions, 'answer' | 'idleSeconds'> & Partial<Pick<ServerOptions, 'log'>>,
): Listener {
  const listener = serveHttp({ hostname: '127.0.0.1', port: 0, setting: 'PORT', log: silentLog, ...options })
  listeners.push(listener)
  return listener
}

/** Ends what `listen` and `openClient` have opened: call it after all tests of a file. */
export async function closeAll(): Promise<void> {
  for (const socket of sockets.splice(0)) socket.destroy()
  await Promise.all(listeners.splice(0).map((listener) => listener.stop('at-once')))
}

export type Client = {
  readonly socket: Socket
  /** All that has come, a character for each byte. */
  readonly text: () => string
  /** Its answers, as far as they have come. */
  readonly statuses: () => number[]
  readonly isClosed: () => boolean
  readonly failure: () => Error | undefined
}

/** A client without any library. */
export function openClient(port: number, sent?: string | Uint8Array): Client {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  sockets.push(socket)
  const pieces: string[] = []
  let isClosed = false
  let failure: Error | undefined
  socket.on('error', (error) => (failure = error))
  socket.on('data', (bytes: Buffer) => pieces.push(bytes.toString('latin1')))
  // The server says that no more comes: a client closes then.
  socket.on('end', () => socket.end())
  socket.on('close', () => (isClosed = true))
  if (sent !== undefined) socket.write(sent)
  const text = () => {
    if (pieces.length > 1) pieces.splice(0, pieces.length, pieces.join(''))
    return pieces[0] ?? ''
  }
  return {
    socket,
    text,
    statuses: () => Array.from(text().matchAll(/HTTP\/1\.1 (\d{3}) /g), ([, status]) => Number(status)),
    isClosed: () => isClosed,
    failure: () => failure,
  }
}

/** Waits for a condition, and throws if it does not come true. */
export async function until(isSo: () => boolean, msMax = 20_000): Promise<void> {
  const giveUpAt = performance.now() + msMax
  while (!isSo()) {
    if (performance.now() > giveUpAt) throw new Error(`not so after ${msMax} ms: ${isSo.toString()}`)
    await Bun.sleep(2)
  }
}
