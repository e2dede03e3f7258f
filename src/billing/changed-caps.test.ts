import { expect, test } from 'bun:test'
import { standingClock } from '../../test/support/movable-clock.ts'
import { nano } from '../base/money.ts'
import type { SpendingCap } from '../store/keys.ts'
import { capSpending } from './caps.ts'
import type { SpentSince } from './spendings.ts'
import { makeCountingBilling } from './counting.ts'
import type { Order } from './billing.ts'

// Caps that an operator changes while requests are under way.

const daily: SpendingCap = { of: { accountId: 'acc', keyId: 'key' }, amount: nano(100n), period: 'day' }
const monthly: SpendingCap = { ...daily, period: 'month' }
const total: SpendingCap = { ...daily, period: 'total' }

/** Away from the ends of the day and the month. */
const noon = Date.UTC(2027, 0, 15, 12)

function order(amount: bigint, cap = daily): Order {
  return {
    requestId: 'req' as Order['requestId'],
    accountId: 'acc',
    keyId: 'key',
    model: 'm',
    capability: 'chat',
    amount: nano(amount),
    caps: [cap],
    priceVersion: 'v',
    startedAt: noon,
    deadline: 0,
  }
}

const sale = { status: 200, streamed: false, durationMs: 1, attempts: [], basis: 'vendor', usage: {} } as const

function capped(spentSince: SpentSince) {
  const clock = standingClock(noon)
  return capSpending(makeCountingBilling(), { clock, spentSince, heldByTasks: () => Promise.resolve(nano(0n)) })
}

test('a hold that is open when the period of its cap changes counts in the new period', async () => {
  const billing = capped(() => Promise.resolve(nano(0n)))
  const running = await billing.take(order(60n))
  if (running.kind !== 'hold') throw new Error('refused')
  expect(await billing.take(order(50n, monthly))).toMatchObject({ kind: 'no-funds', available: nano(40n) })
  await running.hold.settle({ ...sale, price: nano(55n) })
  expect(await billing.take(order(50n, monthly))).toMatchObject({ kind: 'no-funds', available: nano(45n) })
})

test('each period of a cap has its own sum, also for concurrent holds and beside a cap that stays the same', async () => {
  const billing = capped(({ since }) => Promise.resolve(nano(since === 0 ? 95n : 5n)))
  const wide: SpendingCap = { of: { accountId: 'acc' }, amount: nano(1_000n), period: 'day' }
  for (const beside of [[], [wide]]) {
    const orders = [daily, total, daily, total].map((cap) => ({ ...order(101n), caps: [cap, ...beside] }))
    const taken = await Promise.all(orders.map((one) => billing.take(one)))
    const lefts = taken.map((one) => (one.kind === 'no-funds' ? one.available : undefined))
    expect(lefts).toEqual([nano(95n), nano(5n), nano(95n), nano(5n)])
  }
})

test('a free request is allowed when more than the cap has been spent', async () => {
  const billing = capped(() => Promise.resolve(nano(150n)))
  expect(await billing.take(order(1n))).toMatchObject({ kind: 'no-funds', available: nano(0n) })
  expect(await billing.take(order(0n))).toMatchObject({ kind: 'hold' })
})
