import { GatewayError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { isUnavailable } from '../store/faults.ts'

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

type About = Readonly<Record<string, string>>

export type Insistence = {
  readonly insist: Insist
  /** Resolves when nothing is tried any more. */
  idle(): Promise<void>
}

export function makeInsistence({
  log,
  stopping,
  patience,
}: {
  readonly log: Log
  readonly stopping: AbortSignal
  readonly patience: Patience
}): Insistence {
  const { tries, pauseMs } = patience
  const behind = new Set<Promise<void>>()

  async function goOn(work: () => Promise<unknown>, about: About): Promise<void> {
    while (!stopping.aborted) {
      await pause(pauseMs)
      try {
        await work()
        log.warn(about, 'what became of a task is written down after all')
        return
      } catch (thrown) {
        if (!isUnavailable(thrown)) return log.error({ ...about, cause: String(thrown) }, 'it cannot be written down')
      }
    }
    log.error(about, 'the node stops before what became of a task could be written down')
  }

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
          log.error(about, 'the database does not answer: what became of a task is not written down')
          if (then === 'goes on') {
            const trying = goOn(work, about).finally(() => behind.delete(trying))
            behind.add(trying)
          }
          throw stillAway(thrown)
        }
      }
    },

    async idle() {
      await Promise.all(behind)
    },
  }
}

function stillAway(cause: unknown): GatewayError {
  const message = 'The database does not answer: what became of the request will be looked up.'
  return new GatewayError('overloaded', message, { shouldRetry: false, cause })
}

/** Whether `insist` has given up waiting, and what it threw is no fault of the work itself. */
export function isStillAway(thrown: unknown): boolean {
  return thrown instanceof GatewayError && isUnavailable(thrown.details.cause)
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
