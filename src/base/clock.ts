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
