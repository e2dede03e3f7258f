import { newOrderedId } from '../base/ids.ts'
import { json } from './rows.ts'
import type { AuditDetail, Queries, Tx } from './schema.ts'

/**
 * Who makes a change: `admin:` and the end of an operator's key, `cli`, `start`, or `webhooks` for a signing secret
 * that was made without a request for it. Every change of an account or key takes an actor and records it.
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

/** Records a change, inside its transaction. One that a cache of keys has to know of is `recordAccessChange`'s. */
export async function recordChange(tx: Tx, change: Omit<AuditRecord, 'id'>): Promise<void> {
  await tx
    .insertInto('audit')
    .values({ ...change, id: newOrderedId('aud', change.at), detail: json(change.detail) })
    .execute()
}

/**
 * Ends every change of what a key may do, inside its transaction: it also raises the revision that nodes poll, which
 * makes each of them forget all the keys it knows. A credit does not: where customers pay all the time, keys would be
 * read again every second, and payments would wait for each other. Called last, so that the single revision row is
 * locked as briefly as possible.
 */
export async function recordAccessChange(tx: Tx, change: Omit<AuditRecord, 'id'>): Promise<void> {
  await recordChange(tx, change)
  await tx
    .insertInto('revision')
    .values({ name: accessRevision, value: 1 })
    .onConflict((conflict) => conflict.column('name').doUpdateSet((eb) => ({ value: eb('revision.value', '+', 1) })))
    .execute()
}

/** Records an access change of some fields; `detail` holds those that were given. Does nothing where none was given. */
export async function recordAccessFields(tx: Tx, change: Omit<AuditRecord, 'id'>): Promise<void> {
  if (Object.keys(change.detail).length > 0) await recordAccessChange(tx, change)
}

/** Grows with every change of what a key may do. */
export async function readRevision(db: Queries): Promise<number> {
  const row = await db.selectFrom('revision').select('value').where('name', '=', accessRevision).executeTakeFirst()
  return row?.value ?? 0
}

/** A record's position in the order of `listAudit`. */
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
