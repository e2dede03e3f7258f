import { badRequest } from '../../base/errors.ts'
import { isObject, without, type Json, type JsonObject } from '../../base/json.ts'
import type { Usage } from '../../capabilities/usage.ts'
import type { VideoAsk, VideoFacts, VideoResult, VideoRole } from '../../capabilities/video.ts'
import { countIn, objectIn, objectsIn, textIn } from '../../wire/loose.ts'
import { bearer, jsonCall } from '../json-call.ts'
import type { Call, CallContext, CreateContext, VideoAdapter } from '../vendor.ts'
import {
  parseSuccessBody,
  idIn,
  lost,
  newsOf,
  parseBodyObject,
  reachesBack,
  secondsIn,
  absentOrUnsure,
  timeInSeconds,
  unexpected,
  type StateWords,
} from '../video-news.ts'
import { refuseNegativePrompt, refuseUnknown } from '../video-foreign.ts'
import { statusOf } from './explain.ts'

const words: StateWords = {
  queued: 'submitted',
  running: 'running',
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'cancelled',
  expired: 'expired',
}

const path = '/contents/generations/tasks'

/** Seedance, the video models of Ark. */
export const video: VideoAdapter = {
  create(ask, context) {
    refuseNegativePrompt(ask)
    refuseUnknown(ask, ['prompt_extend', 'shot_type', 'mode'])
    return jsonCall(`${context.baseUrl}${path}`, writeBody(ask, context), context, bearer(context))
  },

  readCreated(response) {
    const { id, error } = parseBodyObject(response)
    if (id === undefined && isObject(error)) return { errorStatus: statusOf(error) }
    return idIn(id)
  },

  poll: (id, context) => taskCall('GET', id, context),

  readTask(response, facts) {
    // Ark forgets a task after a week, and a deleted one at once.
    if (response.status === 404) return lost
    const record = parseSuccessBody(response)
    const { status: word, error } = record
    if (typeof word !== 'string') throw unexpected()
    const { code, message } = objectIn(error)
    return newsOf(words, {
      word,
      record,
      error: { code: textIn(code) || 'upstream_failed', message: textIn(message) },
      result: readResult(record, facts),
      used: readUsage(record, facts),
    })
  },

  cancel: {
    deletes: true,
    call: (id, context) => taskCall('DELETE', id, context),
    read({ status }) {
      if (status === 200 || status === 204) return true
      // The task already runs, has been cancelled before, or is unknown.
      if (status === 400 || status === 403 || status === 404 || status === 409) return false
      throw unexpected()
    },
  },

  find: {
    call: (_, context) => ({
      method: 'GET',
      url: `${context.baseUrl}${path}?page_num=1&page_size=${pageSize}`,
      headers: bearer(context),
    }),
    read(response, sought) {
      const { items, total } = parseSuccessBody(response)
      const tasks = objectsIn(items).map((item) => ({
        id: textIn(item['id']),
        createdAt: timeInSeconds(item['created_at']),
      }))
      // A list that does not say how long it is may be cut off anywhere, so it proves nothing.
      if (!Array.isArray(items) || typeof total !== 'number') return 'unsure'
      // Ark does not document the order of its list, so `reachesBack` checks it.
      return total <= tasks.length || reachesBack(tasks, sought) ? absentOrUnsure(tasks, sought) : 'unsure'
    },
  },
}

// The largest page that Ark gives.
const pageSize = 500

function taskCall(method: 'GET' | 'DELETE', id: string, context: CallContext): Call {
  return { method, url: `${context.baseUrl}${path}/${encodeURIComponent(id)}`, headers: bearer(context) }
}

/** Not passed on as given: parameters of other families, our own, and those that are written below. */
const foreign: ReadonlySet<string> = new Set([
  'model',
  'content',
  'negative_prompt',
  'prompt_extend',
  'shot_type',
  'audio',
  'sound',
  'service_tier',
  'tools',
  'n',
  'sampleCount',
  'mode',
])

