import { newId } from '../base/ids.ts'
import { formatDollars, type Nano, nano, zeroNano } from '../base/money.ts'
import { type Actor, recordChange, recordAccessFields } from './audit.ts'
import { lockChain } from './chain.ts'
import { isUniqueViolation } from './faults.ts'
import type { Transactor } from './transactor.ts'
import { Entries, postingWrites } from './postings.ts'
import type { Store } from './open.ts'
import type { AccountTable, CapPeriod, Mode, Queries, Tx } from './schema.ts'
import { executeWrites } from './writes.ts'

export type Cap = { readonly amount: Nano; readonly period: CapPeriod }

export type Account = {
  readonly id: string
  readonly name: string
  readonly mode: Mode
  readonly unlimited: boolean
  readonly enabled: boolean
  readonly posted: Nano
  readonly held: Nano
  readonly cap: Cap | null
  readonly createdAt: number
}

/** The ledger account that a credit comes from: money paid in by hand, or given away. */
export type CreditSource = 'cash:manual' | 'promo'

/** Sandbox play money is given away; real money was paid in. */
export function creditSourceIn(mode: Mode): CreditSource {
  return mode === 'sandbox' ? 'promo' : 'cash:manual'
}

export type NewAccount = {
  readonly id: string
  readonly name: string
  readonly mode: Mode
  readonly actor: Actor
  readonly unlimited?: boolean
  /** Posted in the transaction that creates the account. */
  readonly credit?: { readonly amount: Nano; readonly source: CreditSource }
}

export async function createAccount(
  store: Transactor,
  account: NewAccount,
): Promise<{ outcome: 'created'; account: Account } | { outcome: 'name-taken' }> {
  return store.transaction(async (tx) => {
    const now = store.now()
    const inserted = await tx
      .insertInto('account')
      .values({
        id: account.id,
        name: account.name,
        mode: account.mode,
        unlimited: account.unlimited ?? false,
        enabled: true,
        posted: zeroNano,
        held: zeroNano,
        cap_amount: null,
        cap_period: null,
        created_at: now,
      })
      .onConflict((conflict) => conflict.columns(['mode', 'name']).doNothing())
      .returning('id')
      .executeTakeFirst()
    if (inserted === undefined) return { outcome: 'name-taken' }

    if (account.credit !== undefined && account.credit.amount !== zeroNano) {
      const first = { ...account.credit, accountId: account.id, actor: account.actor, now }
      const { outcome } = await creditIn(tx, first)
      if (outcome !== 'credited') throw new Error(`the first credit of account ${account.id} is not booked: ${outcome}`)
    }
    await recordChange(tx, {
      at: now,
      actor: account.actor,
      action: 'account.create',
      subject: account.id,
      detail: {
        name: account.name,
        mode: account.mode,
        unlimited: account.unlimited ?? false,
        ...(account.credit !== undefined && { credit: formatDollars(account.credit.amount) }),
      },
    })
    const row = await tx.selectFrom('account').selectAll().where('id', '=', account.id).executeTakeFirstOrThrow()
    return { outcome: 'created', account: toAccount(row) }
  })
}

export type Credit = {
  readonly accountId: string
  /** A negative amount corrects the balance down, never below zero. */
  readonly amount: Nano
  readonly source: CreditSource
  readonly actor: Actor
  readonly note?: string
  /** A caller that may retry gives its own id, so that the credit is posted once. */
  readonly id?: string
}

export type Credited =
  | { outcome: 'credited' | 'repeated'; account: Account }
  | { outcome: 'below-zero'; available: Nano }
  | { outcome: 'absent' }
  /** The id was used for another credit. */
  | { outcome: 'conflict' }

export async function credit(store: Store, request: Credit): Promise<Credited> {
  try {
    return await store.transaction((tx) => creditAudited(tx, request, store.now()))
  } catch (thrown) {
    // The lock is the account's own: which of several accounts has the id is decided by the unique index.
    if (request.id !== undefined && isUniqueViolation(thrown)) return { outcome: 'conflict' }
    throw thrown
  }
}

