import type { Nano } from '../base/money.ts'
import { isOfMode } from './mode.ts'
import { inPages, isBehind, type PageEnd } from './pages.ts'
import type { Mode, Queries, Scope } from './schema.ts'
import { sum } from './sum.ts'
import type { StoredTaskState } from './task-schema.ts'
import { type Task, toTask } from './tasks.ts'

export type TaskFilter = {
  readonly scope: Scope
  /** Only tasks of accounts in this mode. */
  readonly mode?: Mode | undefined
  readonly states?: readonly StoredTaskState[] | undefined
  readonly model?: string | undefined
  readonly inDoubt?: boolean | undefined
  readonly from?: number | undefined
  readonly to?: number | undefined
}

/** Newest first; `before` is the last task of the page before. */
export async function listTasks(
  db: Queries,
  filter: TaskFilter,
  page: { readonly limit: number; readonly before?: PageEnd },
): Promise<Task[]> {
  const { scope, mode, states, model, inDoubt, from, to } = filter
  const { before } = page
  let query = db.selectFrom('task').selectAll().orderBy('created_at', 'desc').orderBy('id', 'desc').limit(page.limit)
  if (scope !== 'every-account') query = query.where('account_id', '=', scope.accountId)
  else if (mode !== undefined) query = query.where(isOfMode('task', mode))
  if (states !== undefined) query = query.where('state', 'in', states)
  if (model !== undefined) query = query.where('model', '=', model)
  if (inDoubt !== undefined) query = query.where('in_doubt', '=', inDoubt)
  if (from !== undefined) query = query.where('created_at', '>=', from)
  if (to !== undefined) query = query.where('created_at', '<', to)
  if (before !== undefined) query = query.where(isBehind(before))
  return (await query.execute()).map(toTask)
}

/** What is still held for these tasks, by the id of the hold. */
export async function holdsOfTasks(db: Queries, tasks: readonly Task[]): Promise<ReadonlyMap<string, Nano>> {
  if (tasks.length === 0) return new Map()
  const rows = await db
    .selectFrom('hold')
    .select(['id', 'amount'])
    .where(
      'id',
      'in',
      tasks.map(({ holdId }) => holdId),
    )
    .where('state', '=', 'open')
    .execute()
  return new Map(rows.map(({ id, amount }) => [id, amount]))
}

/** What the requests for these tasks have cost, by the id of the request; nothing while a task is open. */
export async function costsOfTasks(db: Queries, tasks: readonly Task[]): Promise<ReadonlyMap<string, Nano>> {
  const ended = tasks.filter(({ finishedAt }) => finishedAt !== null).map(({ requestId }) => requestId)
  if (ended.length === 0) return new Map()
  const rows = await db.selectFrom('request').select(['id', 'cost']).where('id', 'in', ended).execute()
  return new Map(rows.map(({ id, cost }) => [id, cost]))
}

const typicalOf = 20
const typicalMsUnknown = 120_000

/** The median time that the newest videos of a model took, for telling how long the next may take. */
export async function typicalTaskMs(db: Queries, model: string): Promise<number> {
  const rows = await db
    .selectFrom('task')
    .select(['created_at', 'finished_at'])
    .where('model', '=', model)
    .where('state', '=', 'succeeded')
    .orderBy('created_at', 'desc')
    .limit(typicalOf)
    .execute()
  const took = rows.map((row) => (row.finished_at ?? row.created_at) - row.created_at).toSorted((a, b) => a - b)
  return took[Math.floor(took.length / 2)] ?? typicalMsUnknown
}

// Longer than any model's deadline, after which nothing is sent.
const resentMsMax = 7 * 24 * 60 * 60_000

/** The vendor's ids that tasks of a channel already have: a task searched for in the vendor's list is another one. */
export async function knownUpstreamIds(
  db: Queries,
  by: { readonly channel: string; readonly sentSince: number },
): Promise<Set<string>> {
  const rows = await db
    .selectFrom('task')
    .select('upstream_id')
    .where('channel', '=', by.channel)
    .where('upstream_id', 'is not', null)
    .where('sent_at', '>=', by.sentSince)
    // A task can only have been sent again within this time after its creation, and `created_at` is what has an index.
    .where('created_at', '>=', by.sentSince - resentMsMax)
    .execute()
  return new Set(rows.flatMap(({ upstream_id: id }) => (id === null ? [] : [id])))
}

/** Which of these references belong to unfinished tasks, whose cost is not recorded yet. */
export async function openTaskRefs(db: Queries, refs: readonly string[]): Promise<Set<string>> {
  const open = new Set<string>()
  for (const page of inPages(refs)) {
    const rows = await db
      .selectFrom('task')
      .select('attempt_id')
      .where('attempt_id', 'in', page)
      .where('state', 'in', ['creating', 'submitted', 'running'])
      .execute()
    for (const { attempt_id: ref } of rows) open.add(ref)
  }
  return open
}

/** What is held for the tasks of an account, or of one of its keys. */
export async function heldByTasks(
  db: Queries,
  by: { readonly accountId: string; readonly keyId?: string },
): Promise<Nano> {
  let query = db
    .selectFrom('hold')
    .select((eb) => sum(eb.ref('amount')).as('total'))
    .where('state', '=', 'open')
    .where('kind', '=', 'task')
    .where('account_id', '=', by.accountId)
  if (by.keyId !== undefined) query = query.where('key_id', '=', by.keyId)
  return (await query.executeTakeFirstOrThrow()).total
}