function writeBody(ask: VideoAsk, context: CreateContext): JsonObject {
  const { limits, parameters, resolution, ratio, seconds, isFreeLength, sound, draftOf } = ask
  const label = textIn(parameters['safety_identifier'])
  return {
    execution_expires_after: expiryOf(limits.deadlineSeconds),
    ...without(parameters, foreign),
    ...(label !== '' && { safety_identifier: context.namespaced(label) }),
    model: context.upstreamModel,
    content: draftOf === undefined ? writeContent(ask) : [writeDraft(ask, context)],
    resolution,
    // A final has the length, ratio and audio of its draft.
    ...(draftOf === undefined && { ratio, duration: isFreeLength ? -1 : seconds }),
    ...(draftOf === undefined && limits.sound === 'optional' && { generate_audio: sound }),
    ...(context.callbackUrl !== undefined && { callback_url: context.callbackUrl }),
  }
}

/** The vendor gives up at our own deadline, within the range that it accepts. */
function expiryOf(deadlineSeconds: number): number {
  return Math.min(Math.max(deadlineSeconds, 3_600), 259_200)
}

const items: Readonly<Partial<Record<VideoRole, readonly [type: string, role: string]>>> = {
  'first-frame': ['image_url', 'first_frame'],
  'last-frame': ['image_url', 'last_frame'],
  'reference-image': ['image_url', 'reference_image'],
  'reference-video': ['video_url', 'reference_video'],
  'reference-audio': ['audio_url', 'reference_audio'],
}

function writeContent({ prompt, media }: VideoAsk): Json[] {
  const written = media.flatMap(({ role, url }): Json[] => {
    const item = items[role]
    return item === undefined ? [] : [{ type: item[0], [item[0]]: { url }, role: item[1] }]
  })
  return prompt === '' ? written : [{ type: 'text', text: prompt }, ...written]
}

/** The vendor finds a draft by its id, whichever account made it, so only a draft whose owner was checked is named. */
function writeDraft({ draftAt }: VideoAsk, { draftUpstreamId }: CreateContext): Json {
  if (draftUpstreamId !== undefined) return { type: 'draft_task', draft_task: { id: draftUpstreamId } }
  throw badRequest('There is no such draft.', draftAt)
}

/** Tokens as the vendor counts them; its record does not say whether the client gave an input video. */
function readUsage(record: JsonObject, facts: VideoFacts): Usage | undefined {
  const { total_tokens: total, completion_tokens: made } = objectIn(record['usage'])
  const counts = [total, made].filter((count) => typeof count === 'number' && count >= 0)
  // A total of 0 beside tokens that were made is one that the server does not keep.
  const tokens = counts.find((count) => count !== 0) ?? counts[0]
  if (tokens === undefined) return undefined
  const { generate_audio: audio } = record
  return {
    videoToken: countIn(tokens),
    video: {
      seconds: readSeconds(record) ?? facts.seconds,
      resolution: readResolution(record) ?? facts.resolution,
      sound: typeof audio === 'boolean' ? audio : facts.sound,
      ...(facts.hasInputVideo && { hasInputVideo: true }),
    },
  }
}

const framesPerSecond = 24

/** A record has seconds or frames, never both. */
function readSeconds({ duration, frames }: JsonObject): number | undefined {
  return secondsIn(duration) ?? (typeof frames === 'number' ? Math.floor(countIn(frames) / framesPerSecond) : undefined)
}

function readResolution({ resolution }: JsonObject): string | undefined {
  const word = textIn(resolution).toLowerCase()
  return /^(?:\d{3,4}p|\d{1,2}k)$/.test(word) ? word : undefined
}

function readResult(record: JsonObject, facts: VideoFacts): VideoResult | undefined {
  const { video_url: videoUrl, last_frame_url: lastFrameUrl } = objectIn(record['content'])
  if (textIn(videoUrl) === '') return undefined
  const { seed = facts.seed, updated_at: madeAt } = record
  const [seconds, resolution] = [readSeconds(record), readResolution(record)]
  return {
    videoUrl: textIn(videoUrl),
    needsKey: false,
    ...(textIn(lastFrameUrl) !== '' && { lastFrameUrl: textIn(lastFrameUrl) }),
    ...(seconds !== undefined && { seconds }),
    ...(resolution !== undefined && { resolution }),
    ratio: textIn(record['ratio']) || facts.ratio,
    ...(typeof seed === 'number' && { seed }),
    ...(typeof madeAt === 'number' && { madeAt: madeAt * 1_000 }),
  }
}
