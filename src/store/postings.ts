import { type Nano, nano } from '../base/money.ts'
import type { Usage } from '../capabilities/usage.ts'
import type { Chain, EntryRow } from './chain.ts'
import type { AttemptRecord } from './requests.ts'
import { json } from './rows.ts'
import type { Basis, Tx, TxnKind } from './schema.ts'
import type { Write } from './writes.ts'

/** Money moved from some accounts to others: one txn and its entries, which sum to zero. */
export type LedgerPosting = {
  readonly id: string
  readonly kind: TxnKind
  readonly basis: Basis
  readonly now: number
  readonly entries: Entries
  readonly holdId?: string
  readonly priceVersion?: string
  readonly usage?: Usage | null
  readonly note?: string | null
}

/**
 * The writes that append a posting to a chain: double entry, never changed afterwards. A statement takes only one
 * posting, since each updates the end of the chain.
 */
export function postingWrites(tx: Tx, chain: Chain, posting: LedgerPosting): Write[] {
  const rows = posting.entries.rows(posting.id)
  const unlinked = {
    id: posting.id,
    kind: posting.kind,
    hold_id: posting.holdId ?? null,
    price_version: posting.priceVersion ?? null,
    usage: json(posting.usage ?? null),
    basis: posting.basis,
    note: posting.note ?? null,
    created_at: posting.now,
  }
  const txn = tx.insertInto('txn').values(chain.add(unlinked, rows))
  const writes = [txn, chain.end(tx)]
  return rows.length === 0 ? writes : [...writes, tx.insertInto('entry').values(rows)]
}

/** Gathers entries: an account that is touched twice in one posting gets one row with the sum. */
export class Entries extends Map<string, Nano> {
  move(from: string, to: string, amount: Nano): void {
    if (amount === 0n) return
    this.set(from, nano((this.get(from) ?? 0n) - amount))
    this.set(to, nano((this.get(to) ?? 0n) + amount))
  }

  /**
   * The rows of one txn. The assertion stays on in production: an unbalanced posting is a bug in our arithmetic, and
   * stopping is cheaper than a ledger that lies.
   */
  rows(txnId: string): EntryRow[] {
    const rows: EntryRow[] = []
    let sum = 0n
    for (const [account, amount] of this) {
      sum += amount
      if (amount !== 0n) rows.push({ txn_id: txnId, account, amount })
    }
    if (sum !== 0n) throw new Error(`posting ${txnId} is off by ${sum} nano`)
    return rows
  }
}

/** A sale as strict and leased billing book it: what the customer pays, what no customer pays, what vendors get. */
export type Sold = {
  readonly accountId: string
  readonly model: string
  readonly charge: Nano
  readonly excess: Nano
  readonly excessTo?: ExcessTo
  readonly attempts: readonly AttemptRecord[]
}

/** The ledger account of a cost that no customer pays: our loss, or suspense until an operator clears it up. */
export type ExcessTo = 'platform:loss' | 'suspense'

export function saleEntries({ accountId, model, charge, excess, excessTo = 'platform:loss', attempts }: Sold): Entries {
  const entries = new Entries()
  const revenue = `revenue:${model}`
  entries.move(`cust:${accountId}`, revenue, charge)
  entries.move(excessTo, revenue, excess)
  for (const { vendor, vendorCost, delivered } of attempts) {
    entries.move(delivered ? `cost:${vendor}` : 'platform:loss', `payable:${vendor}`, vendorCost)
  }
  return entries
}

/**
 * The customer pays up to the hold. A price beyond it by the vendor's count is a cost that is booked as excess; one by
 * our estimate is only a guess, and is dropped.
 */
export function chargeWithin(held: Nano, price: Nano, basis: Basis): { charge: Nano; excess: Nano } {
  const charge = price < held ? price : held
  return { charge, excess: nano(basis === 'estimated' ? 0n : price - charge) }
}
