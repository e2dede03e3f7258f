import { type Expression, type SqlBool, sql } from 'kysely'
import { lockedIfFree } from './locks.ts'
import { isOfMode } from './mode.ts'
import type { Store } from './open.ts'
import type { Mode, Queries } from './schema.ts'
import { type Claim, type StoredTaskState, unclaimed } from './task-schema.ts'
import { type Task, toTask } from './tasks.ts'

/** How many tasks are due for a poll, channel by channel, since each channel is polled at its own pace. */
export async function dueChannels(
  db: Queries,
  due: { readonly now: number; readonly mode: Mode },
): Promise<{ channel: string; rows: number }[]> {
  return db
    .selectFrom('task')
    .select((eb) => ['channel', eb.fn.countAll<number>().as('rows')])
    .where(isDue(due))
    .groupBy('channel')
    .orderBy('channel')
    .execute()
}

/** Whether any node has a task to poll now or later: one that is unfinished, or that is watched beyond its end. */
export async function hasWatchedTasks(db: Queries, mode: Mode): Promise<boolean> {
  const watched = db.selectFrom('task').select('id').where('next_poll_at', 'is not', null).where(isOfMode('task', mode))
  return (await watched.limit(1).execute()).length > 0
}

export type WatchedTasks = {
  readonly state: StoredTaskState
  readonly inDoubt: boolean
  readonly count: number
  /** When the task that has waited the longest for a poll was due; null where none is due. */
  readonly dueAt: number | null
}

/** How many tasks of all nodes are to be polled now or later. */
export async function countWatchedTasks(
  db: Queries,
  { now, mode }: { readonly now: number; readonly mode: Mode },
): Promise<WatchedTasks[]> {
  const rows = await db
    .selectFrom('task')
    .select((eb) => ['state', 'in_doubt', eb.fn.countAll<number>().as('rows')])
    .select(sql<number | null>`min(case when ${isDue({ now, mode })} then next_poll_at end)`.as('next_poll_at'))
    .where('next_poll_at', 'is not', null)
    .where(isOfMode('task', mode))
    .groupBy(['state', 'in_doubt'])
    .execute()
  return rows.map((row) => ({
    state: row.state,
    inDoubt: row.in_doubt,
    count: row.rows,
    dueAt: row.next_poll_at,
  }))
}

/**
 * Claims due tasks of a channel, the longest due first. Each then belongs to one node for a while, and to any node
 * again if that one does not renew its claim. Tasks that another node is claiming at this moment are skipped.
 */
export async function claimTasks(
  store: Store,
  { channel, limit, claim, ...due }: { channel: string; limit: number; now: number; mode: Mode; claim: Claim },
): Promise<Task[]> {
  return store.transaction(async (tx) => {
    const free = tx
      .selectFrom('task')
      .select('id')
      .where('channel', '=', channel)
      .where(isDue(due))
      .orderBy('next_poll_at')
      .limit(limit)
    const chosen = await lockedIfFree(tx, free).execute()
    if (chosen.length === 0) return []
    // Chosen by a statement of their own: PostgreSQL may repeat a subquery for every row that it updates, and each time
    // it would choose others, beyond the limit.
    const rows = await tx
      .updateTable('task')
      .set({ claim_owner: claim.owner, claim_until: claim.until })
      .where(
        'id',
        'in',
        chosen.map(({ id }) => id),
      )
      .returningAll()
      .execute()
    return rows.map(toTask).toSorted((a, b) => (a.nextPollAt ?? 0) - (b.nextPollAt ?? 0))
  })
}

/** Only tasks of this mode: real vendors do not know the tasks of simulators, nor the reverse. */
function isDue({ now, mode }: { readonly now: number; readonly mode: Mode }): Expression<SqlBool> {
  return sql<SqlBool>`next_poll_at <= ${now} and (claim_until is null or claim_until <= ${now}) and ${isOfMode('task', mode)}`
}

/** Extends a node's claims on the tasks that it is still working on. */
export async function renewClaims(db: Queries, ids: readonly string[], claim: Claim): Promise<void> {
  await db
    .updateTable('task')
    .set({ claim_until: claim.until })
    .where('id', 'in', ids)
    .where('claim_owner', '=', claim.owner)
    .execute()
}

/** Gives up a node's claims on tasks whose polls failed: any node may poll them at once. */
export async function dropClaims(db: Queries, ids: readonly string[], owner: string): Promise<void> {
  await db.updateTable('task').set(unclaimed).where('id', 'in', ids).where('claim_owner', '=', owner).execute()
}

// Longer than polls are put off for, unless `pollSeconds` is long, where one poll too early does no harm. A task whose
// creation takes longer still belongs to its creator, by its claim.
const putOffMsMax = 60 * 60_000

/**
 * Called when a node starts: tasks that its last process had claimed are due at once. So are tasks that are put off for
 * longer than polls ever are: a clock that was far ahead did that, and was corrected while no node was there to notice.
 */
export async function releaseClaims(db: Queries, owner: string, now: number): Promise<void> {
  await db
    .updateTable('task')
    .set({ ...unclaimed, next_poll_at: now })
    .where('claim_owner', '=', owner)
    .where('next_poll_at', 'is not', null)
    .execute()
  await db
    .updateTable('task')
    .set({ next_poll_at: now })
    .where('next_poll_at', '>', now + putOffMsMax)
    .execute()
}

/**
 * After the clock was set back by `ms`: moves the times of polls and of this node's claims back by as much; other nodes
 * move their own claims when they notice. The sending time of tasks in creation moves too, because a task that may have
 * been sent is searched for in the vendor's list from that time on: by the old clock it would not be found, and would
 * be bought again. Only tasks that are still polled have such times, and only those are gone through: on PostgreSQL, a
 * statement that goes through all tasks of three months may be given up, and would be repeated for ever.
 */
export async function bringForward(
  db: Queries,
  { owner, now, ms }: { readonly owner: string; readonly now: number; readonly ms: number },
): Promise<void> {
  const earlier = (moment: 'next_poll_at' | 'claim_until' | 'sent_at') =>
    sql<number>`${sql.ref(moment)} - cast(${ms} as bigint)`
  await db
    .updateTable('task')
    .set({ next_poll_at: earlier('next_poll_at') })
    .where('next_poll_at', '>', now)
    .execute()
  await db
    .updateTable('task')
    .set({ claim_until: earlier('claim_until') })
    .where('next_poll_at', 'is not', null)
    .where('claim_owner', '=', owner)
    .where('claim_until', '>', now)
    .execute()
  await db
    .updateTable('task')
    .set({ sent_at: earlier('sent_at') })
    .where('next_poll_at', 'is not', null)
    .where('state', '=', 'creating')
    .where('sent_at', '>', now)
    .execute()
}

/**
 * Makes a task due at once because its vendor called back with news; the next poll tells whether that is true. A task
 * that is being polled is polled again, since that poll may have missed the news.
 */
export async function hintTask(db: Queries, id: string, now: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('task')
    .set({ next_poll_at: now })
    .where('id', '=', id)
    .where('state', 'in', ['submitted', 'running'])
    .where((eb) => eb.or([eb('next_poll_at', '>', now), eb('claim_until', '>', now)]))
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** When to poll again after a poll, unless a hint came in the meantime. */
export function nextPollUnlessHinted({ nextPollAt }: Pick<Task, 'nextPollAt'>, next: number) {
  return sql<number>`case when next_poll_at = ${nextPollAt} then cast(${next} as bigint) else next_poll_at end`
}
