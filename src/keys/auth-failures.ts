import type { Clock } from '../base/clock.ts'
import { BoundedMap } from '../base/bounded-map.ts'

const windowMs = 60_000
const addressesMax = 10_000

/** Counts bad keys by address, minute by minute. Loopback is exempt: it is the operator's own machine. */
export class AuthFailures {
  readonly #clock: Clock
  readonly #perMinuteMax: number
  readonly #windows = new BoundedMap<string, { startedAt: number; failures: number }>(addressesMax)

  constructor(clock: Clock, perMinuteMax: number) {
    this.#clock = clock
    this.#perMinuteMax = perMinuteMax
  }

  record(address: string): void {
    if (isLoopback(address)) return
    const now = this.#clock.monotonic()
    const window = this.#windows.get(address)
    if (window === undefined || now - window.startedAt >= windowMs) {
      this.#windows.set(address, { startedAt: now, failures: 1 })
    } else window.failures++
  }

  /** Seconds until this address may try unknown keys again, or 0. */
  waitSeconds(address: string): number {
    const window = this.#windows.get(address)
    if (window === undefined || window.failures < this.#perMinuteMax) return 0
    const left = window.startedAt + windowMs - this.#clock.monotonic()
    return left <= 0 ? 0 : left / 1000
  }
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^(?:::ffff:)?127\./.test(address)
}
