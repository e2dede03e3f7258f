import { isObject, type JsonObject } from '../../base/json.ts'
import type { Usage } from '../../capabilities/usage.ts'
import type { VideoAsk, VideoFacts, VideoResult } from '../../capabilities/video.ts'
import { objectIn, objectsIn, textIn } from '../../wire/loose.ts'
import { soraFrame, soraSize } from '../../wire/native/sora-sizes.ts'
import { unsupported } from '../../wire/native/video-fields.ts'
import { bearer, jsonCall } from '../json-call.ts'
import type { CallContext, VideoAdapter } from '../vendor.ts'
import { urlOf } from '../video-frames.ts'
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
import { gatewayParameters, refuseAllBut, refuseNegativePrompt, refuseSeed } from '../video-foreign.ts'

const words: StateWords = {
  queued: 'submitted',
  in_progress: 'running',
  completed: 'succeeded',
  failed: 'failed',
}

/** Sora: a video is bytes that need our credential. A task that is over can be deleted, but an open one not stopped. */
export const video: VideoAdapter = {
  create(ask, context) {
    refuseNegativePrompt(ask)
    refuseAllBut(ask, taken)
    refuseSeed(ask)
    return jsonCall(`${context.baseUrl}/videos`, writeBody(ask, context), context, bearer(context))
  },

  readCreated(response) {
    const { id, error } = parseBodyObject(response)
    return id === undefined && isObject(error) ? { errorStatus: 500 } : idIn(id)
  },

  poll: (id, context) => ({
    method: 'GET',
    url: `${context.baseUrl}/videos/${encodeURIComponent(id)}`,
    headers: bearer(context),
  }),

  readTask(response, facts) {
    // A deleted task is gone at once.
    if (response.status === 404) return lost
    // A prompt is not kept once the vendor has it, so the vendor's echo of it is not kept either.
    const { prompt: _prompt, ...record } = parseSuccessBody(response)
    const { status: word, error } = record
    if (typeof word !== 'string') throw unexpected()
    const { code, message } = objectIn(error)
    return newsOf(words, {
      word,
      record,
      error: { code: textIn(code) || 'upstream_failed', message: textIn(message) },
      result: word === 'completed' ? readResult(record, facts) : undefined,
      used: readUsage(record, facts),
    })
  },

  // The list holds no references of ours. Lists and polls cover one project; a channel's keys are taken to share one.
  find: {
    call: (_, context) => ({
      method: 'GET',
      url: `${context.baseUrl}/videos?limit=${pageSize}&order=desc`,
      headers: bearer(context),
    }),
    read(response, sought) {
      const { data, has_more: more } = parseSuccessBody(response)
      const tasks = objectsIn(data).map(({ id, created_at: createdAt }) => ({
        id: textIn(id),
        createdAt: timeInSeconds(createdAt),
      }))
      // A list that does not say whether there is more of it may be cut off anywhere, so it proves nothing.
      if (!Array.isArray(data) || typeof more !== 'boolean') return 'unsure'
      return !more || reachesBack(tasks, sought) ? absentOrUnsure(tasks, sought) : 'unsure'
    },
  },
}

// The largest page that OpenAI gives.
const pageSize = 100

/** Sora refuses any field that it does not know, and knows only those that are written below. */
const taken: ReadonlySet<string> = new Set([...gatewayParameters, 'audio', 'sound', 'negative_prompt', 'seed'])

function writeBody(ask: VideoAsk, { upstreamModel }: CallContext): JsonObject {
  const { prompt, media, seconds, resolution, ratio } = ask
  const size = soraSize(ask)
  if (size === undefined) throw unsupported('aspect_ratio', `has no ${ratio} at ${resolution} on this model.`)
  const image = urlOf(media, 'first-frame')
  return {
    model: upstreamModel,
    prompt,
    seconds: String(seconds),
    size,
    ...(image !== undefined && { input_reference: { image_url: image } }),
  }
}

/** OpenAI charges by the second, at the price of the size that it made. */
function readUsage({ seconds: told, size }: JsonObject, { resolution, sound }: VideoFacts): Usage | undefined {
  const seconds = secondsIn(told)
  if (seconds === undefined) return undefined
  return { video: { seconds, resolution: soraFrame(textIn(size))?.resolution ?? resolution, sound } }
}

function readResult({ id, seconds: told, size }: JsonObject, facts: VideoFacts): VideoResult {
  const { resolution, ratio } = soraFrame(textIn(size)) ?? facts
  return {
    videoUrl: `/videos/${encodeURIComponent(idIn(id))}/content`,
    needsKey: true,
    seconds: secondsIn(told) ?? facts.seconds,
    resolution,
    ratio,
  }
}
