import type { Clock } from '../../src/base/clock.ts'

/** The machine's time, and a hand on it: nothing waits for a minute to pass in a test. */
export function movableClock(): Clock & { advance(ms: number): void } {
  let ahead = 0
  return {
    now: () => Date.now() + ahead,
    monotonic: () => performance.now() + ahead,
    advance(ms) {
      ahead += ms
    },
  }
}
