import { isObject, type Json, type JsonObject } from '../base/json.ts'
import { unixSeconds } from '../base/moment.ts'
import type { TaskResult } from '../store/task-schema.ts'
import type { Task } from '../store/tasks.ts'
import { isOver, shownState } from './state.ts'

/** The response to an order of a video: the specification's four fields. */
export function showAccepted(task: Pick<Task, 'id' | 'model' | 'createdAt'>): JsonObject {
  return { id: task.id, model: task.model, status: 'submitted', created_at: unixSeconds(task.createdAt) }
}

/**
 * A task as its customer sees it: the vendor's own record, with the platform's fields laid over it. It shows no link
 * that has expired or that only our credential opens.
 */
export function showTask(task: Task, now: number): JsonObject {
  const { state, failure, upstreamId } = task
  const record = linksReplaced(task.record ?? {}, task, now)
  return {
    ...record,
    id: task.id,
    // Clients may ask for the task by this id, and where the vendor's record calls it `id`, ours has replaced it.
    ...(upstreamId !== null && { upstream_id: upstreamId }),
    model: task.model,
    status: shownState(state),
    created_at: unixSeconds(task.createdAt),
    updated_at: unixSeconds(task.updatedAt),
    ...(isOver(state) && showEnd(record, task, now)),
    ...(isOver(state) && failure !== null && { error: { code: failure.code, message: failure.message } }),
  }
}

/** The fields of every task that is over, null where there is no value, so that clients need not test for them. */
function showEnd(record: JsonObject, task: Task, now: number): JsonObject {
  const { state, result, usage, facts } = task
  const isMade = state === 'succeeded'
  const given = isMade ? undefined : facts.seed
  const seed = result?.seed ?? (typeof record['seed'] === 'number' ? record['seed'] : given)
  return {
    content: isMade && result !== null ? showContent(record['content'], result, now) : null,
    usage: isMade && usage !== null ? showUsage(record['usage'], task) : null,
    seed: seed ?? null,
  }
}

/** After its links have expired, a result only shows that there was one. */
function showContent(native: Json | undefined, result: TaskResult, now: number): JsonObject {
  const isExpired = now >= result.expiresAt
  const { videoUrl, lastFrameUrl } = result
  return {
    ...(isObject(native) && native),
    video_url: isExpired ? null : videoUrl,
    ...(lastFrameUrl !== undefined && { last_frame_url: isExpired ? null : lastFrameUrl }),
    expires_at: unixSeconds(result.expiresAt),
    ...(isExpired && { expired: true }),
  }
}

/** The aspect ratio is the video's own or absent: the asked one may have had no effect, or been left to the model. */
function showUsage(native: Json | undefined, { usage, result, facts }: Task): JsonObject {
  const video = usage?.video
  const ratio = result?.ratio ?? ''
  return {
    ...(isObject(native) && native),
    duration: video?.seconds ?? result?.seconds ?? facts.seconds,
    resolution: video?.resolution ?? result?.resolution ?? facts.resolution,
    ...(ratio.includes(':') && { aspect_ratio: ratio }),
    ...(usage?.videoToken !== undefined && { [video?.inCredits ? 'credits' : 'total_tokens']: usage.videoToken }),
  }
}

/** The vendor's record with our links in place of its own, or with null once they have expired. */
function linksReplaced(record: JsonObject, { result }: Task, now: number): JsonObject {
  if (result === null) return record
  const isExpired = now >= result.expiresAt
  const links = new Map<string, string | null>()
  for (const [given, ours] of [
    [result.vendorUrl, result.videoUrl],
    [result.vendorFrameUrl, result.lastFrameUrl],
    [result.videoUrl, result.videoUrl],
    [result.lastFrameUrl, result.lastFrameUrl],
  ]) {
    if (given !== undefined) links.set(given, isExpired ? null : (ours ?? null))
  }
  return replacedIn(record, links)
}

type Replacements = ReadonlyMap<string, string | null>

function replacedIn(object: JsonObject, links: Replacements): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, replaced(value, links)]))
}

function replaced(value: Json | undefined, links: Replacements): Json | undefined {
  if (typeof value === 'string') return links.has(value) ? (links.get(value) ?? null) : value
  if (Array.isArray(value)) return value.map((item: Json) => replaced(item, links) ?? null)
  return isObject(value) ? replacedIn(value, links) : value
}