async function creditAudited(tx: Tx, request: Credit, now: number): Promise<Credited> {
  const outcome = await creditIn(tx, { ...request, now })
  if (outcome.outcome !== 'credited') return outcome
  await recordChange(tx, {
    at: now,
    actor: request.actor,
    action: 'account.credit',
    subject: request.accountId,
    detail: { amount: formatDollars(request.amount), source: request.source, note: request.note ?? null },
  })
  return outcome
}

async function repeated(tx: Tx, request: Credit, id: string): Promise<Credited | undefined> {
  const entries = await tx.selectFrom('entry').select(['account', 'amount']).where('txn_id', '=', id).execute()
  if (entries.length === 0) return undefined
  const same = entries.some((e) => e.account === `cust:${request.accountId}` && e.amount === request.amount)
  const account = same ? await accountById(tx, request.accountId) : undefined
  return account === undefined ? { outcome: 'conflict' } : { outcome: 'repeated', account }
}

async function creditIn(tx: Tx, request: Credit & { readonly now: number }): Promise<Credited> {
  if (request.amount === zeroNano) throw new Error('a credit of nothing')
  const chain = await lockChain(tx, request.accountId)
  // Looked for under the lock, so that of two credits with one id at once the second finds the first.
  const before = request.id === undefined ? undefined : await repeated(tx, request, request.id)
  if (before !== undefined) return before
  // Locked first, so that a refusal names what there was when it was decided.
  const account = await lockAccount(tx, request.accountId)
  if (account === undefined) return { outcome: 'absent' }
  const left = available(account)
  if (!account.unlimited && left + request.amount < 0n) return { outcome: 'below-zero', available: left }
  const row = await tx
    .updateTable('account')
    .set((eb) => ({ posted: eb('posted', '+', request.amount) }))
    .where('id', '=', request.accountId)
    .returningAll()
    .executeTakeFirstOrThrow()
  const entries = new Entries()
  entries.move(request.source, `cust:${request.accountId}`, request.amount)
  const id = request.id ?? newId('txn')
  const note = request.note ?? null
  await executeWrites(
    tx,
    postingWrites(tx, chain, { id, kind: 'credit', basis: 'manual', note, now: request.now, entries }),
  )
  return { outcome: 'credited', account: toAccount(row) }
}

export type AccountChange = {
  readonly id: string
  readonly actor: Actor
  readonly name?: string | undefined
  readonly enabled?: boolean | undefined
  readonly unlimited?: boolean | undefined
  readonly cap?: Cap | null | undefined
}

/** `below-zero`: an unlimited account that owes, or of which more is held than it has, cannot be made limited. */
export type AccountChanged =
  | { outcome: 'changed'; account: Account }
  | { outcome: 'absent' }
  | { outcome: 'name-taken' }
  | { outcome: 'below-zero'; posted: Nano; held: Nano }

export async function changeAccount(store: Store, change: AccountChange): Promise<AccountChanged> {
  try {
    return await store.transaction((tx) => changeIn(tx, change, store.now()))
  } catch (thrown) {
    // The unique index decides, not a lookup beforehand, because another account may get the same name at this moment.
    if (isUniqueViolation(thrown)) return { outcome: 'name-taken' }
    throw thrown
  }
}

