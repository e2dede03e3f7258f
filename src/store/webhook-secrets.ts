import { newOrderedId } from '../base/ids.ts'
import { type Actor, recordChange } from './audit.ts'
import { locked } from './locks.ts'
import type { Store } from './open.ts'
import type { Queries, Tx } from './schema.ts'
import { isPostgres } from './writes.ts'

/** The sealed secrets that sign an account's webhooks now, the newest first. */
export async function sealedSecrets(db: Queries, accountId: string, now: number): Promise<string[]> {
  const rows = await liveSecrets(db, accountId, now).select('sealed').execute()
  return rows.map(({ sealed }) => sealed)
}

function liveSecrets(db: Queries, accountId: string, now: number) {
  return db
    .selectFrom('webhook_secret')
    .where('account_id', '=', accountId)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
}

export type NewSecret = { readonly accountId: string; readonly sealed: string; readonly actor: Actor }

/** Replaces an account's secret; the old one goes on signing beside the new one for `keepOldMs`. */
export async function replaceSecret(
  store: Store,
  secret: NewSecret & { readonly keepOldMs: number; readonly liveMax: number },
): Promise<'replaced' | 'absent'> {
  return store.transaction(async (tx) => {
    const now = store.now()
    if (!(await lockAccount(tx, secret.accountId, 'alone'))) return 'absent'
    await tx
      .updateTable('webhook_secret')
      .set({ expires_at: now + secret.keepOldMs })
      .where('account_id', '=', secret.accountId)
      .where('expires_at', 'is', null)
      .execute()
    await tx
      .insertInto('webhook_secret')
      .values(rowOf(secret, newOrderedId('whs', now), now))
      .execute()
    await dropOthers(tx, secret, now)
    await recordChange(tx, {
      at: now,
      actor: secret.actor,
      action: 'webhook-secret.replace',
      subject: secret.accountId,
      detail: {},
    })
    return 'replaced'
  })
}

/**
 * Adds a secret to an account that has none; where it has one by now, nothing changes. Of two nodes that add one at
 * once, the second finds the id taken. They take no exclusive lock on the account's row, so that billing the account
 * does not wait for them.
 */
export async function addFirstSecret(store: Store, secret: NewSecret): Promise<void> {
  await store.transaction(async (tx) => {
    const now = store.now()
    if (!(await lockAccount(tx, secret.accountId, 'beside-others'))) return
    if ((await sealedSecrets(tx, secret.accountId, now)).length > 0) return
    const added = await tx
      .insertInto('webhook_secret')
      .values(rowOf(secret, `whs_first_${secret.accountId}`, now))
      .onConflict((conflict) => conflict.column('id').doNothing())
      .returning('id')
      .executeTakeFirst()
    if (added === undefined) return
    await recordChange(tx, {
      at: now,
      actor: secret.actor,
      action: 'webhook-secret.create',
      subject: secret.accountId,
      detail: {},
    })
  })
}

/**
 * Replacing a secret locks the account exclusively. Adding the first one shares the account with others, such as
 * billing, but not with a replacement.
 */
async function lockAccount(tx: Tx, id: string, company: 'alone' | 'beside-others'): Promise<boolean> {
  const account = tx.selectFrom('account').select('id').where('id', '=', id)
  const isShared = company === 'beside-others' && isPostgres(tx)
  const row = await (isShared ? account.forKeyShare() : locked(tx, account)).executeTakeFirst()
  return row !== undefined
}

function rowOf({ accountId, sealed }: NewSecret, id: string, now: number) {
  return { id, account_id: accountId, sealed, created_at: now, expires_at: null }
}

/** Deletes the expired secrets, and the oldest ones where secrets are replaced faster than they expire. */
async function dropOthers(tx: Tx, by: { accountId: string; liveMax: number }, now: number): Promise<void> {
  const kept = liveSecrets(tx, by.accountId, now).select('id').limit(by.liveMax)
  await tx.deleteFrom('webhook_secret').where('account_id', '=', by.accountId).where('id', 'not in', kept).execute()
}
