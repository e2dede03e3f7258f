import { newOrderedId } from '../base/ids.ts'
import { json } from './rows.ts'
import type { AuditDetail, Queries, Tx } from './schema.ts'

/**
 * Who changes something: `admin:` and the end of a key, `cli`, `start`, or `webhooks` for a secret that nobody had asked for.
 * Every change of an account or key takes one, and records it.
 */
export type Actor = string

export type AuditRecord = {
  readonly id: string
  readonly at: number
  readonly actor: Actor
  readonly action: string
  readonly subject: string
  readonly detail: AuditDetail
}

// The revision that every cache of accounts and keys follows.
const accessRevision = 'access'

/**
 * Ends every change of accounts and keys, inside its transaction: what was done is written down, and the nodes that poll
 * the revision notice. Last, so that the one revision row is locked for as short as possible.
 */
export async function recordChange(tx: Tx, change: Omit<AuditRecord, 'id'>): Promise<void> {
  await tx
    .insertInto('audit')
    .values({ ...change, id: newOrderedId('aud', change.at), detail: json(change.detail) })
    .execute()
  await tx
    .insertInto('revision')
    .values({ name: accessRevision, value: 1 })
    .onConflict((conflict) => conflict.column('name').doUpdateSet((eb) => ({ value: eb('revision.value', '+', 1) })))
    .execute()
}

/** A change of some fields, of which `detail` has those that were given. Where none was, nobody has changed anything. */
export async function recordFields(tx: Tx, change: Omit<AuditRecord, 'id'>): Promise<void> {
  if (Object.keys(change.detail).length > 0) await recordChange(tx, change)
}

/** Grows with every change of accounts or keys. */
export async function readRevision(db: Queries): Promise<number> {
  const row = await db.selectFrom('revision').select('value').where('name', '=', accessRevision).executeTakeFirst()
  return row?.value ?? 0
}

/** Where a record stands in the order of the list. */
export async function placeOfAudit(db: Queries, id: string): Promise<{ at: number; id: string } | undefined> {
  return db.selectFrom('audit').select(['at', 'id']).where('id', '=', id).executeTakeFirst()
}

/** Newest first; `before` is the last record of the page before. */
export async function listAudit(
  db: Queries,
  page: { readonly limit: number; readonly before?: { readonly at: number; readonly id: string } },
): Promise<AuditRecord[]> {
  const { before } = page
  let query = db.selectFrom('audit').selectAll().orderBy('at', 'desc').orderBy('id', 'desc').limit(page.limit)
  if (before !== undefined) {
    query = query.where((eb) => eb(eb.refTuple('at', 'id'), '<', eb.tuple(before.at, before.id)))
  }
  return query.execute()
}
