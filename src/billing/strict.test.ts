import { expect, test } from 'bun:test'
import { Client } from 'pg'
import { flakyBooks } from '../../test/support/flaky-books.ts'
import { until } from '../../test/support/gateway.ts'
import { accountId, attemptOf, fundedAccount } from '../../test/support/ledger.ts'
import { standingClock } from '../../test/support/movable-clock.ts'
import { coldStartMs, sharedPostgres } from '../../test/support/postgres.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import type { Clock, Timers } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { nano } from '../base/money.ts'
import { changeAccount } from '../store/accounts.ts'
import { checkLedger } from '../store/check.ts'
import { recoverHolds } from '../store/ledger.ts'
import { openStore } from '../store/open.ts'
import type { Order, Sale } from './billing.ts'
import { makeCountingBilling } from './counting.ts'
import { makeStrictBilling } from './strict.ts'

const hour = 3_600_000
const startedAt = Date.now()
const order: Order = {
  requestId: 'req_1' as Order['requestId'],
  accountId,
  keyId: 'key_1',
  model: 'gpt-x',
  capability: 'chat',
  amount: nano(100n),
  caps: [],
  priceVersion: 'v',
  startedAt,
  deadline: startedAt + hour,
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

const attempt = attemptOf('one', 30n, { delivered: false })

async function held(more: Partial<Order> = {}, clock?: Clock) {
  const books = await flakyBooks({}, clock)
  const { billing, store } = books
  const taken = await billing.take({ ...order, ...more })
  if (taken.kind !== 'hold') throw new Error('nothing was held')
  const balance = () =>
    store.db.selectFrom('account').select(['posted', 'held']).where('id', '=', accountId).executeTakeFirst()
  const before = (await balance())?.posted ?? nano(0n)
  const charged = async () => before - ((await balance())?.posted ?? nano(0n))
  const unbooked = () => (billing.endings?.made ?? 0) - (billing.endings?.booked ?? 0)
  return { ...books, hold: taken.hold, charged, balance, unbooked }
}

test("when the database's reply to a settlement is lost, the charge is made exactly once", async () => {
  const { flaky, hold, charged, balance, store } = await held()
  flaky.answersToLose = 2
  expect(await hold.settle(sale)).toBe(nano(40n))
  expect([await charged(), (await balance())?.held]).toEqual([40n, nano(0n)])
  expect(await checkLedger(store)).toEqual([])
})

test(
  'a settlement for which the database waited too long for a lock is tried again',
  async () => {
    const url = await (await sharedPostgres()).freshDatabase()
    const store = await openStore({ url })
    await fundedAccount(store)
    const bystander = new Client({ connectionString: url })
    await bystander.connect()
    let pauses = 0
    const timers: Timers = {
      after(_ms, run) {
        pauses++
        void bystander.query('rollback').then(run)
        return () => {}
      },
    }
    const billing = makeStrictBilling({ store, node: 'node_a', log: silentLog, timers })
    const taken = await billing.take(order)
    if (taken.kind !== 'hold') throw new Error('nothing was held')
    await bystander.query('begin')
    await bystander.query('select 1 from account for update')
    expect(await taken.hold.settle(sale)).toBe(nano(40n))
    expect(pauses).toBe(1)
    const account = store.db.selectFrom('account').select(['posted', 'held']).where('id', '=', accountId)
    expect(await account.executeTakeFirst()).toEqual({ posted: nano(960n), held: nano(0n) })
    expect(await checkLedger(store)).toEqual([])
    await bystander.end()
    await store.close()
  },
  coldStartMs,
)

test('what a mark would record is not worked out where no marks are kept', async () => {
  const { hold } = await held()
  const counted = await makeCountingBilling().take(order)
  for (const each of [hold, counted.kind === 'hold' && counted.hold]) {
    if (each === false) throw new Error('nothing was held')
    each.mark(() => {
      throw new Error('it was worked out')
    })
    expect(await each.settle(sale)).toBe(nano(40n))
  }
})

test('a hold on an account that was disabled since its key was looked up is refused like a bad key', async () => {
  const { billing, store, balance } = await held()
  await changeAccount(store, { id: accountId, actor: 'test', enabled: false })
  expect(await thrownBy(billing.take(order))).toMatchObject({ kind: 'unauthenticated' })
  expect((await balance())?.held).toBe(nano(100n))
})

// The system clock may be set forward by more than a request can last.
test.each([
  { name: 'can still be settled', amount: 40n },
  { name: 'can still be released', amount: 0n },
])('a hold in use is not overdue when the clock jumps ahead, and $name', async ({ amount }) => {
  const { billing, hold, charged, balance, store } = await held()
  const tidyUp = async (isAtWork: (holdId: string) => boolean) =>
    (await recoverHolds(store, { now: store.now() + hour + 1, isAtWork })).voided.length
  expect(await tidyUp((holdId) => billing.isAtWork?.(holdId) ?? false)).toBe(0)
  if (amount > 0n) await hold.settle(sale)
  else await hold.release({ ...sale, status: 502 })
  expect([await charged(), (await balance())?.held]).toEqual([amount, nano(0n)])
  const { id } = await store.db.selectFrom('hold').select('id').executeTakeFirstOrThrow()
  expect(billing.isAtWork?.(id)).toBe(false)
  // A hold of a process that died is not worked on any more.
  await billing.take(order)
  expect(await tidyUp(() => false)).toBe(1)
})

test('a hold taken by a node whose clock is hours behind is not voided by other nodes', async () => {
  const { hold, charged, store } = await held({ startedAt: startedAt - 3 * hour, deadline: startedAt - 2 * hour })
  expect((await recoverHolds(store, { now: store.now() })).voided).toEqual([])
  await hold.settle(sale)
  expect(await charged()).toBe(40n)
  expect(await checkLedger(store)).toEqual([])
})

// Every hold should be ended by its request. Where one is not, I4 holds all the same.
test('a hold that its request never ends is voided once the longest possible request has passed', async () => {
  const clock = standingClock(startedAt)
  const { billing, store, balance } = await held({}, clock)
  const tidyUp = () =>
    recoverHolds(store, { now: order.deadline + 1, isAtWork: (id) => billing.isAtWork?.(id) ?? false })
  clock.advance(hour - 1)
  expect((await tidyUp()).voided).toHaveLength(0)
  clock.advance(1)
  expect((await tidyUp()).voided).toHaveLength(1)
  expect((await balance())?.held).toBe(nano(0n))
})

test('a settlement during a database outage is made once the database is back', async () => {
  const { flaky, hold, pauses, charged } = await held()
  flaky.isAway = true
  const settled = hold.settle(sale)
  queueMicrotask(() => (flaky.isAway = false))
  expect(await settled).toBe(nano(40n))
  expect([pauses.length > 0, await charged()]).toEqual([true, 40n])
})

// The customer may have paid, and what is not delivered must cost nothing: so the answer is delivered.
test.each(['answersToLose', 'commitsToLose'] as const)(
  'a settlement that may or may not have committed counts as sold and is charged once: %s',
  async (doubt) => {
    const { flaky, hold, pauses, charged, balance, comeBack, unbooked, store } = await held()
    Object.assign(flaky, { [doubt]: 1, staysAway: true })
    expect(await hold.settle(sale)).toBe(nano(40n))
    await hold.release({ ...sale, status: 503 }) // as cleaning up after a failure does
    expect([pauses, unbooked()]).toEqual([[100, 300, 800], 1])
    await comeBack()
    expect([await charged(), (await balance())?.held, unbooked()]).toEqual([40n, nano(0n), 0])
    expect(await checkLedger(store)).toEqual([])
  },
)

// A machine that was suspended wakes up after all deadlines, with every connection broken.
test('a sale in doubt is charged however late the database comes back', async () => {
  const { billing, flaky, hold, behind, charged, balance, comeBack, unbooked, store } = await held({ deadline: 1 })
  const { id } = await store.db.selectFrom('hold').select('id').executeTakeFirstOrThrow()
  Object.assign(flaky, { commitsToLose: 1, staysAway: true })
  expect(await hold.settle(sale)).toBe(nano(40n))
  // Meanwhile no node may take the hold for abandoned.
  expect(billing.isAtWork?.(id)).toBe(true)
  behind.fire()
  await until(() => behind.waiting.length > 0 || unbooked() === 0)
  await comeBack()
  expect([await charged(), (await balance())?.held, unbooked()]).toEqual([40n, nano(0n), 0])
  expect(billing.isAtWork?.(id)).toBe(false)
})

test('a settlement that surely failed is not charged, and its release waits for the database', async () => {
  const { flaky, hold, charged, balance, comeBack, unbooked, store } = await held()
  flaky.isAway = true
  expect(await thrownBy(hold.settle(sale))).toMatchObject({ code: 'ECONNRESET' })
  await hold.release({ ...sale, status: 503, attempts: [attempt] })
  await hold.release({ ...sale, status: 503, attempts: [attempt] }) // a second release has no effect
  expect([(await balance())?.held, unbooked()]).toEqual([nano(100n), 2])
  await comeBack()
  expect([await charged(), (await balance())?.held, unbooked()]).toEqual([0n, nano(0n), 0])
  const records = store.db.selectFrom('request').innerJoin('attempt', 'attempt.request_id', 'request.id')
  expect(await records.select(['request.status', 'request.cost', 'vendor_cost']).execute()).toEqual([
    { status: 503, cost: nano(0n), vendor_cost: nano(30n) },
  ])
  expect(await checkLedger(store)).toEqual([])
})

test.each(['answersToLose', 'commitsToLose'] as const)(
  'a hold that may or may not have been taken is released once the database is back: %s',
  async (doubt) => {
    const { billing, flaky, balance, comeBack, hold } = await held()
    await hold.release(sale)
    Object.assign(flaky, { [doubt]: 1, staysAway: true })
    expect(await thrownBy(billing.take(order))).toMatchObject({ kind: 'overloaded', details: { retryAfterSeconds: 1 } })
    expect(await thrownBy(billing.take(order))).toMatchObject({ kind: 'overloaded' })
    // Only the first is in doubt: the second certainly took nothing.
    expect(billing.endings?.made).toBe(1)
    await comeBack()
    expect([(await balance())?.held, billing.endings?.booked]).toEqual([nano(0n), 1])
  },
)

test('settling an ended hold is a bug, and releasing it changes nothing', async () => {
  const { hold, charged } = await held()
  await hold.settle(sale)
  await hold.release(sale)
  expect(await thrownBy(hold.settle(sale))).toMatchObject({ kind: 'bug' })
  expect(await charged()).toBe(40n)
})
