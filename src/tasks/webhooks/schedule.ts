import { jittered } from '../pace.ts'

const secondMs = 1_000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs

/**
 * How long after each failed attempt the next one is made: ten attempts within 23 h 43 min, give or take the jitter.
 * The first ones catch a receiver that is being deployed, the last ones a receiver whose operators were asleep.
 */
export const retryWaitsMs = [
  5 * secondMs,
  30 * secondMs,
  2 * minuteMs,
  10 * minuteMs,
  30 * minuteMs,
  hourMs,
  3 * hourMs,
  7 * hourMs,
  12 * hourMs,
] as const

/** The longest wait with its jitter, and a margin: only a clock that was far ahead puts an event off for longer. */
export const putOffMsMax = 15 * hourMs

/**
 * Ten thousand events may wait behind a dead host, which is probed only once in minutes. An event that is older than
 * the whole schedule and has been due for `turnMsMax` is given up, whatever attempts it has left.
 */
export const giveUpAfterMs = 24 * hourMs
export const turnMsMax = hourMs

/** How long to wait after this many attempts, with jitter; undefined where that was the last attempt. */
export function waitAfter(attempts: number, random: () => number): number | undefined {
  const ms = retryWaitsMs[attempts - 1]
  return ms === undefined ? undefined : jittered(ms, random)
}
