import { nano, pico } from '../../src/base/money.ts'
import type { BillLine } from '../../src/billing/reconcile/bill.ts'
import type { PriceLists } from '../../src/billing/reconcile/credit.ts'
import { reconcile } from '../../src/billing/reconcile/reconcile.ts'
import type { PriceList, Rates } from '../../src/capabilities/usage.ts'
import { takeHold } from '../../src/store/holds.ts'
import { settleHold, type Settlement } from '../../src/store/ledger.ts'
import type { Store } from '../../src/store/open.ts'
import { attemptOf, holdOf, requestOf, settlementOf } from './ledger.ts'

/** Sold requests, and bills to reconcile them with, in small numbers. */

const empty = { tiers: [], perImage: {}, perSecond: {}, perVideo: {}, perVideoToken: {} } as const

export function listOf(version: string, rates: Rates): PriceList {
  return { version, rates, ...empty }
}

/** Customers pay twice what the vendor charges: a nano for input, two for output. */
export const lists: PriceLists = {
  prices: listOf('v1', { input: pico(2_000n), output: pico(4_000n) }),
  costs: listOf('v0', { input: pico(1_000n), output: pico(2_000n) }),
}

/** A second after the requests of `sold`. */
export const billedAt = requestOf('').createdAt + 1_000

export function line(id: string, cost: bigint, more: Partial<BillLine> = {}): BillLine {
  return { ref: `att_${id}`, cost: nano(cost), model: 'gpt-x-2026', ...more }
}

const priceLists = (_model: string, version: string) => (version === lists.prices.version ? lists : undefined)

export function look(store: Store, bill: readonly BillLine[], more: Partial<Parameters<typeof reconcile>[0]> = {}) {
  return reconcile({ store, bill, priceLists, requestMsMax: 3_600_000, ...more })
}

export async function sold(store: Store, id: string, price: bigint, more: Partial<Settlement> = {}): Promise<void> {
  await takeHold(store, holdOf(id, 100n, { deadline: billedAt + 1_000_000_000 }))
  await settleHold(store, settlementOf(id, price, { attempts: [attemptOf(id, price / 2n)], ...more }))
}
