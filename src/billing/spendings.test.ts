import { expect, test } from 'bun:test'
import { standingClock } from '../../test/support/movable-clock.ts'
import { nano } from '../base/money.ts'
import type { Billing, Ending, Hold, Order, Sale } from './billing.ts'
import { capSpending, type CappedBilling } from './caps.ts'
import { makeCountingBilling } from './counting.ts'

const noon = Date.UTC(2027, 0, 15, 12)
const ending: Ending = { status: 200, streamed: false, durationMs: 1, attempts: [] }
const sale = (price: bigint): Sale => ({ ...ending, basis: 'vendor', usage: {}, price: nano(price) })

/** An order under the cap of its key, which is 100 a day. */
function orderOf(keyId: string, amount: bigint): Order {
  return {
    accountId: 'acc',
    keyId,
    requestId: 'req' as Order['requestId'],
    model: 'm',
    capability: 'chat',
    amount: nano(amount),
    caps: [{ of: { accountId: 'acc', keyId }, amount: nano(100n), period: 'day' }],
    priceVersion: 'v',
    startedAt: noon,
    deadline: 0,
  }
}

test('of more keys than are remembered, those with an open hold or an unbooked charge are not forgotten', async () => {
  const clock = standingClock(noon)
  const endings = { made: 0, booked: 0 }
  const books = { areAway: false }
  const read = () => (books.areAway ? Promise.reject(new Error('away')) : Promise.resolve(nano(0n)))
  const postingLater: Billing = { ...makeCountingBilling(), endings }
  const billing = capSpending(postingLater, { clock, spentSince: read, heldByTasks: read })
  const take = async (keyId: string, amount: bigint): Promise<Hold> => {
    const taken = await billing.take(orderOf(keyId, amount))
    if (taken.kind !== 'hold') throw new Error('refused')
    return taken.hold
  }

  await take('holding', 60n)
  const charged = await take('charged', 50n)
  endings.made = 1
  await charged.settle(sale(50n))
  const released = await take('idle', 50n)
  await released.release(ending)
  clock.advance(5_000)
  for (let keys = 0; keys < 10_000; keys++) await (await take(`key-${keys}`, 1n)).release(ending)

  // Without the books, a key is judged by what is remembered of it, and refused where nothing is.
  books.areAway = true
  expect(await billing.take(orderOf('holding', 50n))).toMatchObject({ kind: 'no-funds', available: nano(40n) })
  expect(await billing.take(orderOf('charged', 60n))).toMatchObject({ kind: 'no-funds', available: nano(50n) })
  expect(await billing.take(orderOf('idle', 1n)).catch(String)).toContain('cannot be checked')
  expect(await billing.take(orderOf('key-0', 1n))).toMatchObject({ kind: 'hold' })
})

/** Books of which a test says what they hold, and which count how often they are read as a whole. */
function booksOf(tasks: bigint, uncapped = makeCountingBilling()) {
  const books = { spent: 0n, tasks, areAway: false, readings: 0 }
  const read = (amount: bigint) => (books.areAway ? Promise.reject(new Error('away')) : Promise.resolve(nano(amount)))
  const clock = standingClock(noon)
  const parts = {
    clock,
    heldByTasks: () => read(books.tasks),
    spentSince() {
      books.readings++
      return read(books.spent)
    },
  }
  return { books, clock, billing: capSpending(uncapped, parts) }
}

async function orderTask(billing: CappedBilling, amount: bigint): Promise<void> {
  const reserved = await billing.reserve(orderOf('k', amount))
  if (reserved.kind !== 'reserved') throw new Error('refused')
  reserved.heldByTask()
}

test('what a task held can be spent again as soon as it has ended, on whichever node', async () => {
  const { books, billing } = booksOf(90n)
  expect(await billing.take(orderOf('k', 20n))).toMatchObject({ kind: 'no-funds', available: nano(10n) })
  Object.assign(books, { tasks: 0n, spent: 30n })
  expect(await billing.take(orderOf('k', 71n))).toMatchObject({ kind: 'no-funds', available: nano(70n) })
  expect(await billing.take(orderOf('k', 70n))).toMatchObject({ kind: 'hold' })
})

