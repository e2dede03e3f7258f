import type { Selectable } from 'kysely'
import { unixSecondsOrNull } from '../base/moment.ts'
import { type Cap, showCap, toCap } from './accounts.ts'
import { type Actor, recordAccessChange, recordAccessFields } from './audit.ts'
import type { Transactor } from './transactor.ts'
import { locked } from './locks.ts'
import { isOfMode } from './mode.ts'
import type { Store } from './open.ts'
import { json } from './rows.ts'
import {
  keyLimits,
  type ApiKeyTable,
  type AuditDetail,
  type KeyLimit,
  type KeyLimits,
  type Metadata,
  type Mode,
  type Queries,
  type Scope,
  type Tx,
} from './schema.ts'

export type ApiKey = {
  readonly id: string
  readonly accountId: string
  /** The last four characters, for recognising a key that is never shown again. */
  readonly hint: string
  readonly name: string
  /** Exact ids or globs; null is every model. */
  readonly models: readonly string[] | null
  readonly limits: KeyLimits | null
  readonly cap: Cap | null
  readonly expiresAt: number | null
  readonly enabled: boolean
  readonly revokedAt: number | null
  readonly metadata: Metadata
  readonly createdAt: number
}

/** What authentication needs to know of a key's account; the balance is checked when a hold is taken. */
export type KeyAccount = {
  readonly id: string
  readonly mode: Mode
  readonly enabled: boolean
  readonly cap: Cap | null
}

/** How much an account, or one of its keys, may spend in a period. */
export type SpendingCap = Cap & { readonly of: { readonly accountId: string; readonly keyId?: string } }

export type NewKey = Omit<KeyChange, 'enabled'> & {
  readonly accountId: string
  /** Hex of the keyed hash. The key itself never comes here. */
  readonly digest: string
  readonly hint: string
}

/** Rejects where the account does not exist (by the foreign key) or the digest already does. */
export async function insertKey(store: Transactor, key: NewKey): Promise<ApiKey> {
  return store.transaction(async (tx) => {
    const now = store.now()
    const row = await tx
      .insertInto('api_key')
      .values({
        id: key.id,
        account_id: key.accountId,
        digest: key.digest,
        hint: key.hint,
        name: key.name ?? '',
        models: json(key.models ?? null),
        limits: json(key.limits ?? null),
        cap_amount: key.cap?.amount ?? null,
        cap_period: key.cap?.period ?? null,
        expires_at: key.expiresAt ?? null,
        enabled: true,
        revoked_at: null,
        metadata: json(key.metadata ?? {}),
        created_at: now,
      })
      .returningAll()
      .executeTakeFirstOrThrow()
    await recordAccessChange(tx, {
      at: now,
      actor: key.actor,
      action: 'key.create',
      subject: key.id,
      detail: { account: key.accountId, hint: key.hint, ...given(key) },
    })
    return toKey(row)
  })
}

/** The one query of authentication. The key may be disabled, expired or revoked: the caller decides. */
export async function keyByDigest(
  db: Queries,
  digest: string,
): Promise<{ key: ApiKey; account: KeyAccount } | undefined> {
  const row = await db
    .selectFrom('api_key')
    .innerJoin('account', 'account.id', 'api_key.account_id')
    .selectAll('api_key')
    .select([
      'account.mode as account_mode',
      'account.enabled as account_enabled',
      'account.cap_amount as account_cap_amount',
      'account.cap_period as account_cap_period',
    ])
    .where('api_key.digest', '=', digest)
    .executeTakeFirst()
  if (row === undefined) return undefined
  const account: KeyAccount = {
    id: row.account_id,
    mode: row.account_mode,
    enabled: row.account_enabled,
    cap: toCap({ cap_amount: row.account_cap_amount, cap_period: row.account_cap_period }),
  }
  return { key: toKey(row), account }
}

export async function keyById(db: Queries, id: string): Promise<ApiKey | undefined> {
  const row = await db.selectFrom('api_key').selectAll().where('id', '=', id).executeTakeFirst()
  return row && toKey(row)
}

/**
 * A scope narrowed to the account of a key; undefined if there is no such key. The account may be of the other mode: in
 * all accounts of this mode such a key would look as if it had never been used.
 */
export async function scopeOfKey(db: Queries, scope: Scope, id: string): Promise<Scope | undefined> {
  const key = await keyById(db, id)
  if (key === undefined) return undefined
  return scope === 'every-account' ? { accountId: key.accountId } : scope
}

/** By id, ascending; `after` is the last id of the page before. */
export async function listKeys(
  db: Queries,
  page: {
    readonly scope: Scope
    readonly mode?: Mode | undefined
    readonly limit: number
    readonly after?: string | undefined
  },
): Promise<ApiKey[]> {
  let query = db.selectFrom('api_key').selectAll().orderBy('id').limit(page.limit)
  if (page.mode !== undefined) query = query.where(isOfMode('api_key', page.mode))
  if (page.scope !== 'every-account') query = query.where('account_id', '=', page.scope.accountId)
  if (page.after !== undefined) query = query.where('id', '>', page.after)
  return (await query.execute()).map(toKey)
}

export type KeyChange = {
  readonly id: string
  readonly actor: Actor
  readonly name?: string | undefined
  readonly models?: readonly string[] | null | undefined
  readonly limits?: KeyLimits | null | undefined
  readonly cap?: Cap | null | undefined
  readonly expiresAt?: number | null | undefined
  readonly enabled?: boolean | undefined
  readonly metadata?: Metadata | undefined
}

