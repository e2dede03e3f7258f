import { crashPoint } from '../base/crash-points.ts'
import { isUniqueViolation } from '../store/faults.ts'
import { json } from '../store/rows.ts'
import { unclaimed } from '../store/task-schema.ts'
import { changeTask, type Task, taskById } from '../store/tasks.ts'
import { isStillAway } from './database-retries.ts'
import { jittered, paceOf, pollWait } from './pace.ts'
import type { TaskParts } from './parts.ts'

/** A task that its vendor has, under an id that we know. */
export type AdoptedTask = Task & { readonly upstreamId: string }

export function isAdopted(task: Task): task is AdoptedTask {
  return task.upstreamId !== null
}

/**
 * Records that the vendor has the task under this id, and drops the ask, which is no longer needed. One task of the
 * vendor must never be adopted as two of ours: where the id already belongs to another task, this one stays in doubt.
 */
export async function adopt(parts: TaskParts, task: Task, upstreamId: string): Promise<Task> {
  const { store } = parts
  const wait = pollWait(paceAt(parts, task), 0, parts.random)
  const change = {
    state: 'submitted',
    upstream_id: upstreamId,
    in_doubt: false,
    ask: json(null),
    lost: 0,
    failures: 0,
    updated_at: store.now(),
    next_poll_at: Math.min(store.now() + wait, task.deadline),
    ...unclaimed,
  } as const
  const about = { task: task.id, attempt: task.attemptId, channel: task.channel, upstream: upstreamId }
  // Written even where another node has claimed the task since: without its id the video is lost, and bought again.
  const write = async () => {
    const adopted = await changeTask(store.db, { id: task.id, from: ['creating'] }, change)
    if (adopted !== undefined) crashPoint('task-created')
    return adopted ?? rereadTask(parts, task)
  }
  try {
    return await parts.withDatabaseRetries(write, 'goes on', about)
  } catch (thrown) {
    if (isUniqueViolation(thrown)) {
      parts.log.warn(about, 'a vendor gave two tasks the same id')
      return keepInDoubt(parts, task)
    }
    if (!isStillAway(thrown)) throw thrown
    // The vendor has the task and the write is retried in the background: the client need neither wait nor order again.
    return { ...task, state: 'submitted', upstreamId, inDoubt: false }
  }
}

/** For a task that the vendor may or may not have: the poller looks for it later, before it is ever sent again. */
export async function keepInDoubt(parts: TaskParts, task: Task): Promise<Task> {
  const { store, node } = parts
  const { doubtMs } = paceAt(parts, task)
  const change = {
    in_doubt: true,
    updated_at: store.now(),
    next_poll_at: Math.min(store.now() + jittered(doubtMs, parts.random), task.deadline),
    ...unclaimed,
  } as const
  const about = { task: task.id, attempt: task.attemptId, channel: task.channel }
  const from = { id: task.id, from: ['creating'], owner: node } as const
  const write = async () => (await changeTask(store.db, from, change)) ?? rereadTask(parts, task)
  try {
    return await parts.withDatabaseRetries(write, 'ends', about)
  } catch (thrown) {
    if (!isStillAway(thrown)) throw thrown
    // The task is on record as `creating`: once its creator's claim has run out, a node finds out what became of it.
    return { ...task, inDoubt: true }
  }
}

/** For a task that another node has taken over, or that a commit of ours changed although its answer was lost. */
export async function rereadTask({ store }: TaskParts, task: Task): Promise<Task> {
  return (await taskById(store.db, { scope: 'every-account', id: task.id })) ?? task
}

export function paceAt(parts: TaskParts, { channel: id }: Pick<Task, 'channel'>) {
  return paceOf(
    parts.channels().all.find((channel) => channel.id === id),
    parts.pace,
  )
}
