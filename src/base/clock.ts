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
