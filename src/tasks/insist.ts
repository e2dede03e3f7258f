import { GatewayError } from '../base/errors.ts'
import { isUnavailable } from '../store/faults.ts'

// A database that restarts is back within seconds; whoever asked is still there.
const tries = 20
const pauseMs = 500

/**
 * For what has happened at a vendor and must be written down: tried again while the database is away. A commit whose
 * answer was lost may have taken place, so the work has to be one that does no harm twice.
 */
export async function insist<T>(work: () => Promise<T>): Promise<T> {
  for (let left = tries; ; left--) {
    try {
      return await work()
    } catch (thrown) {
      if (!isUnavailable(thrown)) throw thrown
      if (left === 1) {
        const message = 'The database does not answer: what became of the request will be looked up.'
        throw new GatewayError('overloaded', message, { shouldRetry: false, cause: thrown })
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }
}
