import { GatewayError } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import type { VideoNews } from '../capabilities/video.ts'
import type { Task } from '../store/tasks.ts'
import type { VideoAdapter } from '../vendors/vendor.ts'
import { type AdoptedTask, isAdopted, rereadTask } from './adopt.ts'
import { ask, contextOf, type TaskRoute, taskRouteOf, isAboutUs, judgeQuestion } from './calls.ts'
import { endTask } from './end.ts'
import { askVendor } from './news.ts'
import type { TaskParts } from './parts.ts'
import { isOver } from './state.ts'

/** Stops a task where its vendor can; throws `not_cancellable`, and changes nothing, where it cannot. */
export async function cancelTask(parts: TaskParts, task: Task): Promise<Task> {
  if (isOver(task.state)) throw notCancellable('it is over')
  if (!isAdopted(task)) throw notCancellable('its vendor has not confirmed it yet')
  const taskRoute = taskRouteOf(parts, task)
  if (taskRoute === undefined) {
    throw new GatewayError('overloaded', 'The vendor of this task cannot be reached at the moment.', {
      retryAfterSeconds: 5,
    })
  }
  const { cancel } = taskRoute.adapter
  if (cancel === undefined) throw notCancellable('its vendor cannot stop a task')
  const stop = cancel.deletes === true ? stopQueued : stopAtOnce
  const record = await stop(parts, taskRoute, task, cancel)
  const ended = await endTask(parts, task, { state: 'cancelled', ...(record !== undefined && { record }) })
  if (ended !== undefined) return ended
  const seen = await rereadTask(parts, task)
  if (seen.state !== 'cancelled') throw notCancellable('it is over') // a poll saw the end first
  return seen
}

type Cancel = NonNullable<VideoAdapter['cancel']>

/** The vendor's record of a task that it has stopped, to be shown with the task; undefined where it gives none. */
type StoppedRecord = JsonObject | undefined

/** For a vendor whose yes is enough. */
async function stopAtOnce(
  parts: TaskParts,
  taskRoute: TaskRoute,
  task: AdoptedTask,
  cancel: Cancel,
): Promise<StoppedRecord> {
  await callToStop(parts, taskRoute, task, cancel)
  const news = await askVendor(parts, taskRoute, task)
  return news?.state === 'cancelled' ? news.record : undefined
}

/**
 * For a vendor whose call would delete a task that is over: it is made only for a task that is still queued, and the
 * vendor's record has to confirm its yes.
 */
async function stopQueued(
  parts: TaskParts,
  taskRoute: TaskRoute,
  task: AdoptedTask,
  cancel: Cancel,
): Promise<StoppedRecord> {
  if ((await newsOf(parts, taskRoute, task)).state !== 'submitted') throw tooLate()
  await callToStop(parts, taskRoute, task, cancel)
  const { state, record } = await newsOf(parts, taskRoute, task)
  if (state === 'cancelled') return record
  if (state === 'lost' && cancel.forgets === true) return undefined
  throw tooLate()
}

/** Asks the vendor to stop the task, and throws where it says that it is too late. */
async function callToStop(parts: TaskParts, taskRoute: TaskRoute, task: AdoptedTask, cancel: Cancel): Promise<void> {
  const call = cancel.call(task.upstreamId, contextOf(parts, taskRoute, task))
  const answered = await ask(parts, taskRoute, call, task)
  // The next poll shows whether the vendor received the call.
  if (answered.kind === 'failed') throw answered.error
  // Some vendors answer 403 where it is too late, which is about the task and not about us; their adapters can read it.
  const isRead = !isAboutUs(answered) || (answered.status === 403 && isReadable(() => cancel.read(answered)))
  if (!isRead) throw judgeQuestion(parts, taskRoute, answered)
  if (!cancel.read(answered)) throw tooLate()
}

async function newsOf(parts: TaskParts, taskRoute: TaskRoute, task: AdoptedTask): Promise<VideoNews> {
  const news = await askVendor(parts, taskRoute, task)
  if (news !== undefined) return news
  throw new GatewayError('upstream-failed', 'The vendor did not say how far the task is.')
}

function isReadable(read: () => unknown): boolean {
  try {
    read()
    return true
  } catch {
    return false
  }
}

function tooLate(): GatewayError {
  return notCancellable('it is too late')
}

function notCancellable(why: string): GatewayError {
  return new GatewayError('conflict', `This task cannot be cancelled: ${why}.`, {
    code: 'not_cancellable',
    shouldRetry: false,
  })
}
