import { type Clock, systemTimers } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { pause } from '../base/pause.ts'
import { isUnavailable } from '../store/faults.ts'
import { type About, RetryQueue } from '../store/retry-queue.ts'

/** How long a client is kept waiting for the database: this many tries, with a pause between them. */
export type Patience = { readonly tries: number; readonly pauseMs: number }

// A database that restarts is back within seconds, while the client is still waiting.
export const usualPatience: Patience = { tries: 20, pauseMs: 500 }

/**
 * Records what has happened at a vendor, and tries again while the database is away. A commit whose answer was lost may
 * have taken place, so `work` must do no harm when it is repeated. `about` is all that is needed to record it by hand.
 *
 * Once the client has waited long enough, this throws an error that forbids a retry. With `goes on`, `work` is then
 * retried in the background until it is done or the node stops.
 */
export type WithDatabaseRetries = <T>(work: () => Promise<T>, then: 'goes on' | 'ends', about: About) => Promise<T>

export type DatabaseRetries = {
  readonly withDatabaseRetries: WithDatabaseRetries
  /** Resolves when no work is tried any more. */
  close(): Promise<void>
}

export function makeDatabaseRetries({
  log,
  clock,
  patience,
}: {
  readonly log: Log
  readonly clock: Clock
  readonly patience: Patience
}): DatabaseRetries {
  const { tries, pauseMs } = patience
  const behind = new RetryQueue({ log, clock, timers: systemTimers, pauseMs })

  return {
    async withDatabaseRetries(work, then, about) {
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

/** Whether `withDatabaseRetries` threw this because the database is still away, and not because the work failed. */
export function isStillAway(thrown: unknown): boolean {
  return thrown instanceof GatewayError && isUnavailable(thrown.details.cause)
}
