import type { Store } from './open.ts'
import type { Mode } from './schema.ts'

/**
 * Deletes tasks of this mode that ended before a moment, the oldest first, and with them their events and all attempts at
 * those: none of them is ever there without the others. What is still watched or still to be told stays. What they cost
 * stays in the ledger, under their requests. Says how many tasks that were.
 */
export async function dropOldTasks(
  store: Store,
  old: { readonly endedBefore: number; readonly mode: Mode; readonly limit: number },
): Promise<number> {
  return store.transaction(async (tx) => {
    const ended = tx
      .selectFrom('task')
      .select('id')
      // It was made before it ended, and there is an index for that.
      .where('created_at', '<', old.endedBefore)
      .where('finished_at', '<', old.endedBefore)
      .where('next_poll_at', 'is', null)
      .where('account_id', 'in', (eb) => eb.selectFrom('account').select('id').where('mode', '=', old.mode))
      .where((eb) =>
        eb.not(
          eb.exists(
            eb
              .selectFrom('webhook_event')
              .select('webhook_event.id')
              .whereRef('webhook_event.task_id', '=', 'task.id')
              .where('webhook_event.next_at', 'is not', null),
          ),
        ),
      )
      .orderBy('created_at')
      .limit(old.limit)
    // What another node is deleting at this moment is passed over. SQLite has one writer, and no word for it.
    const rows = await (store.engine === 'postgres' ? ended.forUpdate().skipLocked() : ended).execute()
    if (rows.length === 0) return 0
    const ids = rows.map(({ id }) => id)
    const events = tx.selectFrom('webhook_event').select('id').where('task_id', 'in', ids)
    await tx.deleteFrom('webhook_attempt').where('event_id', 'in', events).execute()
    await tx.deleteFrom('webhook_event').where('task_id', 'in', ids).execute()
    await tx.deleteFrom('task').where('id', 'in', ids).execute()
    return ids.length
  })
}
