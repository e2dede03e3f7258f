import { expect, test } from 'bun:test'
import { fundedAccount, accountId } from '../../test/support/ledger.ts'
import { flakyStore } from '../../test/support/flaky-store.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import type { Timers } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { nano } from '../base/money.ts'
import { checkLedger } from '../store/check.ts'
import { openStore } from '../store/open.ts'
import type { Order, Sale } from './funds.ts'
import { makeStrictBilling } from './strict.ts'

const order: Order = {
  requestId: 'req_1' as Order['requestId'],
  accountId,
  keyId: 'key_1',
  model: 'gpt-x',
  capability: 'chat',
  amount: nano(100n),
  caps: [],
  priceVersion: 'v',
  startedAt: 0,
  deadline: 1,
}
const sale: Sale = {
  status: 200,
  streamed: false,
  durationMs: 1,
  attempts: [],
  basis: 'vendor',
  usage: {},
  price: nano(40n),
}

/** A hold of 100 at a database that goes away when it is told to; a pause is over at once, and notes itself. */
async function held() {
  const real = await openStore({ file: ':memory:' })
  await fundedAccount(real)
  const flaky = flakyStore(real)
  const pauses: number[] = []
  const timers: Timers = {
    after(ms, run) {
      pauses.push(ms)
      queueMicrotask(run)
      return () => {}
    },
  }
  const taken = await makeStrictBilling({ store: flaky.store, node: 'n', log: silentLog, timers }).take(order)
  if (taken.kind !== 'hold') throw new Error('nothing was held')
  const balance = () =>
    real.db.selectFrom('account').select(['posted', 'held']).where('id', '=', accountId).executeTakeFirst()
  const before = (await balance())?.posted ?? nano(0n)
  const charged = async () => before - ((await balance())?.posted ?? nano(0n))
  return { flaky, hold: taken.hold, pauses, charged, balance, store: real }
}

test('a settlement whose answer is lost is known by asking again, and is charged once', async () => {
  const { flaky, hold, charged, balance, store } = await held()
  flaky.answersToLose = 2
  expect(await hold.settle(sale)).toBe(nano(40n))
  expect([await charged(), (await balance())?.held]).toEqual([40n, nano(0n)])
  expect(await checkLedger(store)).toEqual([])
})

test('one that never reached the database is made when that is back', async () => {
  const { flaky, hold, pauses, charged } = await held()
  flaky.isAway = true
  const settled = hold.settle(sale)
  queueMicrotask(() => (flaky.isAway = false))
  expect(await settled).toBe(nano(40n))
  expect([pauses.length > 0, await charged()]).toEqual([true, 40n])
})

test('where nobody can tell, nobody says that nothing was charged', async () => {
  const { flaky, hold, pauses, charged } = await held()
  flaky.answersToLose = 1
  flaky.staysAway = true
  expect(await thrownBy(hold.settle(sale))).toMatchObject({
    kind: 'overloaded',
    message: expect.stringContaining('will show in the usage'),
    details: { shouldRetry: false },
  })
  expect(pauses).toEqual([100, 300, 800])
  flaky.isAway = false
  await hold.release({ ...sale, status: 503 }) // whoever cleans up behind it
  expect(await charged()).toBe(40n)
})

test('to settle a hold that has ended is a bug, to release it changes nothing', async () => {
  const { hold, charged } = await held()
  await hold.settle(sale)
  await hold.release(sale)
  expect(await thrownBy(hold.settle(sale))).toMatchObject({ kind: 'bug' })
  expect(await charged()).toBe(40n)
})
