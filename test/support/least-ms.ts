const triesMax = 8

/**
 * How long something takes, in milliseconds: the minimum of several tries, which stop at the first good one. Other
 * processes may slow down single tries; code that is slow by itself is slow every time.
 */
export function leastMs(work: () => void, goodMs: number): number {
  let least = Infinity
  for (let tries = 0; tries < triesMax && least >= goodMs; tries++) {
    const startedAt = performance.now()
    work()
    least = Math.min(least, performance.now() - startedAt)
  }
  return least
}
