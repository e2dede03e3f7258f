import type { Clock, Timers } from '../../base/clock.ts'
import { Connection } from './connection.ts'
import type { ResponseHead } from './response-head.ts'
import type { Target } from './target.ts'

// Vendors keep an idle connection for a minute or longer; self-hosted servers often for five seconds, and say so.
const idleMs = 30_000
// A connection is not used in the last second that the vendor grants it, because its close may be on the way by then.
const marginMs = 1_000
// Enough for a burst that comes back; each connection is a socket at the vendor too.
const idlePerOriginMax = 256
const sweepEveryMs = 5_000
// How often an address that does not answer is tried, however many calls want it.
const tryEveryMs = 1_000

/** A connection that is being made for a call, which may give it up before it is there. */
export type Connecting = { readonly connection: Promise<Connection>; giveUp(): void }

/**
 * An origin to which a connect was given up. The runtime cannot cancel a connect, and the system tries for two minutes:
 * if every call began one of its own, a vendor that is gone would use up the sockets of all others.
 */
type StuckOrigin = { readonly released: PromiseWithResolvers<void>; triedAt: number; pending: number }

/** Keeps the connections that are idle now, and opens new ones. */
export class Pool {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #timers: Timers
  readonly #idle = new Map<string, Connection[]>()
  readonly #stuck = new Map<string, StuckOrigin>()
  #isSweeping = false

  constructor(clock: Pick<Clock, 'monotonic'>, timers: Timers) {
    this.#clock = clock
    this.#timers = timers
  }

  /** Gives the connection that was used last, so that surplus ones stay idle until they are too old. */
  take({ origin }: Target, now = this.#clock.monotonic()): Connection | undefined {
    const idle = this.#idle.get(origin)
    for (let connection = idle?.pop(); connection !== undefined; connection = idle?.pop()) {
      if (!connection.isClosed && connection.usableUntil > now) return connection
      connection.destroy(tooOld())
    }
    return undefined
  }

  connect(target: Target): Connecting {
    const attempt: Attempt = { isWanted: true, opening: undefined, triedAt: 0 }
    const connection = this.#reach(target, attempt)
    return {
      connection,
      giveUp: () => {
        attempt.isWanted = false
        if (attempt.opening !== undefined) this.#waitFor(target.origin, attempt.opening, attempt.triedAt)
        // A call that waited for another call's connect may have got a connection at this moment, which goes back to
        // the pool. A connect of its own is in the hands of `#waitFor`.
        const giveBack = attempt.opening === undefined ? this.#giveBack : () => {}
        connection.then(giveBack, () => {})
      },
    }
  }

  /** Opens a connection, or, where other calls have just tried in vain, waits for the outcome of their connects. */
  async #reach(target: Target, attempt: Attempt): Promise<Connection> {
    for (;;) {
      const stuck = this.#stuck.get(target.origin)
      const now = this.#clock.monotonic()
      if (stuck === undefined || now - stuck.triedAt >= tryEveryMs) {
        if (stuck !== undefined) stuck.triedAt = now
        attempt.triedAt = now
        attempt.opening = Connection.open(target, this.#free, this.#timers)
        // The address answers, so no call needs to wait any longer for an older connect, which may hang for good.
        attempt.opening.then(
          () => this.#release(target.origin, this.#stuck.get(target.origin)),
          () => {},
        )
        return attempt.opening
      }
      await stuck.released.promise
      if (!attempt.isWanted) throw new Error('nobody wants the connection any more')
      const kept = this.take(target)
      if (kept !== undefined) return kept
    }
  }

  /** Keeps a connect that was given up for the next calls, which wait for it until it succeeds or fails. */
  #waitFor(origin: string, opening: Promise<Connection>, triedAt: number): void {
    const found = this.#stuck.get(origin)
    const stuck = found ?? { released: Promise.withResolvers<void>(), triedAt, pending: 0 }
    this.#stuck.set(origin, stuck)
    stuck.pending++
    const kept = (late: Connection) => {
      this.#add(late, idleMs)
      this.#release(origin, stuck)
    }
    const lost = () => {
      if (--stuck.pending === 0) this.#release(origin, stuck)
    }
    opening.then(kept, lost)
  }

  /** Lets the calls that wait for the origin connect themselves. */
  #release(origin: string, stuck: StuckOrigin | undefined): void {
    if (this.#stuck.get(origin) === stuck) this.#stuck.delete(origin)
    stuck?.released.resolve()
  }

  readonly #free = (connection: Connection, last: ResponseHead): void => {
    this.#add(connection, Math.min(idleMs, saidMs(last) - marginMs))
  }

  readonly #giveBack = (unused: Connection): void => {
    this.#add(unused, unused.usableUntil - this.#clock.monotonic())
  }

  #add(connection: Connection, ms: number): void {
    const idle = this.#idle.get(connection.origin) ?? []
    if (ms <= 0 || idle.length >= idlePerOriginMax) return connection.destroy(tooOld())
    connection.usableUntil = this.#clock.monotonic() + ms
    connection.rest()
    idle.push(connection)
    this.#idle.set(connection.origin, idle)
    this.#sweepLater()
  }

  #sweepLater(): void {
    if (this.#isSweeping) return
    this.#isSweeping = true
    this.#timers.after(sweepEveryMs, () => {
      this.#isSweeping = false
      this.#sweep()
    })
  }

  #sweep(): void {
    const now = this.#clock.monotonic()
    for (const [origin, idle] of this.#idle) {
      const usable = idle.filter((connection) => !connection.isClosed && connection.usableUntil > now)
      for (const connection of idle) if (!usable.includes(connection)) connection.destroy(tooOld())
      if (usable.length === 0) this.#idle.delete(origin)
      else this.#idle.set(origin, usable)
    }
    if (this.#idle.size > 0) this.#sweepLater()
  }
}

type Attempt = { isWanted: boolean; opening: Promise<Connection> | undefined; triedAt: number }

function tooOld(): Error {
  return new Error('the connection was idle for too long')
}

/** `Keep-Alive: timeout=5`, in seconds. */
function saidMs({ headers }: ResponseHead): number {
  const said = headers.get('keep-alive')
  const seconds = said === undefined ? undefined : /\btimeout=(\d{1,6})/i.exec(said)?.[1]
  return seconds === undefined ? Number.POSITIVE_INFINITY : Number(seconds) * 1000
}
