import { expect, test } from 'bun:test'
import { flakyBooks } from '../../test/support/flaky-books.ts'
import { standingClock } from '../../test/support/movable-clock.ts'
import { nano } from '../base/money.ts'
import type { SpendingCap } from '../store/keys.ts'
import { spentSince } from '../store/usage.ts'
import type { Hold, Order, TakeOutcome } from './billing.ts'
import { capSpending, endOf, startOf } from './caps.ts'

const dayMs = 86_400_000
const today = Date.UTC(2027, 0, 15)
const tomorrow = today + dayMs
const of = { accountId: 'acc', keyId: 'key' }
const daily: SpendingCap = { of, amount: nano(100n), period: 'day' }

function arriving(id: string, startedAt: number): Order {
  return {
    ...of,
    requestId: id as Order['requestId'],
    model: 'm',
    capability: 'chat',
    amount: nano(60n),
    caps: [daily],
    priceVersion: 'v',
    startedAt,
    deadline: startedAt + 2 * dayMs,
  }
}

const heldByTasks = () => Promise.resolve(nano(0n))

const sale = { status: 200, streamed: false, durationMs: 1, attempts: [], basis: 'vendor', usage: {} } as const

function held(taken: TakeOutcome): Hold {
  if (taken.kind !== 'hold') throw new Error('refused')
  return taken.hold
}

test('a request that arrived before midnight counts against the cap of that day, however late its hold is taken', async () => {
  const clock = standingClock(today)
  const { store, billing: strict } = await flakyBooks({ id: of.accountId }, clock)
  const billing = capSpending(strict, { clock, spentSince: (by) => spentSince(store.db, by), heldByTasks })
  await held(await billing.take(arriving('req_1', today))).settle({ ...sale, price: nano(60n) })
  clock.advance(dayMs)
  const [late, next] = await Promise.all([
    billing.take(arriving('req_2', today)),
    billing.take(arriving('req_3', tomorrow)),
  ])
  expect(late).toMatchObject({ kind: 'no-funds', available: nano(40n), cap: daily })
  await held(next).settle({ ...sale, price: nano(60n) })
  const entries = await store.db.selectFrom('entry').select('amount').where('account', '=', 'revenue:m').execute()
  expect(entries.map(({ amount }) => amount)).toEqual([nano(60n), nano(60n)])
  const days = await store.db.selectFrom('usage_day').select(['hour', 'cost']).orderBy('hour').execute()
  expect(days).toEqual([
    { hour: today, cost: nano(60n) },
    { hour: tomorrow, cost: nano(60n) },
  ])
  await store.close()
})

test.each([
  ['day', Date.UTC(2028, 1, 29, 23, 59, 59, 999), '2028-02-29', '2028-03-01'],
  ['day', Date.UTC(2028, 2, 1), '2028-03-01', '2028-03-02'],
  ['month', Date.UTC(2027, 0, 31, 12), '2027-01-01', '2027-02-01'],
  ['month', Date.UTC(2027, 11, 31, 23, 59, 59, 999), '2027-12-01', '2028-01-01'],
] as const)('the %s of a cap at %i begins on %s and ends with the start of %s', (period, now, begins, ends) => {
  expect([startOf(period, now), endOf(period, now)]).toEqual([Date.parse(begins), Date.parse(ends)])
})
