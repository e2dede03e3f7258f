import { nano, zeroNano } from '../base/money.ts'
import type { Usage } from '../capabilities/usage.ts'
import type { VideoNews } from '../capabilities/video.ts'
import { correctCostIn } from '../store/corrections.ts'
import { attemptsByIds } from '../store/reconcile.ts'
import { unclaimed } from '../store/task-schema.ts'
import { changeTask, type Task, type TaskChange } from '../store/tasks.ts'
import { isAdopted } from './adopt.ts'
import { taskRouteOf } from './calls.ts'
import { costOf } from './end.ts'
import { askVendor } from './news.ts'
import { jittered } from './pace.ts'
import type { TaskParts } from './parts.ts'

// Vendors forget their tasks after a day or a week, so a task is watched for no more than two days after its deadline.
const watchMs = 48 * 60 * 60_000
const everyMs = 30 * 60_000

/**
 * Polls a task that was given up, at its deadline or as lost, and may still be made. Its customer was told that it
 * failed and pays nothing, so what the vendor charges for it is booked as our loss.
 */
export async function pollAfterEnd(parts: TaskParts, task: Task): Promise<'over'> {
  const { store } = parts
  const taskRoute = taskRouteOf(parts, task)
  const isOver = !isAdopted(task) || store.now() >= task.deadline + watchMs
  const news = isOver || taskRoute === undefined ? undefined : await askVendor(parts, taskRoute, task)
  if (news?.state === 'succeeded') await bookLoss(parts, task, news.used)
  else if (isOver || (news !== undefined && isEnd(news.state))) await changeOver(parts, task, unwatched)
  else {
    const next = store.now() + jittered(everyMs, parts.random)
    await changeOver(parts, task, { next_poll_at: next, polls: task.polls + 1, ...unclaimed })
  }
  return 'over'
}

/** `lost` is no end: a task that the vendor does not know today, it may know and charge tomorrow. */
function isEnd(state: VideoNews['state']): boolean {
  return state === 'failed' || state === 'cancelled' || state === 'expired'
}

const unwatched = { next_poll_at: null, ...unclaimed } as const

function changeOver({ store, node }: TaskParts, { id }: Task, change: TaskChange) {
  return changeTask(store.db, { id, from: ['failed'], owner: node }, change)
}

/** Books the loss in the same commit that ends the watch, so that it is booked once. */
async function bookLoss(parts: TaskParts, task: Task, used: Usage | undefined): Promise<void> {
  const { store, log, node, tally } = parts
  const [attempt] = await attemptsByIds(store.db, [task.attemptId])
  // Without a count, the cost stays as it was booked when the task ended.
  const billed = (used === undefined ? undefined : costOf(task, used)) ?? attempt?.cost ?? zeroNano
  const isOurs = await store.transaction(async (tx) => {
    const mine = await changeTask(tx, { id: task.id, from: ['failed'], owner: node }, unwatched)
    if (mine === undefined) return false
    if (attempt === undefined || billed === attempt.cost) return true
    const note = `task ${task.id}: made after it was given up`
    await correctCostIn(tx, { attempt, billed, usage: used ?? null, note }, store.now())
    return true
  })
  if (!isOurs) return
  if (attempt !== undefined) tally.costLate({ capability: 'video', model: task.model }, nano(billed - attempt.cost))
  log.warn({ task: task.id, model: task.model, cost: String(billed) }, 'a video came after it was given up')
}
