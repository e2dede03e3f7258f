import { hash } from 'node:crypto'
import type { Insertable } from 'kysely'
import type { Nano } from '../base/money.ts'
import type { Queries, Tx, TxnTable } from './schema.ts'
import type { Write } from './writes.ts'

/**
 * Postings are linked in hash chains: each carries its place and a hash over its content, its entries and the hash
 * before it, so that a row that was changed, removed or inserted later is detected. This catches a careless or hidden
 * edit, but not an editor who recomputes every later hash; against that, keep the ends of the chains elsewhere.
 *
 * Each chain belongs to a writer that posts sequentially anyway, so that chaining adds no waiting: a node's turns use
 * the node's chain, everything booked at once its account's, and repairs the platform's.
 */
export const platformChain = 'platform'

export type EntryRow = { readonly txn_id: string; readonly account: string; readonly amount: Nano }
export type TxnRow = Required<Insertable<TxnTable>>
export type UnlinkedTxn = Omit<TxnRow, 'chain' | 'seq' | 'hash'>

/** The current end of a chain, to which postings are added. */
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

  /** The write that stores the new end, in the transaction that inserts what was added. */
  end(db: Queries): Write {
    return db.updateTable('chain').set({ seq: this.#seq, hash: this.#hash }).where('id', '=', this.#id)
  }
}

/**
 * Locks the chain until the transaction ends. This lock is taken before all others but the hold's own: a transaction
 * that locked an account's row before its chain could deadlock with one that waits for that row.
 */
export async function lockChain(tx: Tx, id: string): Promise<Chain> {
  const end = await tx
    .insertInto('chain')
    .values({ id, seq: 0, hash: '' })
    // An update that changes nothing locks the row and reads what its last holder wrote.
    .onConflict((conflict) => conflict.column('id').doUpdateSet((eb) => ({ seq: eb.ref('chain.seq') })))
    .returning(['id', 'seq', 'hash'])
    .executeTakeFirstOrThrow()
  return new Chain(end)
}

export type Place = { readonly chain: string; readonly seq: number; readonly before: string }

/** The columns and their order are fixed, since stored hashes depend on them: a new column of `txn` is not hashed. */
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
