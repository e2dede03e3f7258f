import { joined } from '../base/bytes.ts'
import { GatewayError } from '../base/errors.ts'
import { systemTimers, type Clock } from '../base/clock.ts'
import { IntrusiveSet } from '../base/intrusive-set.ts'
import { Deadlines, type Deadline } from '../base/deadlines.ts'
import { Gathering } from '../base/gathering.ts'
import { type ClientSignal } from '../base/http/client-signal.ts'
import type { Outlet, Source } from '../base/pour.ts'
import type { Call } from '../vendors/vendor.ts'
import { ConnectionClosedError, type Connection } from './http/connection.ts'
import { Incoming, type Asker } from './http/incoming.ts'
import { Pool } from './http/pool.ts'
import { writeRequest } from './http/request.ts'
import type { ResponseHead } from './http/response-head.ts'
import { targetOf, type Target } from './http/target.ts'

/** A vendor sent more than may be read. */
export class TooLong extends GatewayError {
  constructor(bytesMax: number) {
    super('upstream-failed', `The model's vendor sent more than ${bytesMax} bytes.`)
  }
}

/** How long each part of a call may take, in milliseconds; every one is a named limit in the configuration. */
export type Timeouts = {
  readonly connectMs: number
  readonly firstByteMs: number
  readonly idleMs: number
  readonly totalMs: number
}

/**
 * A vendor's response as it arrives: poured, read piece by piece, or whole. Only the wait for the vendor counts against
 * the idle limit. After `abort` or an error, nothing more comes.
 */
export type Exchange = Source & {
  readonly status: number
  header(name: string): string | null
  /** All bytes that have come, or the next that come; undefined at the end. */
  read(): Promise<Uint8Array | undefined>
  /** The same as `read` would give, which is still to be read afterwards. */
  peek(): Promise<Uint8Array | undefined>
  /** Rejects with `TooLong` where there is more. */
  readAll(bytesMax: number): Promise<Uint8Array>
  /** Call when all that matters was read: takes the little that may follow, so that the connection can be reused. */
  finish(): void
  /** From now on a client that leaves does not end the call. */
  outliveClient(): void
  abort(): void
}

export type Sent =
  | { readonly kind: 'response'; readonly exchange: Exchange }
  | {
      readonly kind: 'failed'
      readonly error: GatewayError
      /**
       * `unsent`: the vendor was never reached. `closed`: a kept connection closed as the call went out, before a byte
       * of the response, most likely because the vendor had just shut it. `unknown`: the vendor may be working on the
       * call.
       */
      readonly delivery: 'unsent' | 'closed' | 'unknown'
    }

export type Transport = {
  /** `signal` is the client's: it ends the call until the response is over, or `outliveClient` was called. */
  send(call: Call, timeouts: Timeouts, signal: ClientSignal, connection: 'kept' | 'new'): Promise<Sent>
}

export type StoppableTransport = Transport & {
  /** Ends every call that is under way, and sends no other. Those who wait for a call, or read one, get the reason. */
  stop(reason: GatewayError): void
}

type Shared = {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly pool: Pool
  readonly deadlines: Deadlines
  readonly underway: IntrusiveSet<VendorCall>
  readonly answers: Gathering
}

/** The one place that talks to vendors: HTTP/1.1 over sockets of our own, which docs/decisions/0002 explains. */
export function makeTransport(clock: Clock, timers = systemTimers): StoppableTransport {
  const pool = new Pool(clock, timers)
  const underway = new IntrusiveSet<VendorCall>()
  const shared = { clock, pool, deadlines: new Deadlines(clock, timers), underway, answers: new Gathering() }
  let stopped: GatewayError | undefined
  return {
    send(call, timeouts, signal, connection) {
      if (stopped !== undefined) return Promise.resolve({ kind: 'failed', error: stopped, delivery: 'unsent' })
      return new VendorCall(shared, timeouts, signal).send(call, connection)
    },
    stop(reason) {
      stopped = reason
      for (const call of underway) call.stop(reason)
    },
  }
}

const remainderPiecesMax = 4

// By then a close that crossed our request has arrived from anywhere on earth. A vendor that closes later has had the
// request, and may have been at work on it.
const goodbyeMsMax = 2_000

/** One call, from the connect to the last byte of its response. */
class VendorCall implements Exchange, Asker {
  readonly #shared: Shared
  readonly #timeouts: Timeouts
  readonly #signal: ClientSignal
  readonly #deadline: Deadline
  readonly #clientGone = () => this.stop(new GatewayError('client-gone', 'The client hung up.'))
  #stopped: GatewayError | undefined
  #giveUpConnecting: ((reason: GatewayError) => void) | undefined
  #isKept = false
  /** When the call was made, and later when its connection was there. */
  #askedAt: number
  #incoming: Incoming | undefined
  #head: ResponseHead | undefined
  /** Told only the end by this call: the bytes come from the response itself. */
  #outlet: Outlet | undefined
  #tell: ((sent: Sent) => void) | undefined
  /** Its place among the calls under way. */
  place = -1

