import { expect, test } from 'bun:test'
import { standingClock } from '../../test/support/movable-clock.ts'
import { nano } from '../base/money.ts'
import type { Billing, Ending, Hold, Order, Sale } from './billing.ts'
import { capSpending } from './caps.ts'
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
