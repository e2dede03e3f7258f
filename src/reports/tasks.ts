import { unixSeconds, unixSecondsOrNull } from '../base/moment.ts'
import { formatDollars } from '../base/money.ts'
import type { Queries } from '../store/schema.ts'
import type { StoredTaskState } from '../store/task-schema.ts'
import { costsOfTasks, holdsOfTasks, listTasks, type TaskFilter } from '../store/task-lists.ts'
import { type Task, taskById } from '../store/tasks.ts'
import { checkPeriod, type Page, type PageAsked, pageOf, rowsFor } from './query.ts'

/** Video tasks as operators see them, newest first, without the prompt and the result. */
export async function reportTasks(db: Queries, filter: TaskFilter, page: PageAsked): Promise<Page<ShownTask>> {
  checkPeriod(filter)
  const { scope } = filter
  const rows = await listTasks(db, filter, await rowsFor(page, 'task', (id) => taskById(db, { scope, id })))
  const money = await moneyOf(db, rows)
  return pageOf(
    rows,
    page.limit,
    (task) => showTaskRow(task, money),
    ({ id }) => id,
  )
}

export async function reportTask(db: Queries, task: Task): Promise<ShownTask> {
  return showTaskRow(task, await moneyOf(db, [task]))
}

async function moneyOf(db: Queries, tasks: readonly Task[]) {
  return { holds: await holdsOfTasks(db, tasks), costs: await costsOfTasks(db, tasks) }
}

export type ShownTask = ReturnType<typeof showTaskRow>

/** Shows the stored state, which customers do not see: they are never shown `creating` or `refused`. */
function showTaskRow(task: Task, { holds, costs }: Awaited<ReturnType<typeof moneyOf>>) {
  const [held, cost] = [holds.get(task.holdId), costs.get(task.requestId)]
  return {
    id: task.id,
    account: task.accountId,
    key: task.keyId,
    request: task.requestId,
    model: task.model,
    state: task.state satisfies StoredTaskState,
    in_doubt: task.inDoubt,
    vendor: task.vendor,
    channel: task.channel,
    upstream_model: task.upstreamModel,
    upstream_id: task.upstreamId,
    attempt: task.attemptId,
    held: held === undefined ? null : formatDollars(held),
    cost: cost === undefined ? null : formatDollars(cost),
    error: task.failure,
    sends: task.sends,
    polls: task.polls,
    webhook: task.webhookUrl !== null,
    created_at: unixSeconds(task.createdAt),
    updated_at: unixSeconds(task.updatedAt),
    finished_at: unixSecondsOrNull(task.finishedAt),
    deadline: unixSeconds(task.deadline),
    next_poll_at: unixSecondsOrNull(task.nextPollAt),
  }
}