/** Limits that depend on those from before; undefined leaves them alone. */
export type ChangeLimits = (before: KeyLimits | null) => KeyLimits | null | undefined

/** Changes only the given fields. Gives undefined for an unknown or a revoked key, which stays revoked. */
export async function changeKey(
  store: Store,
  { limits, ...fields }: Omit<KeyChange, 'limits'> & { readonly limits?: KeyChange['limits'] | ChangeLimits },
): Promise<ApiKey | undefined> {
  return store.transaction(async (tx) => {
    const changed = typeof limits === 'function' ? limits(await lockedLimits(tx, fields.id)) : limits
    const change: KeyChange = { ...fields, limits: changed }
    const { cap } = change
    const row = await tx
      .updateTable('api_key')
      .set({
        ...(change.name !== undefined && { name: change.name }),
        ...(change.models !== undefined && { models: json(change.models) }),
        ...(change.limits !== undefined && { limits: json(change.limits) }),
        ...(cap !== undefined && { cap_amount: cap?.amount ?? null, cap_period: cap?.period ?? null }),
        ...(change.expiresAt !== undefined && { expires_at: change.expiresAt }),
        ...(change.metadata !== undefined && { metadata: json(change.metadata) }),
        ...(change.enabled !== undefined && { enabled: change.enabled }),
        // An UPDATE must set at least one column, even where no field was given.
        id: change.id,
      })
      .where('id', '=', change.id)
      .where('revoked_at', 'is', null)
      .returningAll()
      .executeTakeFirst()
    if (row === undefined) return undefined
    const { id: subject, actor } = change
    await recordAccessFields(tx, { at: store.now(), actor, action: 'key.change', subject, detail: given(change) })
    return toKey(row)
  })
}

/** Locked, so that of two changes at once the second one builds on the first. */
async function lockedLimits(tx: Tx, id: string): Promise<KeyLimits | null> {
  const key = tx.selectFrom('api_key').select('limits').where('id', '=', id)
  return (await locked(tx, key).executeTakeFirst())?.limits ?? null
}

/** The given fields of a key for the audit, spelled as in the operator's API, where the audit is read. */
function given(to: Omit<KeyChange, 'id'>): AuditDetail {
  const { name, models, limits, cap, expiresAt, metadata, enabled } = to
  return {
    ...(name !== undefined && { name }),
    ...(models !== undefined && { models }),
    ...(limits !== undefined && { limits: showLimits(limits) }),
    ...(cap !== undefined && { cap: showCap(cap) }),
    ...(expiresAt !== undefined && { expires_at: unixSecondsOrNull(expiresAt) }),
    ...(metadata !== undefined && { metadata }),
    ...(enabled !== undefined && { enabled }),
  }
}

/** The names under which operators see and write limits. */
export const limitNames = {
  requestsPerMinute: 'requests_per_minute',
  tokensPerMinute: 'tokens_per_minute',
  concurrent: 'concurrent',
} as const satisfies Record<KeyLimit, string>

export function showLimits(limits: KeyLimits | null): { readonly [name: string]: number | null } | null {
  return limits && Object.fromEntries(keyLimits.map((limit) => [limitNames[limit], limits[limit] ?? null]))
}

/** Revokes a key for good; its row stays for the records that name it. Gives whether this call revoked it. */
export async function revokeKey(
  store: Store,
  revocation: { readonly id: string; readonly actor: Actor },
): Promise<boolean> {
  return store.transaction(async (tx) => {
    const now = store.now()
    const row = await tx
      .updateTable('api_key')
      .set({ revoked_at: now, enabled: false })
      .where('id', '=', revocation.id)
      .where('revoked_at', 'is', null)
      .returning('hint')
      .executeTakeFirst()
    if (row === undefined) return false
    await recordAccessChange(tx, {
      at: now,
      actor: revocation.actor,
      action: 'key.revoke',
      subject: revocation.id,
      detail: { hint: row.hint },
    })
    return true
  })
}

/** Makes a key valid again that the operator gives at a start, even after it was revoked or has expired. */
export async function reinstateKey(
  store: Transactor,
  reinstatement: { readonly id: string; readonly actor: Actor },
): Promise<void> {
  const { id, actor } = reinstatement
  await store.transaction(async (tx) => {
    const now = store.now()
    await tx.updateTable('api_key').set({ revoked_at: null, enabled: true }).where('id', '=', id).execute()
    const { numUpdatedRows: unexpired } = await tx
      .updateTable('api_key')
      .set({ expires_at: null })
      .where('id', '=', id)
      .where('expires_at', '<=', now)
      .executeTakeFirst()
    const detail = unexpired > 0n ? { expires_at: null } : {}
    await recordAccessChange(tx, { at: now, actor, action: 'key.reinstate', subject: id, detail })
  })
}

function toKey(row: Selectable<ApiKeyTable>): ApiKey {
  return {
    id: row.id,
    accountId: row.account_id,
    hint: row.hint,
    name: row.name,
    models: row.models,
    limits: row.limits,
    cap: toCap(row),
    expiresAt: row.expires_at,
    enabled: row.enabled,
    revokedAt: row.revoked_at,
    metadata: row.metadata,
    createdAt: row.created_at,
  }
}
