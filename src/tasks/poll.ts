import { crashPoint } from '../base/crash-points.ts'
import type { JsonObject } from '../base/json.ts'
import type { VideoNews } from '../capabilities/video.ts'
import { json } from '../store/rows.ts'
import { nextPollUnlessHinted } from '../store/task-claims.ts'
import { unclaimed, type TaskError } from '../store/task-schema.ts'
import { changeTask, type Task, type TaskChange } from '../store/tasks.ts'
import { type AdoptedTask, isAdopted, paceAt } from './adopt.ts'
import { isLeftToOthers, type TaskRoute, taskRouteOf } from './calls.ts'
import { resolveDoubt } from './doubt.ts'
import { endTask } from './end.ts'
import { failedTries, hasToBeKept, isMade, keepLinks, keepTriesMax } from './keep.ts'
import { pollAfterEnd } from './late.ts'
import { located } from './locate.ts'
import { askVendor } from './news.ts'
import { jittered, pollWait, retryWait } from './pace.ts'
import type { TaskParts } from './parts.ts'
import { decide, isOver, type PollOutcome, lostByVendor, noOutput, openStates, timedOut } from './state.ts'

/** A finished video that has to be fetched, which takes longer than a poll may. */
export type Unkept = {
  /** Fetches the video and ends the task. */
  readonly keep: () => Promise<PollOutcome>
  /** Leaves the video to a later poll. */
  readonly putOff: () => Promise<PollOutcome>
}

/** Polls a task that this node has claimed. Whatever goes wrong, an open task is polled again. */
export async function pollTask(parts: TaskParts, task: Task): Promise<PollOutcome | Unkept> {
  if (isOver(task.state)) return pollAfterEnd(parts, task)
  if (!isAdopted(task)) return resolveDoubt(parts, task)
  const unheard = { failures: task.failures + 1 }
  if (isLeftToOthers(parts, task)) return schedulePoll(parts, task, isMade(task) ? {} : unheard)
  const taskRoute = taskRouteOf(parts, task)
  if (taskRoute === undefined) return goOn(parts, task, unheard)
  const said = await askVendor(parts, taskRoute, task)
  const news = said && (await located(parts, taskRoute, task, said))
  crashPoint('task-polled')
  if (said === undefined) return goOn(parts, task, unheard)
  if (news === undefined) return schedulePoll(parts, task, made(said, failedTries(task) + 1))
  return applyNews(parts, taskRoute, task, news)
}

async function applyNews(
  parts: TaskParts,
  taskRoute: TaskRoute,
  task: AdoptedTask,
  news: VideoNews,
): Promise<PollOutcome | Unkept> {
  const { record, used } = news
  const decision = decide(task, news)
  const known: TaskChange = { record: json(record), failures: 0, lost: 0 }
  switch (decision.kind) {
    case 'stay':
      return goOn(parts, task, { ...known, lost: decision.lost })
    case 'run':
      return goOn(parts, task, { ...known, state: 'running', updated_at: parts.store.now() })
    case 'end':
      if (decision.state === 'succeeded') {
        if (!hasToBeKept(parts, news)) return succeed(parts, taskRoute, task, news)
        return {
          keep: () => succeed(parts, taskRoute, task, news),
          putOff: () => schedulePoll(parts, task, made(news, failedTries(task))),
        }
      }
      if (decision.state === 'failed') return fail(parts, task, { record, used, failure: decision.failure })
      await endTask(parts, task, { state: 'cancelled', record })
      return 'over'
  }
}

async function fail(
  parts: TaskParts,
  task: Task,
  said: { record?: JsonObject; used: VideoNews['used']; failure: TaskError },
): Promise<PollOutcome> {
  // A task that the vendor has lost may turn up again and be charged, so it stays watched.
  const watched = said.failure === lostByVendor && { lookAgainAt: parts.store.now() }
  // A vendor that has said before that the video is made charges for it, even if it does not give it any more.
  const used = said.used ?? task.usage ?? undefined
  await endTask(parts, task, { state: 'failed', ...said, used, ...watched })
  return 'over'
}

/** A video that only our credential opens, or that the operator wants kept, is fetched before the client is told. */
async function succeed(
  parts: TaskParts,
  taskRoute: TaskRoute,
  task: AdoptedTask,
  news: VideoNews,
): Promise<PollOutcome> {
  const { record, used } = news
  const links = await keepLinks(parts, taskRoute, task, news)
  switch (links.kind) {
    case 'not-yet':
      return schedulePoll(parts, task, made(news, links.tries))
    case 'none':
      // The record of a video that could not be fetched has a link that its customer cannot open.
      return fail(parts, task, { ...(news.result === undefined && { record }), used, failure: noOutput })
    case 'links':
      await endTask(parts, task, { state: 'succeeded', record, used, result: links.result })
      return 'over'
  }
}

/**
 * The video is made but not fetched yet: from now on `failures` counts the tries to fetch it. The customer is not told
 * yet, so the vendor's record, which has its link, is not shown either.
 */
function made({ used }: VideoNews, failures: number): TaskChange {
  return { usage: json(used ?? {}), failures, lost: 0 }
}

/** The vendor has not ended the task. Once the deadline is past, this was the last poll and the task fails. */
async function goOn(parts: TaskParts, task: Task, change: TaskChange): Promise<PollOutcome> {
  if (isMade(task)) return pollForMadeVideo(parts, task, change)
  const now = parts.store.now()
  if (now < task.deadline) return schedulePoll(parts, task, change)
  await endTask(parts, task, { state: 'failed', failure: timedOut, lookAgainAt: now })
  return 'over'
}

/**
 * The vendor has said that the video is made, but does not say so now. This is no try to fetch it and uses none up;
 * only after the deadline does it count as one, so that the tries end. The vendor made the video and charges for it.
 */
async function pollForMadeVideo(parts: TaskParts, task: Task, change: TaskChange): Promise<PollOutcome> {
  const isLate = parts.store.now() >= task.deadline
  const failures = task.failures + (isLate ? 1 : 0)
  if (!isLate || failures < keepTriesMax) return schedulePoll(parts, task, { ...change, failures })
  await endTask(parts, task, { state: 'failed', failure: noOutput, used: task.usage ?? undefined })
  return 'over'
}

/** Schedules the next poll, but only under our own claim: a node that has claimed the task since decides for itself. */
async function schedulePoll(parts: TaskParts, task: Task, change: TaskChange): Promise<PollOutcome> {
  const { store, node } = parts
  const wait = waitAfter(parts, task, change)
  const now = store.now()
  // A finished video is fetched after the deadline too.
  const next = now < task.deadline ? Math.min(now + wait, task.deadline) : now + wait
  await changeTask(
    store.db,
    { id: task.id, from: openStates, owner: node },
    {
      ...change,
      polls: task.polls + 1,
      next_poll_at: nextPollUnlessHinted(task, next),
      ...unclaimed,
    },
  )
  return 'open'
}

/** How long to wait for the next poll, after one that had this outcome. */
function waitAfter(parts: TaskParts, task: Task, { failures = 0, lost = 0 }: TaskChange): number {
  const pace = paceAt(parts, task)
  if (failures > 0) return retryWait(pace, failures - 1, parts.random)
  return lost > 0 ? jittered(pace.lostMs, parts.random) : pollWait(pace, task.polls + 1, parts.random)
}
