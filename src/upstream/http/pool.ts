import type { Clock, Timers } from '../../base/clock.ts'
import { Connection } from './connection.ts'
import type { ResponseHead } from './response-head.ts'
import type { Target } from './target.ts'

// Vendors keep an idle connection for a minute or longer; a server of one's own, often for five seconds, and says so.
const idleMs = 30_000
// A vendor's own word is believed but for a second, in which its goodbye may be on the way.
const marginMs = 1_000
// For a burst that comes back. Each is a socket at the vendor too.
const idlePerOriginMax = 256
const sweepEveryMs = 5_000

/** Connections that nobody uses now. */
export class Pool {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #timers: Timers
  readonly #idle = new Map<string, Connection[]>()
  #isSweeping = false

  constructor(clock: Pick<Clock, 'monotonic'>, timers: Timers) {
    this.#clock = clock
    this.#timers = timers
  }

  /** The one that was used last: the others may rest until they are too old. */
  take({ origin }: Target): Connection | undefined {
    const idle = this.#idle.get(origin)
    const now = this.#clock.monotonic()
    for (let connection = idle?.pop(); connection !== undefined; connection = idle?.pop()) {
      if (!connection.isClosed && connection.usableUntil > now) return connection
      connection.destroy(tooOld())
    }
    return undefined
  }

  connect(target: Target): Promise<Connection> {
    return Connection.open(target, this.#free, this.#timers)
  }

  /** One that was made for a call that no longer wants it. */
  keep(connection: Connection): void {
    this.#add(connection, idleMs)
  }

  readonly #free = (connection: Connection, last: ResponseHead): void => {
    this.#add(connection, Math.min(idleMs, saidMs(last) - marginMs))
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

function tooOld(): Error {
  return new Error('the connection was idle for too long')
}

/** `Keep-Alive: timeout=5`, in seconds. */
function saidMs({ headers }: ResponseHead): number {
  const said = headers.get('keep-alive')
  const seconds = said === undefined ? undefined : /\btimeout=(\d{1,6})/i.exec(said)?.[1]
  return seconds === undefined ? Number.POSITIVE_INFINITY : Number(seconds) * 1000
}
