import { hash } from 'node:crypto'
import type { Insertable } from 'kysely'
import type { Nano } from '../base/money.ts'
import type { Queries, Tx, TxnTable } from './schema.ts'
import type { Write } from './together.ts'

/**
 * Postings stand in chains: each carries its place and a hash over its content, its entries and the hash before it, so
 * that a row that was changed, removed or slipped in later shows. It shows a careless or a hidden edit, not one by
 * somebody who writes every hash behind it anew: against that the ends of the chains are to be kept elsewhere.
 *
 * A chain belongs to whoever posts one after another anyway, so that it makes nobody wait who would not: a node's turns
 * to the node, everything that is booked at once to its account, and repairs to the platform.
 */
export const platformChain = 'platform'

export type EntryRow = { readonly txn_id: string; readonly account: string; readonly amount: Nano }
export type TxnRow = Required<Insertable<TxnTable>>
export type UnlinkedTxn = Omit<TxnRow, 'chain' | 'seq' | 'hash'>

/** The end of a chain, and what is being added to it. */
export class Chain {
  readonly #id: string
  #seq: number
  #hash: string

  constructor(end: { readonly id: string; readonly seq: number; readonly hash: string }) {
    this.#id = end.id
    this.#seq = end.seq
    this.#hash = end.hash
  }

  add(txn: UnlinkedTxn, entries: readonly EntryRow[]): TxnRow {
    this.#seq++
    this.#hash = hashOf({ chain: this.#id, seq: this.#seq, before: this.#hash }, txn, entries)
    return { ...txn, chain: this.#id, seq: this.#seq, hash: this.#hash }
  }

  /** Keeps the new end; in the same transaction as what was added. */
  end(db: Queries): Write {
    return db.updateTable('chain').set({ seq: this.#seq, hash: this.#hash }).where('id', '=', this.#id)
  }
}

/**
 * The chain is ours until the transaction ends. First of all locks but the hold's own: whoever took an account's row
 * before its chain could wait for somebody who waits for that row.
 */
export async function lockChain(tx: Tx, id: string): Promise<Chain> {
  const end = await tx
    .insertInto('chain')
    .values({ id, seq: 0, hash: '' })
    // An update that changes nothing locks the row and reads what the last holder of it wrote.
    .onConflict((conflict) => conflict.column('id').doUpdateSet((eb) => ({ seq: eb.ref('chain.seq') })))
    .returning(['id', 'seq', 'hash'])
    .executeTakeFirstOrThrow()
  return new Chain(end)
}

export type Place = { readonly chain: string; readonly seq: number; readonly before: string }

/** Over every column, in this order for ever: a new column of `txn` is not part of it. */
export function hashOf(place: Place, txn: UnlinkedTxn, entries: readonly EntryRow[]): string {
  const moved = entries.map(({ account, amount }) => `${account} ${amount}`).toSorted()
  const content = JSON.stringify([
    place.before,
    place.chain,
    place.seq,
    txn.id,
    txn.kind,
    txn.hold_id,
    txn.price_version,
    txn.usage,
    txn.basis,
    txn.note,
    txn.created_at,
    ...moved,
  ])
  return hash('sha256', content, 'base64url')
}