async function changeIn(tx: Tx, change: AccountChange, now: number): Promise<AccountChanged> {
  // Locked first, so that what the check sees is still true when the change is written.
  const before = await lockAccount(tx, change.id)
  if (before === undefined) return { outcome: 'absent' }
  if (change.unlimited === false && available(before) < 0n) {
    return { outcome: 'below-zero', posted: before.posted, held: before.held }
  }
  const cap = change.cap === undefined ? before.cap : change.cap
  const row = await tx
    .updateTable('account')
    .set({
      name: change.name ?? before.name,
      enabled: change.enabled ?? before.enabled,
      unlimited: change.unlimited ?? before.unlimited,
      cap_amount: cap?.amount ?? null,
      cap_period: cap?.period ?? null,
    })
    .where('id', '=', change.id)
    .returningAll()
    .executeTakeFirstOrThrow()
  const detail = {
    ...(change.name !== undefined && { name: change.name }),
    ...(change.enabled !== undefined && { enabled: change.enabled }),
    ...(change.unlimited !== undefined && { unlimited: change.unlimited }),
    ...(change.cap !== undefined && { cap: showCap(change.cap) }),
  }
  const { id: subject, actor } = change
  await recordAccessFields(tx, { at: now, actor, action: 'account.change', subject, detail })
  return { outcome: 'changed', account: toAccount(row) }
}

/** An update that changes nothing locks the row on both engines; SQLite has no FOR UPDATE. */
async function lockAccount(tx: Tx, id: string): Promise<Account | undefined> {
  const row = await tx
    .updateTable('account')
    .set((eb) => ({ held: eb.ref('held') }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()
  return row && toAccount(row)
}

export async function accountById(db: Queries, id: string): Promise<Account | undefined> {
  const row = await db.selectFrom('account').selectAll().where('id', '=', id).executeTakeFirst()
  return row && toAccount(row)
}

export async function accountByName(
  db: Queries,
  by: { readonly mode: Mode; readonly name: string },
): Promise<Account | undefined> {
  const row = await db
    .selectFrom('account')
    .selectAll()
    .where('mode', '=', by.mode)
    .where('name', '=', by.name)
    .executeTakeFirst()
  return row && toAccount(row)
}

/** Whether the installation has been used in this mode. */
export async function anyAccount(db: Queries, mode: Mode): Promise<boolean> {
  const row = await db.selectFrom('account').select('id').where('mode', '=', mode).limit(1).executeTakeFirst()
  return row !== undefined
}

export async function accountNames(db: Queries, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('account')
    .select(['id', 'name'])
    .where('id', 'in', [...new Set(ids)])
    .execute()
  return new Map(rows.map(({ id, name }) => [id, name]))
}

/** Finds an account by what an operator types: its id or, failing that, its name in this mode. */
export async function findAccount(
  db: Queries,
  by: { readonly mode: Mode; readonly nameOrId: string },
): Promise<Account | undefined> {
  return (await accountById(db, by.nameOrId)) ?? (await accountByName(db, { mode: by.mode, name: by.nameOrId }))
}

/** By id, ascending; `after` is the last id of the page before. */
export async function listAccounts(
  db: Queries,
  page: { readonly limit: number; readonly after?: string | undefined; readonly mode?: Mode },
): Promise<Account[]> {
  let query = db.selectFrom('account').selectAll().orderBy('id').limit(page.limit)
  if (page.after !== undefined) query = query.where('id', '>', page.after)
  if (page.mode !== undefined) query = query.where('mode', '=', page.mode)
  return (await query.execute()).map(toAccount)
}

/** The part of the balance that new holds can take. */
export function available(account: { readonly posted: Nano; readonly held: Nano }): Nano {
  return nano(account.posted - account.held)
}

export function toCap(row: { cap_amount: Nano | null; cap_period: CapPeriod | null }): Cap | null {
  if (row.cap_amount === null || row.cap_period === null) return null
  return { amount: row.cap_amount, period: row.cap_period }
}

/** A cap in the form that operators see and write. */
export function showCap(cap: Cap | null) {
  return cap === null ? null : { amount: formatDollars(cap.amount), period: cap.period }
}

function toAccount(row: AccountTable): Account {
  return {
    id: row.id,
    name: row.name,
    mode: row.mode,
    unlimited: row.unlimited,
    enabled: row.enabled,
    posted: row.posted,
    held: row.held,
    cap: toCap(row),
    createdAt: row.created_at,
  }
}
