import type { Timers } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { dropOldAnswers } from './idempotency.ts'
import { recoverHolds } from './ledger.ts'
import type { Store } from './open.ts'

const everyMs = 60_000

type TidyingParts = {
  readonly store: Store
  readonly timers: Timers
  readonly log: Log
  readonly keepAnswersMs: number
  readonly isAtWork: (holdId: string) => boolean
}

/**
 * Ends regularly what nothing else would: holds past their deadline, and answers kept for longer than was promised. The
 * two run independently, because either may have millions of rows. The returned function stops it.
 */
export function startTidying(parts: TidyingParts): () => void {
  const { store, keepAnswersMs, isAtWork } = parts
  const stopHolds = repeat(parts, 'holds past their deadline', async () => {
    const { failed } = await recoverHolds(store, { now: store.now(), isAtWork })
    if (failed.length > 0) throw new Error(failed.join('; '))
  })
  const stopAnswers = repeat(parts, 'answers that are too old', () =>
    dropOldAnswers(store.db, store.now() - keepAnswersMs),
  )
  return () => {
    stopHolds()
    stopAnswers()
  }
}

/** Repeats the work, one run after another, however long a run takes. */
function repeat({ timers, log }: TidyingParts, what: string, work: () => Promise<unknown>): () => void {
  let isStopped = false
  let callOff = timers.after(everyMs, run)

  function run(): void {
    void tidyUp()
  }

  async function tidyUp(): Promise<void> {
    try {
      await work()
    } catch (thrown) {
      // A stop closes the database under a run, and the next start begins it anew, so that failure is not logged.
      if (!isStopped) log.warn({ what, cause: String(thrown) }, 'overdue records cannot be ended at the moment')
    }
    if (!isStopped) callOff = timers.after(everyMs, run)
  }

  return () => {
    isStopped = true
    callOff()
  }
}