test('what a task held can be spent again under every cap that it counted against', async () => {
  const { books, billing } = booksOf(90n)
  const [ofKey] = orderOf('k', 1n).caps
  if (ofKey === undefined) throw new Error('no cap')
  const order = (amount: bigint) => ({ ...orderOf('k', amount), caps: [ofKey, { ...ofKey, of: { accountId: 'acc' } }] })
  expect(await billing.take(order(20n))).toMatchObject({ kind: 'no-funds', available: nano(10n) })
  books.tasks = 0n
  expect(await billing.take(order(20n))).toMatchObject({ kind: 'hold' })
})

test('a refusal names the cap that is exceeded, and not one whose tasks have ended since', async () => {
  let tasks = 90n
  const billing = capSpending(makeCountingBilling(), {
    clock: standingClock(noon),
    heldByTasks: ({ keyId }) => Promise.resolve(nano(keyId === undefined ? 0n : tasks)),
    spentSince: ({ keyId }) => Promise.resolve(nano(keyId === undefined ? 95n : 0n)),
  })
  const [ofKey] = orderOf('k', 1n).caps
  if (ofKey === undefined) throw new Error('no cap')
  const ofAccount = { ...ofKey, of: { accountId: 'acc' } }
  const order = { ...orderOf('k', 20n), caps: [ofKey, ofAccount] }
  expect(await billing.take(order)).toMatchObject({ kind: 'no-funds', available: nano(10n), cap: ofKey })
  tasks = 0n
  expect(await billing.take(order)).toEqual({ kind: 'no-funds', available: nano(5n), cap: ofAccount })
})

test('a task that has ended before the books were read again with it holds nothing any more', async () => {
  const { billing } = booksOf(0n)
  await orderTask(billing, 90n)
  expect(await billing.take(orderOf('k', 20n))).toMatchObject({ kind: 'hold' })
})

test('a charge that a reading found although it was not known to be booked counts once when it is', async () => {
  const endings = { made: 0, booked: 0 }
  const { books, clock, billing } = booksOf(0n, { ...makeCountingBilling(), endings })
  const taken = await billing.take(orderOf('k', 60n))
  if (taken.kind !== 'hold') throw new Error('refused')
  endings.made = 1
  await taken.hold.settle(sale(60n))
  // The commit is done, and its answer is on its way.
  books.spent = 60n
  clock.advance(5_000)
  expect(await billing.take(orderOf('k', 20n))).toMatchObject({ kind: 'no-funds', available: nano(0n) })
  endings.booked = 1
  for (let request = 0; request < 3; request++) {
    expect(await billing.take(orderOf('k', 41n))).toMatchObject({ kind: 'no-funds', available: nano(40n) })
  }
  expect(books.readings).toBe(3)
  expect(await billing.take(orderOf('k', 40n))).toMatchObject({ kind: 'hold' })
})

test('a cap that is used up is not read again for every request, not even while tasks run', async () => {
  const { books, billing } = booksOf(90n)
  for (let request = 0; request < 5; request++) {
    expect(await billing.take(orderOf('k', 20n))).toMatchObject({ kind: 'no-funds', available: nano(10n) })
  }
  expect(books.readings).toBe(1)
  books.tasks = 40n
  await Promise.all(Array.from({ length: 5 }, () => billing.take(orderOf('k', 61n))))
  expect(books.readings).toBe(2)
})

test('with the books away, tasks count with what they held at the last reading', async () => {
  const { books, billing } = booksOf(90n)
  await billing.take(orderOf('k', 1n))
  books.areAway = true
  expect(await billing.take(orderOf('k', 20n))).toMatchObject({ kind: 'no-funds', available: nano(9n) })
})
