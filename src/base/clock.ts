/** Time as a parameter: tests move it, and nothing that handles money asks the machine for it. */
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

// Less than this is how a clock is put right in small steps, or the moment between two readings.
const setBackMsMin = 1_000

/** Notices that the time of day was set back: what was put off by it until then is put off for too long. */
export class SetBack {
  readonly #day: Pick<Clock, 'now'>
  readonly #steady: Pick<Clock, 'monotonic'>
  #ahead: number

  constructor(day: Pick<Clock, 'now'>, steady: Pick<Clock, 'monotonic'>) {
    this.#day = day
    this.#steady = steady
    this.#ahead = day.now() - steady.monotonic()
  }

  /** Does `work` where it was, with by how much since this was last done. Where it fails, it is left for the next time. */
  async makeUp(work: (ms: number) => Promise<void>): Promise<void> {
    const ahead = this.#day.now() - this.#steady.monotonic()
    const ms = Math.round(this.#ahead - ahead)
    if (ms >= setBackMsMin) await work(ms)
    this.#ahead = ahead
  }
}

/** Later, as a parameter. The returned function calls it off. */
export type Timers = {
  after(ms: number, run: () => void): () => void
}

/** A timer of ours never keeps a process alive that has nothing else to do. */
export const systemTimers: Timers = {
  after(ms, run) {
    const timer = setTimeout(run, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}
