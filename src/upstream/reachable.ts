import { connect } from 'node:net'
import type { Clock } from '../base/clock.ts'

// While a vendor has answered this recently, its sockets are warm and a failed connect shows by itself.
const freshMs = 10_000

/**
 * `fetch` cannot tell a vendor that thinks for a minute from an address nobody answers at. So a call to an origin that
 * has been silent for a while is accompanied by a bare connect of its own: if that fails, the call is given up at once
 * instead of after its first-byte timeout. It delays nothing and goes with one call in ten seconds at the most.
 */
export class Reachability {
  readonly #clock: Clock
  readonly #contactAt = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The origin answered something, so it can be reached. Origins come from the configuration: the map is bounded by it. */
  contact(origin: string): void {
    this.#contactAt.set(origin, this.#clock.monotonic())
  }

  /** Calls `unreachable` if the origin cannot be connected to in time; the returned function ends the watch. */
  watch(origin: string, timeoutMs: number, unreachable: () => void): () => void {
    if (this.#clock.monotonic() - (this.#contactAt.get(origin) ?? -Infinity) < freshMs) return () => {}
    const { hostname, port, protocol } = new URL(origin)
    const socket = connect({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
    })
    const timer = setTimeout(() => finish(unreachable), timeoutMs)
    let done = false
    const finish = (then?: () => void) => {
      if (done) return
      done = true
      clearTimeout(timer)
      socket.destroy()
      then?.()
    }
    socket.on('connect', () => finish(() => this.contact(origin)))
    // A refused connect fails the call itself as well, with a better word for it.
    socket.on('error', () => finish())
    return () => finish()
  }
}
