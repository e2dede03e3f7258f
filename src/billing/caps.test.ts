import { expect, test } from 'bun:test'
import { nano } from '../base/money.ts'
import type { SpendingCap } from '../store/keys.ts'
import { movableClock } from '../../test/support/movable-clock.ts'
import { capSpending } from './caps.ts'
import { makeCountingBilling } from './counting.ts'
import type { Order, Sale } from './funds.ts'

const of = { accountId: 'acc', keyId: 'key' }
const daily: SpendingCap = { of, amount: nano(100n), period: 'day' }
const ending = { status: 200, streamed: false, durationMs: 1, attempts: [] }

function order(amount: bigint): Order {
  return {
    requestId: 'req' as Order['requestId'],
    accountId: 'acc',
    keyId: 'key',
    model: 'm',
    capability: 'chat',
    amount: nano(amount),
    caps: [daily],
    priceVersion: 'v',
    startedAt: 0,
    deadline: 0,
  }
}

const sale = (price: bigint): Sale => ({ ...ending, basis: 'vendor', usage: {}, price: nano(price) })

const nothing = () => Promise.resolve(nano(0n))

function capped(booked: () => bigint = () => 0n, held: () => bigint = () => 0n) {
  const clock = movableClock()
  const spentSince = () => Promise.resolve(nano(booked()))
  const heldByTasks = () => Promise.resolve(nano(held()))
  return { clock, billing: capSpending(makeCountingBilling(), { clock, spentSince, heldByTasks }) }
}

test('a hold that would pass the cap is refused, and what is not charged can be spent again', async () => {
  const { billing } = capped()
  const first = await billing.take(order(60n))
  if (first.kind !== 'hold') throw new Error('refused')
  expect(await billing.take(order(50n))).toMatchObject({ kind: 'no-funds', available: nano(40n), cap: daily })
  await first.hold.settle(sale(10n))
  expect(await billing.take(order(90n))).toMatchObject({ kind: 'hold' })
})

test('of many at once, only as many get through as the cap covers', async () => {
  const { billing } = capped()
  const taken = await Promise.all(Array.from({ length: 50 }, () => billing.take(order(30n))))
  expect(taken.filter(({ kind }) => kind === 'hold')).toHaveLength(3)
})

test('a hold that is open at midnight counts for the new day until it ends, and no longer', async () => {
  const { billing, clock } = capped()
  const overnight = await billing.take(order(60n))
  if (overnight.kind !== 'hold') throw new Error('refused')
  clock.advance(86_400_000)
  expect(await billing.take(order(50n))).toMatchObject({ kind: 'no-funds', available: nano(40n) })
  await overnight.hold.settle(sale(5n))
  expect(await billing.take(order(80n))).toMatchObject({ kind: 'hold' })
})

test('a settlement that fails gives its place in the cap back', async () => {
  const broken = {
    take: (asked: Order) =>
      Promise.resolve({
        kind: 'hold' as const,
        hold: {
          kind: 'hold' as const,
          amount: asked.amount,
          sending() {},
          mark() {},
          settle: () => Promise.reject(new Error('away')),
          release: () => Promise.reject(new Error('away')),
        },
      }),
  }
  const clock = movableClock()
  const billing = capSpending(broken, { clock, spentSince: nothing, heldByTasks: nothing })
  const taken = await billing.take(order(90n))
  if (taken.kind !== 'hold') throw new Error('refused')
  expect(await taken.hold.settle(sale(1n)).catch(() => 'failed')).toBe('failed')
  expect(await billing.take(order(90n))).toMatchObject({ kind: 'hold' })
})

test('what tasks hold counts too: from here at once, from elsewhere once the books are read again', async () => {
  let held = 0n
  const { billing, clock } = capped(
    () => 0n,
    () => held,
  )
  const reserved = await billing.reserve(order(60n))
  if (reserved.kind !== 'reserved') throw new Error('refused')
  expect(await billing.take(order(50n))).toMatchObject({ kind: 'no-funds', available: nano(40n) })
  reserved.heldByTask()
  reserved.giveBack()
  expect(await billing.reserve(order(50n))).toMatchObject({ kind: 'no-funds', available: nano(40n) })
  held = 90n
  clock.advance(5_000)
  expect(await billing.take(order(20n))).toMatchObject({ kind: 'no-funds', available: nano(10n) })
  held = 0n
  clock.advance(5_000)
  expect(await billing.take(order(100n))).toMatchObject({ kind: 'hold' })
})
