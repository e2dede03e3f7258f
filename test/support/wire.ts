import { afterAll, beforeAll, expect } from 'bun:test'
import { createServer, type Socket } from 'node:net'
import { createServer as createSecureServer } from 'node:tls'
import { systemClock, systemTimers } from '../../src/base/clock.ts'
import { makeTransport, type Exchange, type Sent, type Timeouts } from '../../src/upstream/transport.ts'
import type { Call } from '../../src/vendors/vendor.ts'
import { freePort } from './free-port.ts'

/** One request as it came over a wire. */
export type Asked = { readonly head: string; readonly path: string; readonly body: Buffer }

/** One connection that a client made. */
export type Line = {
  readonly socket: Socket
  readonly asked: Asked[]
  /** How many bytes came over it. */
  readonly received: () => number
  /** Resolves when either side closes it. */
  readonly closed: Promise<void>
}

/** A server that does with its sockets what a test wants. */
export type Wire = {
  readonly url: string
  /** In the order in which they were made. */
  readonly lines: readonly Line[]
  /** The connection with this number, counted from 0, as soon as it exists. */
  line(index: number): Promise<Line>
  stop(): Promise<void>
}

type Habits = {
  /** Gets every request once it is complete. */
  readonly reply?: (line: Line, asked: Asked, index: number) => void
  readonly connected?: (line: Line) => void
  /** Serves TLS with this identity. */
  readonly identity?: { readonly key: string; readonly cert: string }
}

export async function startWire({ reply, connected, identity }: Habits): Promise<Wire> {
  const lines: Line[] = []
  let wake: (() => void)[] = []
  const accept = (socket: Socket) => {
    let bytes: Buffer = Buffer.alloc(0)
    let total = 0
    const closed = Promise.withResolvers<void>()
    const line: Line = { socket, asked: [], received: () => total, closed: closed.promise }
    const index = lines.push(line) - 1
    socket.on('error', () => {})
    socket.on('close', () => closed.resolve())
    socket.on('data', (more: Buffer) => {
      total += more.length
      if (reply === undefined) return
      bytes = bytes.length === 0 ? more : Buffer.concat([bytes, more])
      for (let read = readAsked(bytes); read !== undefined; read = readAsked(bytes)) {
        bytes = bytes.subarray(read.end)
        line.asked.push(read.asked)
        reply(line, read.asked, index)
      }
    })
    connected?.(line)
    for (const run of wake) run()
    wake = []
  }
  const options = { noDelay: true }
  const server =
    identity === undefined ? createServer(options, accept) : createSecureServer({ ...options, ...identity }, accept)
  server.on('tlsClientError', () => {})
  // Once this server is stopped, no other may answer at its address.
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    url: identity === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`,
    lines,
    async line(index) {
      for (;;) {
        const line = lines[index]
        if (line !== undefined) return line
        await new Promise<void>((resolve) => wake.push(resolve))
      }
    },
    async stop() {
      for (const { socket } of lines) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function readAsked(bytes: Buffer): { asked: Asked; end: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const head = bytes.toString('latin1', 0, headEnd)
  const end = headEnd + 4 + Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
  if (bytes.length < end) return undefined
  return { asked: { head, path: head.split(' ')[1] ?? '', body: bytes.subarray(headEnd + 4, end) }, end }
}

/** Longer than any test takes: a test in which a deadline passes has failed. */
const patient: Timeouts = { connectMs: 20_000, firstByteMs: 20_000, idleMs: 20_000, totalMs: 60_000 }

const nobodyLeaves = new AbortController().signal

export type Asking = Partial<Call> & {
  readonly timeouts?: Partial<Timeouts>
  readonly signal?: AbortSignal
  readonly connection?: 'kept' | 'new'
}

/** A transport that is easy to call. */
export function openTransport(clock = systemClock, timers = systemTimers) {
  const transport = makeTransport(clock, timers)
  const send = (url: string, asking: Asking = {}): Promise<Sent> => {
    const { timeouts, signal = nobodyLeaves, connection = 'kept', ...call } = asking
    return transport.send({ url, headers: {}, ...call }, { ...patient, ...timeouts }, signal, connection)
  }
  return {
    send,
    /** For calls that are answered. */
    open: async (url: string, asking?: Asking): Promise<Exchange> => answered(await send(url, asking)),
    text: async (url: string, asking?: Asking): Promise<string> => textOf(answered(await send(url, asking))),
    /** For calls that fail before there is an answer: the error, and whether the vendor may have received the call. */
    async failure(url: string, asking?: Asking): Promise<string> {
      const sent = await send(url, asking)
      return sent.kind === 'failed' ? `${sent.error.kind}, ${sent.delivery}` : `answered with ${sent.exchange.status}`
    },
  }
}

function answered(sent: Sent): Exchange {
  if (sent.kind === 'failed') throw sent.error
  return sent.exchange
}

export async function textOf(exchange: Exchange): Promise<string> {
  return Buffer.from(await exchange.readAll(64 * 1024 * 1024)).toString('latin1')
}

/** In the file that calls this, no promise may be rejected without a handler, because that ends the process. */
export function noUnheardRejections(): void {
  const unheard: unknown[] = []
  const hear = (reason: unknown) => void unheard.push(reason)
  beforeAll(() => void process.on('unhandledRejection', hear))
  afterAll(async () => {
    // Unhandled rejections are reported a turn after they happen.
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', hear)
    expect(unheard).toEqual([])
  })
}
