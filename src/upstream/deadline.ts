import type { Clock } from '../base/clock.ts'

/**
 * A deadline that moves with every read. Moving it only writes a number; the one timer behind it is set again when it
 * fires too early, so that a stream of ten thousand chunks sets a handful of timers and not ten thousand.
 */
export class Deadline {
  readonly #clock: Clock
  readonly #expire: () => void
  #expiresAt = Number.POSITIVE_INFINITY
  #timer: ReturnType<typeof setTimeout> | undefined
  #timerAt = Number.POSITIVE_INFINITY

  constructor(clock: Clock, expire: () => void) {
    this.#clock = clock
    this.#expire = expire
  }

  set(ms: number): void {
    this.setAt(this.#clock.monotonic() + ms)
  }

  /** By the monotonic clock. */
  setAt(expiresAt: number): void {
    this.#expiresAt = expiresAt
    if (this.#expiresAt < this.#timerAt) this.#schedule()
  }

  /** Time does not count for now: we wait for the client, not for the vendor. */
  pause(): void {
    this.#expiresAt = Number.POSITIVE_INFINITY
  }

  clear(): void {
    this.pause()
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#timerAt = Number.POSITIVE_INFINITY
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    this.#timerAt = this.#expiresAt
    const wait = Math.max(0, this.#expiresAt - this.#clock.monotonic())
    this.#timer = setTimeout(() => this.#fired(), wait)
  }

  #fired(): void {
    this.#timerAt = Number.POSITIVE_INFINITY
    if (this.#expiresAt === Number.POSITIVE_INFINITY) return
    // Timers may fire a fraction of a millisecond early.
    if (this.#clock.monotonic() >= this.#expiresAt - 1) this.#expire()
    else this.#schedule()
  }
}
