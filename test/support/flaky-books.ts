import { type Clock, systemClock, type Timers } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { makeStrictBilling } from '../../src/billing/strict.ts'
import { openStore } from '../../src/store/open.ts'
import { flakyStore } from './flaky-store.ts'
import { handTimers } from './hand-timers.ts'
import { fundedAccount } from './ledger.ts'

const behindPauseMs = 500

/**
 * Strict billing for one account on a database that a test can make unavailable. Pauses that a client waits for end at
 * once and are recorded; retries behind the client wait until the database is back.
 */
export async function flakyBooks(account: Parameters<typeof fundedAccount>[1] = {}, clock: Clock = systemClock) {
  const store = await openStore({ file: ':memory:', clock })
  await fundedAccount(store, account)
  const flaky = flakyStore(store)
  const pauses: number[] = []
  const behind = handTimers()
  const timers: Timers = {
    after(ms, run) {
      if (ms === behindPauseMs) return behind.after(ms, run)
      pauses.push(ms)
      queueMicrotask(run)
      return () => {}
    },
  }
  const billing = makeStrictBilling({ store: flaky.store, node: 'node_a', log: silentLog, clock, timers })
  return {
    store,
    flaky,
    billing,
    pauses,
    behind,
    comeBack: async () => {
      flaky.isAway = false
      behind.fire()
      await billing.post?.()
    },
  }
}
