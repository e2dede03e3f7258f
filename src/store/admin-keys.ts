import { type Actor, recordChange } from './audit.ts'
import type { Transactor } from './transactor.ts'
import type { Queries } from './schema.ts'

/** Adds an operator's key by its digest. Adding one that exists changes nothing. */
export async function addAdminKey(store: Transactor, digest: string): Promise<void> {
  await store.transaction(async (tx) => {
    const now = store.now()
    const added = await tx
      .insertInto('admin_key')
      .values({ digest, created_at: now })
      .onConflict((conflict) => conflict.column('digest').doNothing())
      .returning('digest')
      .executeTakeFirst()
    if (added === undefined) return
    await recordChange(tx, { at: now, actor: 'start', action: 'admin-key.add', subject: 'admin', detail: {} })
  })
}

/** Revokes every operator's key, in case one was lost or leaked: none is valid until the next start. Gives how many. */
export async function revokeAdminKeys(store: Transactor, actor: Actor): Promise<number> {
  return store.transaction(async (tx) => {
    const { length } = await tx.deleteFrom('admin_key').returning('digest').execute()
    const change = { at: store.now(), actor, action: 'admin-key.revoke', subject: 'admin', detail: {} } as const
    if (length > 0) await recordChange(tx, change)
    return length
  })
}

export async function hasAdminKey(db: Queries, digest: string): Promise<boolean> {
  const row = await db.selectFrom('admin_key').select('digest').where('digest', '=', digest).executeTakeFirst()
  return row !== undefined
}

export async function anyAdminKey(db: Queries): Promise<boolean> {
  const row = await db.selectFrom('admin_key').select('digest').limit(1).executeTakeFirst()
  return row !== undefined
}
