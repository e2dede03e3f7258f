import { GatewayError } from '../base/errors.ts'
import type { VideoNews } from '../capabilities/video.ts'
import type { Task } from '../store/tasks.ts'
import type { VideoAdapter } from '../vendors/vendor.ts'
import { rereadTask } from './adopt.ts'
import { ask, contextOf, type TaskRoute, taskRouteOf, isAboutUs, judgeQuestion } from './calls.ts'
import { endTask } from './end.ts'
import { askVendor } from './news.ts'
import type { TaskParts } from './parts.ts'
import { isOver } from './state.ts'

/** Stops a task where its vendor can; throws `not_cancellable`, and changes nothing, where it cannot. */
export async function cancelTask(parts: TaskParts, task: Task): Promise<Task> {
  if (isOver(task.state)) throw notCancellable('it is over')
  if (task.upstreamId === null) throw notCancellable('its vendor has not confirmed it yet')
  const taskRoute = taskRouteOf(parts, task)
  if (taskRoute === undefined) {
    throw new GatewayError('overloaded', 'The vendor of this task cannot be reached at the moment.', {
      retryAfterSeconds: 5,
    })
  }
  const { cancel } = taskRoute.adapter
  if (cancel === undefined) throw notCancellable('its vendor cannot stop a task')
  // Where the vendor's call would delete a task that is over, it is made only for a task that is still queued.
  if (cancel.deletes === true && (await newsOf(parts, taskRoute, task)).state !== 'submitted') throw tooLate()
  if (!(await stopAtVendor(parts, taskRoute, task, cancel))) throw tooLate()
  // The vendor's record after the cancellation is shown with the task. Where a vendor's yes is not enough, the record
  // has to confirm it.
  const news =
    cancel.deletes === true
      ? await newsOf(parts, taskRoute, task)
      : await askVendor(parts, taskRoute, task, task.upstreamId)
  const isConfirmed = news?.state === 'cancelled'
  const isGone = cancel.forgets === true && news?.state === 'lost'
  if (cancel.deletes === true && !isConfirmed && !isGone) throw tooLate()
  const ended = await endTask(parts, task, { state: 'cancelled', ...(isConfirmed && { record: news.record }) })
  if (ended !== undefined) return ended
  const seen = await rereadTask(parts, task)
  if (seen.state !== 'cancelled') throw notCancellable('it is over') // a poll saw the end first
  return seen
}

type Cancel = NonNullable<VideoAdapter['cancel']>

/** Asks the vendor to stop the task. False where it says that it is too late. */
async function stopAtVendor(parts: TaskParts, taskRoute: TaskRoute, task: Task, cancel: Cancel): Promise<boolean> {
  const call = cancel.call(task.upstreamId ?? '', contextOf(parts, taskRoute, task))
  const answered = await ask(parts, taskRoute, call, task)
  // The next poll shows whether the vendor received the call.
  if (answered.kind === 'failed') throw answered.error
  // Some vendors answer 403 where it is too late, which is about the task and not about us; their adapters can read it.
  const isRead = !isAboutUs(answered) || (answered.status === 403 && isReadable(() => cancel.read(answered)))
  if (!isRead) throw judgeQuestion(parts, taskRoute, answered)
  return cancel.read(answered)
}

async function newsOf(parts: TaskParts, taskRoute: TaskRoute, task: Task): Promise<VideoNews> {
  const news = await askVendor(parts, taskRoute, task, task.upstreamId ?? '')
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
