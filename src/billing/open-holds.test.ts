import { expect, test } from 'bun:test'
import { flakyBooks } from '../../test/support/flaky-books.ts'
import { accountId } from '../../test/support/ledger.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { newRequestId } from '../base/ids.ts'
import { nano } from '../base/money.ts'
import { accountById } from '../store/accounts.ts'
import { Tally } from '../telemetry/tally.ts'
import type { Order, Sale } from './billing.ts'
import { trackOpenHolds } from './open-holds.ts'

const orderOf = (amount: bigint): Order => ({
  requestId: newRequestId(),
  accountId,
  keyId: 'key_1',
  model: 'gpt-x',
  capability: 'chat',
  amount: nano(amount),
  caps: [],
  priceVersion: 'v',
  startedAt: 0,
  deadline: Date.now() + 60_000,
})
const ending = { status: 502, streamed: false, durationMs: 1, attempts: [] }
const sale: Sale = { ...ending, status: 200, basis: 'vendor', usage: { input: 3 }, price: nano(40n) }

async function open() {
  const { billing: strict, ...books } = await flakyBooks()
  const tally = new Tally()
  const billing = trackOpenHolds(strict, tally)
  const take = async () => {
    const taken = await billing.take(orderOf(100n))
    if (taken.kind !== 'hold') throw new Error(taken.kind)
    return taken.hold
  }
  const counted = () => {
    const { byClass = [], chargedNano } = tally.capabilities.get('chat')?.models.get('gpt-x') ?? {}
    return { ended: byClass.reduce((sum, count) => sum + count, 0), chargedNano }
  }
  return { ...books, billing, take, counted, close: () => books.store.close() }
}

test('a hold is open until it ends, and is counted once even when it is released twice', async () => {
  const { store, billing, take, counted, close } = await open()
  const [sold, released] = [await take(), await take()]
  expect(billing.open).toBe(2)
  let isIdle = false
  const idle = billing.idle().then(() => (isIdle = true))
  expect(await sold.settle(sale)).toBe(nano(40n))
  await sold.release(ending)
  // A node that stops waits for the last hold, not only for the first.
  expect({ open: billing.open, isIdle, ...counted() }).toEqual({ open: 1, isIdle: false, ended: 1, chargedNano: 40 })
  await released.release(ending)
  await released.release(ending)
  await idle
  expect({ open: billing.open, ...counted() }).toEqual({ open: 0, ended: 2, chargedNano: 40 })
  expect(await accountById(store.db, accountId)).toMatchObject({ held: nano(0n) })
  await close()
})

test('a hold whose settlement failed stays open and uncounted until its release, which charges nothing', async () => {
  const { flaky, billing, take, counted, close } = await open()
  const hold = await take()
  flaky.isAway = true
  await thrownBy(hold.settle(sale))
  expect({ open: billing.open, ...counted() }).toEqual({ open: 1, ended: 0, chargedNano: undefined })
  flaky.isAway = false
  await hold.release(ending)
  expect({ open: billing.open, ...counted() }).toEqual({ open: 0, ended: 1, chargedNano: 0 })
  await close()
})

test('a hold whose settlement is in doubt is counted as charged', async () => {
  const { flaky, billing, take, counted, comeBack, close } = await open()
  const hold = await take()
  Object.assign(flaky, { answersToLose: 1, staysAway: true })
  expect(await hold.settle(sale)).toBe(nano(40n))
  await comeBack()
  expect({ open: billing.open, ...counted() }).toEqual({ open: 0, ended: 1, chargedNano: 40 })
  await close()
})

test('a refused order opens no hold', async () => {
  const { billing, counted, close } = await open()
  expect(await billing.take(orderOf(10_000n))).toMatchObject({ kind: 'no-funds' })
  expect({ open: billing.open, ...counted() }).toEqual({ open: 0, ended: 0, chargedNano: undefined })
  await billing.idle()
  await close()
})
