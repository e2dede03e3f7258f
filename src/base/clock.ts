/** Time is a parameter: tests move it, and code that handles money never reads the machine's clock itself. */
export type Clock = {
  /** Unix time in milliseconds, for records and expiry. */
  now(): number
  /** Milliseconds that never jump, for durations and timeouts. */
  monotonic(): number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}

// A smaller difference is a clock being adjusted in small steps, or the time between two readings.
const setBackMsMin = 1_000

/** Notices that the wall clock was set back, because work scheduled by it before would then wait for too long. */
export class SetBack {
  readonly #day: Pick<Clock, 'now'>
  readonly #steady: Pick<Clock, 'monotonic'>
  #ahead: number

  constructor(day: Pick<Clock, 'now'>, steady: Pick<Clock, 'monotonic'>) {
    this.#day = day
    this.#steady = steady
    this.#ahead = day.now() - steady.monotonic()
  }

  /** Calls `work` with how far the clock was set back, if it was. If `work` throws, the next call tries again. */
  async makeUp(work: (ms: number) => Promise<void>): Promise<void> {
    const ahead = this.#day.now() - this.#steady.monotonic()
    const ms = Math.round(this.#ahead - ahead)
    if (ms >= setBackMsMin) await work(ms)
    this.#ahead = ahead
  }
}

/** Timers are a parameter, too. The returned function cancels the timer. */
export type Timers = {
  after(ms: number, run: () => void): () => void
}

/** These timers never keep a process alive that has nothing else to do. */
export const systemTimers: Timers = {
  after(ms, run) {
    const timer = setTimeout(run, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}
