import type { RawBuilder, Selectable, Updateable } from 'kysely'
import { zeroNano } from '../base/money.ts'
import { type NewHold, type TakeHoldOutcome, takeHoldIn } from './holds.ts'
import { locked } from './locks.ts'
import type { Store } from './open.ts'
import { attemptRecordWrites, type AttemptRecord, type RequestRecord, requestRecordWrite } from './requests.ts'
import { json } from './rows.ts'
import type { Queries, Scope, Tx } from './schema.ts'
import type { Claim, StoredTaskState, TaskError, TaskTable } from './task-schema.ts'

type Row = Selectable<TaskTable>

/** A task as it is stored; see `TaskTable` for what the fields mean. */
export type Task = {
  readonly id: string
  readonly accountId: string
  readonly keyId: string
  readonly requestId: string
  readonly holdId: string
  readonly attemptId: string
  readonly model: string
  readonly vendor: string
  readonly channel: string
  readonly upstreamModel: string
  readonly upstreamId: string | null
  readonly state: StoredTaskState
  readonly inDoubt: boolean
  readonly sends: number
  readonly sentAt: number
  readonly ask: Row['ask']
  readonly facts: Row['facts']
  readonly record: Row['record']
  readonly result: Row['result']
  readonly usage: Row['usage']
  readonly failure: TaskError | null
  readonly prices: Row['prices']
  readonly costs: Row['costs']
  readonly webhookUrl: string | null
  readonly createdAt: number
  readonly updatedAt: number
  readonly finishedAt: number | null
  readonly deadline: number
  readonly nextPollAt: number | null
  readonly polls: number
  readonly failures: number
  readonly lost: number
  readonly claimOwner: string | null
}

export type NewTask = Pick<
  Task,
  | 'id'
  | 'accountId'
  | 'keyId'
  | 'requestId'
  | 'attemptId'
  | 'model'
  | 'vendor'
  | 'channel'
  | 'upstreamModel'
  | 'ask'
  | 'facts'
  | 'prices'
  | 'costs'
  | 'webhookUrl'
  | 'createdAt'
  | 'deadline'
> & { readonly claim: Claim }

export type Recorded = { outcome: 'recorded'; task: Task } | Exclude<TakeHoldOutcome, { outcome: 'held' }>

/**
 * Records a new task and its hold in one commit, before anything is sent: whatever happens from here on, the poller
 * finds it. `also` joins the transaction, for what must not exist without the task.
 */
export async function recordTask(
  store: Store,
  recorded: {
    readonly task: NewTask
    readonly hold: NewHold
    readonly request: RequestRecord
    readonly also?: ((tx: Tx) => Promise<void>) | undefined
  },
): Promise<Recorded> {
  const { task, hold, request } = recorded
  return store.transaction(async (tx) => {
    const taken = await takeHoldIn(tx, hold, store.now())
    if (taken.outcome !== 'held') return taken
    const row = await tx.insertInto('task').values(newRow(task, hold.id)).returningAll().executeTakeFirstOrThrow()
    const charged = { cost: zeroNano, basis: 'policy_zero', usage: null, holdId: hold.id } as const
    await requestRecordWrite(tx, task.accountId, request, charged).execute()
    await recorded.also?.(tx)
    return { outcome: 'recorded', task: toTask(row) }
  })
}

function newRow(task: NewTask, holdId: string) {
  return {
    id: task.id,
    account_id: task.accountId,
    key_id: task.keyId,
    request_id: task.requestId,
    hold_id: holdId,
    attempt_id: task.attemptId,
    model: task.model,
    vendor: task.vendor,
    channel: task.channel,
    upstream_model: task.upstreamModel,
    upstream_id: null,
    state: 'creating',
    in_doubt: false,
    sends: 1,
    sent_at: task.createdAt,
    ask: json(task.ask),
    facts: json(task.facts),
    record: json<Row['record']>(null),
    result: json<Row['result']>(null),
    usage: json<Row['usage']>(null),
    failure: json<Row['failure']>(null),
    prices: json(task.prices),
    costs: json(task.costs),
    webhook_url: task.webhookUrl,
    created_at: task.createdAt,
    updated_at: task.createdAt,
    finished_at: null,
    deadline: task.deadline,
    // Not before the creator's claim expires: then a poller looks what became of the task.
    next_poll_at: task.claim.until,
    polls: 0,
    failures: 0,
    lost: 0,
    claim_owner: task.claim.owner,
    claim_until: task.claim.until,
  } as const
}

/** The changed columns of a task as they are stored, with JSON already written. */
export type TaskChange = Omit<Updateable<TaskTable>, 'next_poll_at'> & {
  next_poll_at?: number | null | RawBuilder<number>
}

/**
 * The compare-and-set of every change of a task: it applies only in one of the `from` states and, where they are given,
 * under this owner's claim, after this many sends and in this attempt. Gives the changed task, or undefined where
 * nothing changed.
 */
