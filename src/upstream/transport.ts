import { GatewayError } from '../base/errors.ts'
import type { Clock } from '../base/clock.ts'
import type { Call } from '../vendors/vendor.ts'
import { Deadline } from './deadline.ts'
import { Reachability } from './reachable.ts'

/** How long each part of a call may take, in milliseconds; every one is a named limit in the configuration. */
export type Timeouts = {
  readonly connectMs: number
  readonly firstByteMs: number
  readonly idleMs: number
  readonly totalMs: number
}

/** A vendor's response as it arrives. After `abort` or an error, nothing more is read. */
export type Exchange = {
  readonly status: number
  header(name: string): string | null
  /** The next bytes, or undefined at the end. Only the wait for the vendor counts against the idle limit. */
  read(): Promise<Uint8Array | undefined>
  readAll(bytesMax: number): Promise<Uint8Array>
  /** What matters has been read: takes the little that may follow, so that the connection can be used again. */
  finish(): void
  abort(): void
}

export type Sent =
  | { readonly kind: 'response'; readonly exchange: Exchange }
  | {
      readonly kind: 'failed'
      readonly error: GatewayError
      /**
       * `unsent`: the vendor was never reached. `closed`: the connection closed before a byte of the response, often a
       * kept-alive socket that the vendor had just shut. `unknown`: the vendor may be working on it.
       */
      readonly delivery: 'unsent' | 'closed' | 'unknown'
    }

export type Transport = {
  send(call: Call, timeouts: Timeouts, signal: AbortSignal, connection: 'kept' | 'new'): Promise<Sent>
}

/** `fetch` behind an interface: the one place that talks to vendors, and the seam where an own client could come. */
export function makeTransport(clock: Clock): Transport {
  const reachability = new Reachability(clock)

  return {
    async send(call, timeouts, signal, connection) {
      const abort = new AbortController()
      const stop = (error: GatewayError) => abort.abort(error)
      const onClientGone = () => stop(new GatewayError('client-gone', 'The client hung up.'))
      if (signal.aborted) onClientGone()
      else signal.addEventListener('abort', onClientGone, { once: true })
      let connected = true
      const timedOut = () => stop(new GatewayError('upstream-timeout', "The model's vendor did not answer in time."))
      const deadline = new Deadline(clock, timedOut)
      const endsAt = clock.monotonic() + timeouts.totalMs
      const origin = originOf(call.url)
      const endWatch = reachability.watch(origin, timeouts.connectMs, () => {
        connected = false
        timedOut()
      })
      deadline.set(timeouts.firstByteMs)
      try {
        const response = await fetch(call.url, {
          method: call.method ?? 'POST',
          headers: { ...call.headers, 'accept-encoding': 'identity' },
          ...(call.body !== undefined && { body: call.body }),
          signal: abort.signal,
          redirect: 'manual',
          decompress: false,
          keepalive: connection === 'kept',
          // Bun would end a quiet connection after five minutes; the deadline above is the one that counts.
          timeout: false,
        } as RequestInit)
        reachability.contact(origin)
        signal.removeEventListener('abort', onClientGone)
        return { kind: 'response', exchange: openExchange(response, abort, deadline, { clock, endsAt, timeouts }) }
      } catch (thrown) {
        deadline.clear()
        signal.removeEventListener('abort', onClientGone)
        return failure(thrown, abort.signal, connected)
      } finally {
        endWatch()
      }
    },
  }
}

function openExchange(
  response: Response,
  abort: AbortController,
  deadline: Deadline,
  time: { clock: Clock; endsAt: number; timeouts: Timeouts },
): Exchange {
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  const wait = () => deadline.setAt(Math.min(time.clock.monotonic() + time.timeouts.idleMs, time.endsAt))

  async function read(): Promise<Uint8Array | undefined> {
    reader ??= response.body?.getReader()
    if (reader === undefined) return undefined
    wait()
    try {
      const { done, value } = await reader.read()
      if (done) deadline.clear()
      else deadline.pause()
      return done ? undefined : value
    } catch (thrown) {
      deadline.clear()
      throw failure(thrown, abort.signal).error
    }
  }

  /** A small body is read natively, a few microseconds cheaper than its pieces; it has one idle limit for the whole. */
  async function readSmall(): Promise<Uint8Array> {
    wait()
    try {
      return await response.bytes()
    } catch (thrown) {
      throw failure(thrown, abort.signal).error
    } finally {
      deadline.clear()
    }
  }

  return {
    status: response.status,
    header: (name) => response.headers.get(name),
    read,
    async readAll(bytesMax) {
      const declared = Number(response.headers.get('content-length') ?? Number.NaN)
      if (declared <= Math.min(bytesMax, smallBytesMax)) return readSmall()
      const chunks: Uint8Array[] = []
      let length = 0
      for (;;) {
        const chunk = await read()
        if (chunk === undefined) break
        length += chunk.length
        if (length > bytesMax) {
          this.abort()
          throw new GatewayError('upstream-failed', `The model's vendor sent more than ${bytesMax} bytes.`)
        }
        chunks.push(chunk)
      }
      const [first] = chunks
      return chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks)
    },
    finish() {
      void drain(read, () => this.abort())
    },
    abort() {
      deadline.clear()
      abort.abort(new GatewayError('client-gone', 'The call was ended.'))
      // After an abort both reject; an unhandled rejection would end the process.
      reader?.cancel().catch(() => {})
    },
  }
}

// Of declared length: how much comes of any other answer is known only by counting its pieces.
const smallBytesMax = 64 * 1024
const remainderReadsMax = 4

async function drain(read: () => Promise<Uint8Array | undefined>, abort: () => void): Promise<void> {
  try {
    for (let i = 0; i < remainderReadsMax; i++) if ((await read()) === undefined) return
    abort()
  } catch {
    // Nothing that was needed is lost: the connection is merely not used again.
  }
}

/** The address up to its path. Adapters build whole URLs from checked base addresses, so no parse is needed. */
function originOf(url: string): string {
  const path = url.indexOf('/', 'https://'.length)
  return path === -1 ? url : url.slice(0, path)
}

const closedCodes: ReadonlySet<string> = new Set(['ECONNRESET', 'ConnectionClosed', 'EPIPE'])
const unsentCodes: ReadonlySet<string> = new Set([
  'ConnectionRefused',
  'ECONNREFUSED',
  'FailedToOpenSocket',
  'ENOTFOUND',
])

function failure(thrown: unknown, signal: AbortSignal, connected = true): Sent & { kind: 'failed' } {
  if (signal.aborted && signal.reason instanceof GatewayError) {
    return { kind: 'failed', error: signal.reason, delivery: connected ? 'unknown' : 'unsent' }
  }
  const code = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : ''
  return {
    kind: 'failed',
    error: new GatewayError('upstream-failed', "The connection to the model's vendor failed.", { cause: thrown }),
    delivery: closedCodes.has(code) ? 'closed' : unsentCodes.has(code) ? 'unsent' : 'unknown',
  }
}
