import type { Clock } from '../../src/base/clock.ts'

type MovableClock = Clock & {
  advance(ms: number): void
  /** The time of day alone, as somebody sets it who finds that it was wrong. */
  setBack(ms: number): void
}

/** The machine's time, and a hand on it: nothing waits for a minute to pass in a test. */
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
 * Time that stands until a hand moves it: a moment before something ends is one however long a busy machine takes to look.
 */
export function standingClock(startedAt = Date.now()): MovableClock {
  // Whole milliseconds: with parts of one, five seconds later would sometimes be a hair less than five seconds.
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
