import type { Clock } from '../../src/base/clock.ts'

type MovableClock = Clock & { advance(ms: number): void }

/** The machine's time, and a hand on it: nothing waits for a minute to pass in a test. */
export function movableClock(): MovableClock {
  let ahead = 0
  return {
    now: () => Date.now() + ahead,
    monotonic: () => performance.now() + ahead,
    advance(ms) {
      ahead += ms
    },
  }
}

/**
 * Time that stands until a hand moves it: a moment before something ends is one however long a busy machine takes to look.
 */
export function standingClock(): MovableClock {
  const [startedAt, startedAtMonotonic] = [Date.now(), performance.now()]
  let passed = 0
  return {
    now: () => startedAt + passed,
    monotonic: () => startedAtMonotonic + passed,
    advance(ms) {
      passed += ms
    },
  }
}
