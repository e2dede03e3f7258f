import type { Nano } from '../base/money.ts'
import type { Queries } from './schema.ts'

/** Money that was paid in, or taken back: one posting of the ledger. */
export type BookedCredit = {
  readonly id: string
  readonly amount: Nano
  /** The ledger account that the money came from. */
  readonly source: string
  readonly note: string | null
  readonly at: number
}

/** A credit's position in its account's chain. */
export async function placeOfCredit(
  db: Queries,
  { accountId, id }: { readonly accountId: string; readonly id: string },
): Promise<number | undefined> {
  const row = await credits(db, accountId).select('txn.seq').where('txn.id', '=', id).executeTakeFirst()
  return row?.seq ?? undefined
}

/** Newest first; `before` is the position of the last credit of the page before. An index has credits alone. */
export async function listCredits(
  db: Queries,
  page: { readonly accountId: string; readonly limit: number; readonly before?: number },
): Promise<BookedCredit[]> {
  const { accountId, limit, before } = page
  const customer = `cust:${accountId}`
  let query = credits(db, accountId)
    .innerJoin('entry as paid', (join) => join.onRef('paid.txn_id', '=', 'txn.id').on('paid.account', '=', customer))
    .innerJoin('entry as from', (join) => join.onRef('from.txn_id', '=', 'txn.id').on('from.account', '!=', customer))
    .select(['txn.id', 'txn.note', 'txn.created_at', 'paid.amount', 'from.account'])
    .orderBy('txn.seq', 'desc')
    .limit(limit)
  if (before !== undefined) query = query.where('txn.seq', '<', before)
  const rows = await query.execute()
  return rows.map(({ id, amount, account: source, note, created_at: at }) => ({ id, amount, source, note, at }))
}

function credits(db: Queries, accountId: string) {
  return db.selectFrom('txn').where('txn.chain', '=', accountId).where('txn.kind', '=', 'credit')
}
