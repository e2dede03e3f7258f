import type { Store } from '../../src/store/open.ts'

export type FlakyStore = {
  readonly store: Store
  /** While true, the database answers nothing. */
  isAway: boolean
  /** How many of the next transactions are committed but lose their answer. */
  answersToLose: number
  /** How many of the next transactions are carried out up to their commit, which never arrives. */
  commitsToLose: number
  /** Whether the database stays unavailable after it lost an answer or a commit. */
  staysAway: boolean
  /** How many more queries outside of transactions are answered before the database becomes unavailable. */
  queriesLeft: number
  /** How many of the next queries outside of transactions fail. */
  queriesToLose: number
}

function gone(): Error {
  return Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' })
}

/** A store whose database a test can make unavailable. */
export function flakyStore(store: Store): FlakyStore {
  const losses = { answersToLose: 0, commitsToLose: 0, queriesToLose: 0 }
  const flaky = { isAway: false, staysAway: false, queriesLeft: Infinity, ...losses }
  const transaction: Store['transaction'] = async (work) => {
    if (flaky.isAway) throw gone()
    const done = await store.transaction(async (tx) => {
      const worked = await work(tx)
      if (flaky.commitsToLose === 0) return worked
      flaky.commitsToLose--
      flaky.isAway = flaky.staysAway
      throw gone()
    })
    if (flaky.answersToLose === 0) return done
    flaky.answersToLose--
    flaky.isAway = flaky.staysAway
    throw gone()
  }
  return Object.assign(flaky, {
    store: {
      ...store,
      transaction,
      get db() {
        if (flaky.isAway) throw gone()
        if (flaky.queriesToLose > 0) {
          flaky.queriesToLose--
          throw gone()
        }
        flaky.isAway = --flaky.queriesLeft === 0
        return store.db
      },
    },
  })
}
