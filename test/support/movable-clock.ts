import type { Clock } from '../../src/base/clock.ts'

export type MovableClock = Clock & {
  advance(ms: number): void
  /** Sets back only the time of day, as an operator does who corrects the clock. */
  setBack(ms: number): void
}

/** The machine's time, which a test can move forward, so that no test waits for a minute to pass. */
export function movableClock(): MovableClock {
  let ahead = 0
  let back = 0
  return {
    now: () => Date.now() + ahead - back,
    monotonic: () => performance.now() + ahead,
    advance(ms) {
      ahead += ms
    },
    setBack(ms) {
      back += ms
    },
  }
}

/**
 * A clock that stands still until a test moves it: a moment before an expiry stays before it, however slow the machine.
 */
export function standingClock(startedAt = Date.now()): MovableClock {
  // Whole milliseconds, because with fractions five seconds later would sometimes be slightly less than five seconds.
  const startedAtMonotonic = Math.floor(performance.now())
  let passed = 0
  let back = 0
  return {
    now: () => startedAt + passed - back,
    monotonic: () => startedAtMonotonic + passed,
    advance(ms) {
      passed += ms
    },
    setBack(ms) {
      back += ms
    },
  }
}
