import { newAttemptId, newId, newOpaqueId, newRequestId } from '../../src/base/ids.ts'
import type { Store } from '../../src/store/open.ts'
import type { TaskTable } from '../../src/store/task-schema.ts'
import { type NewTask, recordTask } from '../../src/store/tasks.ts'
import { accountId, holdOf, requestOf } from './ledger.ts'

/** Tasks as the store has them, without a node that works on them. */

const noPrices = { version: 'v1', rates: {}, tiers: [], perImage: {}, perSecond: {}, perVideoToken: {} }
const facts = { kind: 't2v', seconds: 5, resolution: '720p', ratio: '', sound: false, hasInputVideo: false } as const

export function newTask(overrides: Partial<NewTask> = {}): NewTask {
  const now = Date.now()
  return {
    id: newOpaqueId('vid'),
    accountId,
    keyId: 'key_a',
    requestId: newRequestId(),
    attemptId: newAttemptId(),
    model: 'film',
    vendor: 'films',
    channel: 'first',
    upstreamModel: 'film-1',
    ask: null,
    facts: { ...facts, bound: {} },
    prices: noPrices,
    costs: noPrices,
    webhookUrl: null,
    createdAt: now,
    deadline: now + 3_600_000,
    claim: { owner: 'node_a', until: now + 60_000 },
    ...overrides,
  }
}

export async function record(store: Store, overrides: Partial<NewTask> = {}, amount = 10n) {
  const task = newTask(overrides)
  const hold = holdOf(newId('hold'), amount, { kind: 'task', accountId: task.accountId, keyId: task.keyId })
  const request = requestOf('', { id: task.requestId, capability: 'video', status: 202 })
  return recordTask(store, { task, hold, request })
}

export async function recorded(store: Store, overrides: Partial<NewTask> = {}) {
  const outcome = await record(store, overrides)
  if (outcome.outcome !== 'recorded') throw new Error(outcome.outcome)
  return outcome.task
}

/** Changes a task's row directly, without moving its money. */
export const put = (store: Store, id: string, change: Partial<TaskTable>) =>
  store.db
    .updateTable('task')
    .set(change as object)
    .where('id', '=', id)
    .execute()
