import { type QueryCreator, sql } from 'kysely'
import type { Nano } from '../base/money.ts'
import { available } from './accounts.ts'
import type { Store } from './open.ts'
import type { HoldKind, HoldState, HoldTable, Queries, Schema, Tx } from './schema.ts'
import { isPostgres, type Write } from './writes.ts'

export type NewHold = {
  /** Made by us, never by a client. It is also the id of the posting that ends the hold, so it is posted only once. */
  readonly id: string
  readonly accountId: string
  readonly keyId: string
  readonly kind: HoldKind
  readonly amount: Nano
  /** The price list that the settlement will use, whatever changes in between. */
  readonly priceVersion: string
  /** From then on any node may void the hold. It is later than the request can possibly last. */
  readonly deadline: number
  readonly node: string
}

export type TakeHoldOutcome =
  | { outcome: 'held' }
  | { outcome: 'no-funds'; available: Nano }
  /** The account does not exist or is disabled. */
  | { outcome: 'no-account' }

/** `committing` is called just before the commit: from then on the hold may be taken, even if no answer arrives. */
export async function takeHold(store: Store, hold: NewHold, committing?: () => void): Promise<TakeHoldOutcome> {
  if (!isPostgres(store.db)) {
    return store.transaction(async (tx) => {
      const taken = await takeHoldIn(tx, hold, store.now())
      if (taken.outcome === 'held') committing?.()
      return taken
    })
  }
  // One statement is its own transaction: one round trip instead of four.
  const row = holdRow(hold, store.now())
  return takenOrRefused(store.db, hold, async () => {
    const inserted = await store.db.connection().execute((connection) => {
      committing?.()
      return connection
        .with('taken', (db) => takeFunds(db, hold).returning('id'))
        .insertInto('hold')
        .columns(holdColumns)
        .expression((db) =>
          db.selectFrom('taken').select((eb) => holdColumns.map((name) => eb.val(row[name]).as(name))),
        )
        .executeTakeFirst()
    })
    return inserted.numInsertedOrUpdatedRows === 1n
  })
}

/** Inserts the hold as void, so that it can no longer be taken. False where it has been taken already. */
export async function insertVoidHold(tx: Tx, hold: NewHold, now: number): Promise<boolean> {
  const inserted = await tx
    .insertInto('hold')
    .values({ ...holdRow(hold, now), state: 'void', ended_at: now })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id')
    .executeTakeFirst()
  return inserted !== undefined
}

/** For callers that begin something else in the same commit, such as a video task. */
export async function takeHoldIn(tx: Tx, hold: NewHold, now: number): Promise<TakeHoldOutcome> {
  const taken = await takenOrRefused(tx, hold, async () => {
    const { numUpdatedRows } = await takeFunds(tx, hold).executeTakeFirst()
    return numUpdatedRows === 1n
  })
  if (taken.outcome === 'held') await tx.insertInto('hold').values(holdRow(hold, now)).execute()
  return taken
}

/**
 * One conditional update decides: of any number of requests at once, only as many as the balance covers get through.
 */
function takeFunds(db: QueryCreator<Schema>, hold: NewHold) {
  if (hold.amount < 0n) throw new Error(`hold ${hold.id} is negative`)
  return db
    .updateTable('account')
    .set((eb) => ({ held: eb('held', '+', hold.amount) }))
    .where('id', '=', hold.accountId)
    .where('enabled', '=', true)
    .where(sql<boolean>`(unlimited or posted - held >= ${hold.amount})`)
}

const holdColumns = [
  'id',
  'account_id',
  'key_id',
  'kind',
  'amount',
  'price_version',
  'deadline',
  'state',
  'node',
  'created_at',
  'ended_at',
] as const satisfies (keyof HoldTable)[]

function holdRow(hold: NewHold, now: number): HoldTable {
  return {
    id: hold.id,
    account_id: hold.accountId,
    key_id: hold.keyId,
    kind: hold.kind,
    amount: hold.amount,
    price_version: hold.priceVersion,
    deadline: hold.deadline,
    state: 'open',
    node: hold.node,
    created_at: now,
    ended_at: null,
  }
}

/**
 * On PostgreSQL, other nodes may give money back between the statement that does not get it and the one that reads how
 * much there is: then it is tried again, so that no refusal names an amount that would have sufficed.
 */
async function takenOrRefused(db: Queries, hold: NewHold, take: () => Promise<boolean>): Promise<TakeHoldOutcome> {
  for (;;) {
    if (await take()) return { outcome: 'held' }
    const account = await db
      .selectFrom('account')
      .select(['posted', 'held', 'unlimited'])
      .where('id', '=', hold.accountId)
      .where('enabled', '=', true)
      .executeTakeFirst()
    if (account === undefined) return { outcome: 'no-account' }
    const left = available(account)
    if (!account.unlimited && left < hold.amount) return { outcome: 'no-funds', available: left }
  }
}

export type OpenHold = { readonly id: string; readonly accountId: string }
export type Ended = { readonly amount: Nano; readonly priceVersion: string }

/**
 * The compare-and-set that ends a hold. The caller that gets the row books the money in the same transaction; every
 * other caller gets undefined and must book nothing.
 */
export async function endHold(
  tx: Tx,
  hold: OpenHold,
  ending: { readonly state: Exclude<HoldState, 'open'>; readonly now: number },
): Promise<Ended | undefined> {
  const row = await tx
    .updateTable('hold')
    .set({ state: ending.state, ended_at: ending.now })
    .where('id', '=', hold.id)
    .where('account_id', '=', hold.accountId)
    .where('state', '=', 'open')
    .returning(['amount', 'price_version'])
    .executeTakeFirst()
  return row && { amount: row.amount, priceVersion: row.price_version }
}

/** What became of a hold that could not be ended again. */
export async function holdState(tx: Tx, hold: OpenHold): Promise<HoldState | 'absent'> {
  const row = await tx
    .selectFrom('hold')
    .select('state')
    .where('id', '=', hold.id)
    .where('account_id', '=', hold.accountId)
    .executeTakeFirst()
  return row?.state ?? 'absent'
}

/**
 * Gives the held amount back and takes the charge. Goes last in a transaction, because the account's row is the busy
 * one. The hold's foreign key guarantees that the row exists.
 */
export function releaseWrite(tx: Tx, accountId: string, held: Nano, charge: Nano): Write {
  if (charge < 0n || charge > held) throw new Error(`a charge of ${charge} nano on a hold of ${held}`)
  return tx
    .updateTable('account')
    .set((eb) => ({ posted: eb('posted', '-', charge), held: eb('held', '-', held) }))
    .where('id', '=', accountId)
}
