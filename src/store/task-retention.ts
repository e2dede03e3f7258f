import { lockedIfFree } from './locks.ts'
import { isOfMode } from './mode.ts'
import type { Store } from './open.ts'
import type { Mode } from './schema.ts'

/**
 * Deletes tasks of this mode that ended before a moment, the oldest first, in one transaction with their events and all
 * delivery attempts. Tasks that are still watched, or whose event is still to be delivered, stay. What they cost stays
 * in the ledger, under their requests. Gives how many tasks were deleted.
 */
export async function dropOldTasks(
  store: Store,
  old: { readonly endedBefore: number; readonly mode: Mode; readonly limit: number },
): Promise<number> {
  return store.transaction(async (tx) => {
    const ended = tx
      .selectFrom('task')
      .select('id')
      // A task is created before it ends, and `created_at` is what has an index.
      .where('created_at', '<', old.endedBefore)
      .where('finished_at', '<', old.endedBefore)
      .where('next_poll_at', 'is', null)
      .where(isOfMode('task', old.mode))
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
    const rows = await lockedIfFree(tx, ended).execute()
    if (rows.length === 0) return 0
    const ids = rows.map(({ id }) => id)
    const events = tx.selectFrom('webhook_event').select('id').where('task_id', 'in', ids)
    await tx.deleteFrom('webhook_attempt').where('event_id', 'in', events).execute()
    await tx.deleteFrom('webhook_event').where('task_id', 'in', ids).execute()
    await tx.deleteFrom('task').where('id', 'in', ids).execute()
    return ids.length
  })
}