export async function changeTask(
  db: Queries,
  task: {
    readonly id: string
    readonly from: readonly StoredTaskState[]
    readonly owner?: string
    readonly sends?: number
    readonly attemptId?: string
  },
  change: TaskChange,
): Promise<Task | undefined> {
  let query = db.updateTable('task').set(change).where('id', '=', task.id).where('state', 'in', task.from)
  if (task.owner !== undefined) query = query.where('claim_owner', '=', task.owner)
  if (task.sends !== undefined) query = query.where('sends', '=', task.sends)
  if (task.attemptId !== undefined) query = query.where('attempt_id', '=', task.attemptId)
  const row = await query.returningAll().executeTakeFirst()
  return row && toTask(row)
}

/**
 * Moves a task to its next route, under its creator's claim, and records what became of the attempt before. True as
 * well where the move was made before, since a commit whose answer was lost is asked for again. A task that was sent
 * again since is not moved, even under the same owner: its vendor may be making the video.
 */
export async function rerouteTask(
  store: Store,
  task: Pick<Task, 'id' | 'requestId' | 'sends'>,
  move: {
    readonly owner: string
    readonly failed: AttemptRecord
    readonly next: Pick<Task, 'attemptId' | 'vendor' | 'channel' | 'upstreamModel'>
  },
): Promise<boolean> {
  const { owner, failed, next } = move
  return store.transaction(async (tx) => {
    const now = store.now()
    const moved = await tx
      .updateTable('task')
      .set({
        attempt_id: next.attemptId,
        vendor: next.vendor,
        channel: next.channel,
        upstream_model: next.upstreamModel,
        // That the vendor before did not have it says nothing of the next one.
        lost: 0,
        sent_at: now,
        updated_at: now,
      })
      .where('id', '=', task.id)
      .where('state', '=', 'creating')
      .where('claim_owner', '=', owner)
      .where('attempt_id', '=', failed.id)
      .where('sends', '=', task.sends)
      .returning('id')
      .executeTakeFirst()
    if (moved === undefined) return isThere(await taskById(tx, { scope: 'every-account', id: task.id }))
    for (const write of attemptRecordWrites(tx, task.requestId, [failed])) await write.execute()
    return true
  })

  function isThere(found: Task | undefined): boolean {
    return found?.state === 'creating' && found.claimOwner === owner && found.attemptId === next.attemptId
  }
}

export async function taskById(
  db: Queries,
  by: { readonly scope: Scope; readonly id: string },
): Promise<Task | undefined> {
  let query = db.selectFrom('task').selectAll().where('id', '=', by.id)
  if (by.scope !== 'every-account') query = query.where('account_id', '=', by.scope.accountId)
  const row = await query.executeTakeFirst()
  return row && toTask(row)
}

/**
 * Gives a task whose recording was cut off, if it was recorded, once no transaction can be recording it any more. The
 * transaction that takes its hold locks the account's row until the commit is done, so this waits for that row.
 */
export async function taskOnceRecorded(
  store: Store,
  { id, accountId }: Pick<Task, 'id' | 'accountId'>,
): Promise<Task | undefined> {
  return store.transaction(async (tx) => {
    await locked(tx, tx.selectFrom('account').select('id').where('id', '=', accountId)).execute()
    return taskById(tx, { scope: { accountId }, id })
  })
}

// Vendors' ids have letters, digits and a few marks; some are paths.
const idPattern = /^[\w.:/-]{1,256}$/

/**
 * Finds a task by our id or the vendor's, among the account's own only: another account's is as unknown as one that
 * never was. Text that cannot be an id is not sent to the database, because some refuse odd characters with an error.
 */
export async function findTask(
  db: Queries,
  by: { readonly accountId: string; readonly id: string },
): Promise<Task | undefined> {
  if (!idPattern.test(by.id)) return undefined
  const own = await taskById(db, { scope: { accountId: by.accountId }, id: by.id })
  if (own !== undefined) return own
  const row = await db
    .selectFrom('task')
    .selectAll()
    .where('upstream_id', '=', by.id)
    .where('account_id', '=', by.accountId)
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row && toTask(row)
}

export function toTask(row: Row): Task {
  return {
    id: row.id,
    accountId: row.account_id,
    keyId: row.key_id,
    requestId: row.request_id,
    holdId: row.hold_id,
    attemptId: row.attempt_id,
    model: row.model,
    vendor: row.vendor,
    channel: row.channel,
    upstreamModel: row.upstream_model,
    upstreamId: row.upstream_id,
    state: row.state,
    inDoubt: row.in_doubt,
    sends: row.sends,
    sentAt: row.sent_at,
    ask: row.ask,
    facts: row.facts,
    record: row.record,
    result: row.result,
    usage: row.usage,
    failure: row.failure,
    prices: row.prices,
    costs: row.costs,
    webhookUrl: row.webhook_url,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    finishedAt: row.finished_at,
    deadline: row.deadline,
    nextPollAt: row.next_poll_at,
    polls: row.polls,
    failures: row.failures,
    lost: row.lost,
    claimOwner: row.claim_owner,
  }
}