  constructor(shared: Shared, timeouts: Timeouts, signal: ClientSignal) {
    this.#shared = shared
    this.#timeouts = timeouts
    this.#signal = signal
    this.#askedAt = shared.clock.monotonic()
    this.#deadline = shared.deadlines.open(
      () => this.stop(new GatewayError('upstream-timeout', "The model's vendor did not answer in time.")),
      timeouts.totalMs,
      this.#askedAt,
    )
  }

  send(call: Call, connection: 'kept' | 'new'): Promise<Sent> {
    return new Promise((resolve) => {
      this.#tell = resolve
      this.#shared.underway.add(this)
      if (this.#signal.aborted) this.#clientGone()
      else this.#signal.addEventListener('abort', this.#clientGone)
      try {
        const target = targetOf(call.url)
        this.#reach(target, writeRequest(call, target), connection)
      } catch (thrown) {
        this.#failed(thrown)
      }
    })
  }

  begin(head: ResponseHead): void {
    this.#head = head
    this.#deadline.pause()
    this.#shared.answers.join(() => this.#tell?.({ kind: 'response', exchange: this }))
  }

  unanswered(failure: Error): void {
    this.#failed(failure)
  }

  get status(): number {
    return this.#head?.status ?? 0
  }

  header(name: string): string | null {
    return this.#head?.headers.get(name) ?? null
  }

  pour(outlet: Outlet): void {
    if (this.#stopped !== undefined) return outlet.end(this.#stopped)
    const incoming = this.#incoming
    if (incoming === undefined) throw new GatewayError('bug', 'a response is poured before it is asked for')
    this.#outlet = outlet
    this.#deadline.follow(incoming, this.#timeouts.idleMs)
    incoming.pour(outlet)
  }

  pause(): void {
    this.#deadline.pause()
    this.#incoming?.pause()
  }

  end(failure: Error | undefined): void {
    this.#over()
    this.#outlet?.end(failure === undefined ? this.#stopped : this.#asError(failure))
  }

  read(): Promise<Uint8Array | undefined> {
    return new Promise((resolve, reject) => {
      this.pour({
        take: (bytes) => {
          this.pause()
          resolve(bytes)
        },
        end: (failure) => (failure === undefined ? resolve(undefined) : reject(failure)),
      })
    })
  }

  async peek(): Promise<Uint8Array | undefined> {
    const first = await this.read()
    if (first !== undefined) this.#incoming?.putBack(first)
    return first
  }

  readAll(bytesMax: number): Promise<Uint8Array> {
    const chunks: Uint8Array[] = []
    let length = 0
    return new Promise((resolve, reject) => {
      this.pour({
        take: (chunk) => {
          length += chunk.length
          chunks.push(chunk)
          if (length <= bytesMax) return
          reject(new TooLong(bytesMax))
          this.abort()
        },
        end: (failure) => (failure === undefined ? resolve(joined(chunks)) : reject(failure)),
      })
    })
  }

  finish(): void {
    let pieces = 0
    this.pour({
      take: () => {
        if (++pieces === remainderPiecesMax) this.abort()
      },
      end() {}, // nothing that was needed is lost: after a failure the connection is merely not used again
    })
  }

  outliveClient(): void {
    this.#signal.removeEventListener('abort', this.#clientGone)
  }

  abort(): void {
    this.stop(new GatewayError('client-gone', 'The call was ended.'))
  }

  stop(reason: GatewayError): void {
    this.#stopped ??= reason
    this.#over()
    const giveUp = this.#giveUpConnecting
    this.#giveUpConnecting = undefined // once: a connection that is given up twice would be in the pool twice
    giveUp?.(reason)
    this.#incoming?.abort(reason)
  }

  #reach(target: Target, pieces: readonly Uint8Array[], connection: 'kept' | 'new'): void {
    if (this.#stopped !== undefined) throw this.#stopped
    const kept = connection === 'kept' ? this.#shared.pool.take(target, this.#askedAt) : undefined
    this.#isKept = kept !== undefined
    if (kept !== undefined) this.#ask(kept, pieces)
    else this.#connect(target, pieces)
  }

  #ask(open: Connection, pieces: readonly Uint8Array[]): void {
    this.#deadline.set(this.#timeouts.firstByteMs, this.#askedAt)
    this.#incoming = new Incoming(open, this)
    open.ask(pieces, this.#incoming)
  }

  /** A connection that comes too late for this call is kept for the next. */
  #connect(target: Target, pieces: readonly Uint8Array[]): void {
    this.#deadline.set(this.#timeouts.connectMs)
    const connecting = this.#shared.pool.connect(target)
    this.#giveUpConnecting = (reason) => {
      connecting.giveUp()
      this.#failed(reason)
    }
    const connected = (open: Connection) => {
      this.#giveUpConnecting = undefined
      // If the call was given up in the meantime, the pool has the connection already.
      if (this.#stopped !== undefined) return
      this.#askedAt = this.#shared.clock.monotonic()
      this.#ask(open, pieces)
    }
    connecting.connection.then(connected).catch(this.#failed)
  }

  #over(): void {
    this.#shared.underway.remove(this)
    this.#deadline.clear()
    this.outliveClient()
  }

  readonly #failed = (thrown: unknown): void => {
    this.#over()
    this.#tell?.({ kind: 'failed', error: this.#asError(thrown), delivery: this.#deliveryAt(thrown) })
  }

  #asError(thrown: unknown): GatewayError {
    if (this.#stopped !== undefined) return this.#stopped
    return new GatewayError('upstream-failed', "The connection to the model's vendor failed.", { cause: thrown })
  }

  #deliveryAt(thrown: unknown): 'unsent' | 'closed' | 'unknown' {
    if (this.#incoming === undefined) return 'unsent'
    const isSoon = this.#shared.clock.monotonic() - this.#askedAt < goodbyeMsMax
    const isShut = this.#isKept && isSoon && thrown instanceof ConnectionClosedError && thrown.isSilent
    return isShut && this.#stopped === undefined ? 'closed' : 'unknown'
  }
}
