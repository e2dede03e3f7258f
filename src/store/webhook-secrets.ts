import { newOrderedId } from '../base/ids.ts'
import { type Actor, recordChange } from './audit.ts'
import type { Store } from './open.ts'
import type { Queries, Tx } from './schema.ts'

/** The secrets of an account that sign now, sealed, the newest first. */
export async function sealedSecrets(db: Queries, accountId: string, now: number): Promise<string[]> {
  const rows = await db
    .selectFrom('webhook_secret')
    .select('sealed')
    .where('account_id', '=', accountId)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute()
  return rows.map(({ sealed }) => sealed)
}

export type NewSecret = { readonly accountId: string; readonly sealed: string; readonly actor: Actor }

/** Puts another in the place of an account's secret, which goes on signing beside it for so long. */
export async function replaceSecret(
  store: Store,
  secret: NewSecret & { readonly keepOldMs: number; readonly liveMax: number },
): Promise<'replaced' | 'absent'> {
  return store.transaction(async (tx) => {
    const now = store.now()
    if (!(await lockAccount(tx, secret.accountId))) return 'absent'
    await tx
      .updateTable('webhook_secret')
      .set({ expires_at: now + secret.keepOldMs })
      .where('account_id', '=', secret.accountId)
      .where('expires_at', 'is', null)
      .execute()
    await insertSecret(tx, secret, now)
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

/** A secret for an account that has none; where it has one by now, nothing changes. */
export async function addFirstSecret(store: Store, secret: NewSecret): Promise<void> {
  await store.transaction(async (tx) => {
    const now = store.now()
    if (!(await lockAccount(tx, secret.accountId))) return
    if ((await sealedSecrets(tx, secret.accountId, now)).length > 0) return
    await insertSecret(tx, secret, now)
    await recordChange(tx, {
      at: now,
      actor: secret.actor,
      action: 'webhook-secret.create',
      subject: secret.accountId,
      detail: {},
    })
  })
}

/** Of two that change an account's secrets at once, one waits. */
async function lockAccount(tx: Tx, accountId: string): Promise<boolean> {
  const row = await tx
    .updateTable('account')
    // An update that changes nothing locks the row, on both engines.
    .set((eb) => ({ name: eb.ref('name') }))
    .where('id', '=', accountId)
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

async function insertSecret(tx: Tx, { accountId, sealed }: NewSecret, now: number): Promise<void> {
  await tx
    .insertInto('webhook_secret')
    .values({ id: newOrderedId('whs', now), account_id: accountId, sealed, created_at: now, expires_at: null })
    .execute()
}

/** What has expired is forgotten, and so is the oldest where somebody replaces them faster than they expire. */
async function dropOthers(tx: Tx, by: { accountId: string; liveMax: number }, now: number): Promise<void> {
  const kept = tx
    .selectFrom('webhook_secret')
    .select('id')
    .where('account_id', '=', by.accountId)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(by.liveMax)
  await tx.deleteFrom('webhook_secret').where('account_id', '=', by.accountId).where('id', 'not in', kept).execute()
}
