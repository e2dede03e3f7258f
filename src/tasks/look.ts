import { crashPoint } from '../base/crash-points.ts'
import type { JsonObject } from '../base/json.ts'
import type { VideoNews } from '../capabilities/video.ts'
import { json } from '../store/rows.ts'
import { nextLook } from '../store/task-claims.ts'
import type { TaskError } from '../store/task-schema.ts'
import { changeTask, type Task, type TaskChange } from '../store/tasks.ts'
import { paceAt } from './adopt.ts'
import { type Home, homeOf } from './calls.ts'
import { resolveDoubt } from './doubt.ts'
import { endTask } from './end.ts'
import { failedTries, hasToBeKept, isMade, keepLinks, keepTriesMax } from './keep.ts'
import { lookLate } from './late.ts'
import { located } from './locate.ts'
import { askVendor } from './news.ts'
import { jittered, pollWait, retryWait } from './pace.ts'
import type { TaskParts } from './parts.ts'
import { decide, isOver, type Looked, lostByVendor, noOutput, openStates, timedOut } from './state.ts'

/** A finished video that has to be fetched, which takes longer than a poll may. */
export type Unkept = {
  /** Fetches the video and ends the task. */
  readonly keep: () => Promise<Looked>
  /** Leaves the video to a later poll. */
  readonly putOff: () => Promise<Looked>
}

/** Polls a task that this node has claimed. Whatever goes wrong, an open task is polled again. */
export async function lookAt(parts: TaskParts, task: Task): Promise<Looked | Unkept> {
  if (isOver(task.state)) return lookLate(parts, task)
  if (task.upstreamId === null) return resolveDoubt(parts, task)
  const home = homeOf(parts, task)
  const said = home === undefined ? undefined : await askVendor(parts, home, task, task.upstreamId)
  const news = home === undefined || said === undefined ? undefined : await located(parts, home, task, said)
  crashPoint('task-polled')
  if (home === undefined || said === undefined) return goOn(parts, task, { failures: task.failures + 1 })
  if (news === undefined) return again(parts, task, made(said, failedTries(task) + 1))
  return heed(parts, home, task, news)
}

async function heed(parts: TaskParts, home: Home, task: Task, news: VideoNews): Promise<Looked | Unkept> {
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
        if (!hasToBeKept(parts, news)) return succeed(parts, home, task, news)
        return {
          keep: () => succeed(parts, home, task, news),
          putOff: () => again(parts, task, made(news, failedTries(task))),
        }
      }
      if (decision.state === 'failed') return end(parts, task, { record, used, failure: decision.failure })
      await endTask(parts, task, { state: 'cancelled', record })
      return 'over'
  }
}

async function end(
  parts: TaskParts,
  task: Task,
  said: { record: JsonObject; used: VideoNews['used']; failure: TaskError },
): Promise<Looked> {
  // A task that the vendor has lost may turn up again and be charged, so it stays watched.
  const watched = said.failure === lostByVendor && { lookAgainAt: parts.store.now() }
  await endTask(parts, task, { state: 'failed', ...said, ...watched })
  return 'over'
}

/** A video that only our credential opens, or that the operator wants kept, is fetched before the client is told. */
async function succeed(parts: TaskParts, home: Home, task: Task, news: VideoNews): Promise<Looked> {
  const { record, used } = news
  const kept = await keepLinks(parts, home, task, news)
  if ('tries' in kept) return again(parts, task, made(news, kept.tries))
  if ('code' in kept) return end(parts, task, { record, used, failure: kept })
  await endTask(parts, task, { state: 'succeeded', record, used, result: kept })
  return 'over'
}

/** The video is made but not fetched yet: from now on `failures` counts the tries to fetch it. */
function made({ record, used }: VideoNews, failures: number): TaskChange {
  return { record: json(record), usage: json(used ?? {}), failures, lost: 0 }
}

/** The vendor has not ended the task. Once the deadline is past, this was the last poll and the task fails. */
async function goOn(parts: TaskParts, task: Task, change: TaskChange): Promise<Looked> {
  if (isMade(task)) return insistOnFilm(parts, task, change)
  const now = parts.store.now()
  if (now < task.deadline) return again(parts, task, change)
  await endTask(parts, task, { state: 'failed', failure: timedOut, lookAgainAt: now })
  return 'over'
}

/**
 * The vendor has said that the video is made, but does not say so now. This is no try to fetch it and uses none up;
 * only after the deadline does it count as one, so that the tries end. The vendor made the video and charges for it.
 */
async function insistOnFilm(parts: TaskParts, task: Task, change: TaskChange): Promise<Looked> {
  const isLate = parts.store.now() >= task.deadline
  const failures = task.failures + (isLate ? 1 : 0)
  if (!isLate || failures < keepTriesMax) return again(parts, task, { ...change, failures })
  await endTask(parts, task, { state: 'failed', failure: noOutput, used: task.usage ?? undefined })
  return 'over'
}

/** Schedules the next poll, but only under our own claim: a node that has claimed the task since decides for itself. */
async function again(parts: TaskParts, task: Task, change: TaskChange): Promise<Looked> {
  const { store, random, node } = parts
  const pace = paceAt(parts, task)
  const failures = change.failures ?? 0
  const lost = change.lost ?? 0
  const wait =
    failures > 0
      ? retryWait(pace, failures - 1, random)
      : lost > 0
        ? jittered(pace.lostMs, random)
        : pollWait(pace, task.polls + 1, random)
  const now = store.now()
  // A finished video is fetched after the deadline too.
  const next = now < task.deadline ? Math.min(now + wait, task.deadline) : now + wait
  await changeTask(
    store.db,
    { id: task.id, from: openStates, owner: node },
    { ...change, polls: task.polls + 1, next_poll_at: nextLook(task, next), claim_owner: null, claim_until: null },
  )
  return 'open'
}
