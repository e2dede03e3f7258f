import { type Clock, systemTimers } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { pause } from '../base/pause.ts'
import { isUnavailable } from '../store/faults.ts'
import { type About, Insisting } from '../store/insisting.ts'

/** How long whoever asked is kept waiting for the database: so many tries, with a pause between them. */
export type Patience = { readonly tries: number; readonly pauseMs: number }

// A database that restarts is back within seconds; whoever asked is still there.
export const usualPatience: Patience = { tries: 20, pauseMs: 500 }

/**
 * For what has happened at a vendor and must be written down: tried again while the database is away. A commit whose
 * answer was lost may have taken place, so the work has to be one that does no harm twice. `about` is all that would be
 * needed to write it down by hand.
 *
 * When whoever asked has waited long enough, this throws an error that says not to try again. `goes on`: the work is then
 * tried further behind it, until it is done or the node stops.
 */
export type Insist = <T>(work: () => Promise<T>, then: 'goes on' | 'ends', about: About) => Promise<T>

export type Insistence = {
  readonly insist: Insist
  /** Resolves when nothing is tried any more. */
  close(): Promise<void>
}

export function makeInsistence({
  log,
  clock,
  patience,
}: {
  readonly log: Log
  readonly clock: Clock
  readonly patience: Patience
}): Insistence {
  const { tries, pauseMs } = patience
  const behind = new Insisting({ log, clock, timers: systemTimers, pauseMs })

  return {
    async insist(work, then, about) {
      for (let left = tries; ; left--) {
        try {
          return await work()
        } catch (thrown) {
          if (!isUnavailable(thrown)) throw thrown
          if (left > 1) {
            await pause(pauseMs)
            continue
          }
          log.error(about, 'the database does not answer: the outcome of a task is not recorded yet')
          if (then === 'goes on') void behind.add({ write: work, about })
          throw stillAway(thrown)
        }
      }
    },

    close: () => behind.close(),
  }
}

function stillAway(cause: unknown): GatewayError {
  const message = 'The database does not answer: the outcome of the request will be looked up.'
  return new GatewayError('overloaded', message, { shouldRetry: false, cause })
}

/** Whether `insist` has given up waiting, and what it threw is no fault of the work itself. */
export function isStillAway(thrown: unknown): boolean {
  return thrown instanceof GatewayError && isUnavailable(thrown.details.cause)
}
