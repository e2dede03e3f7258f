import { without, type JsonObject } from '../../base/json.ts'
import type { VideoKind } from '../../capabilities/limits.ts'
import type { VideoAsk, VideoFacts, VideoResult } from '../../capabilities/video.ts'
import { itemsIn, textIn } from '../../wire/loose.ts'
import { runwaySize } from '../../wire/native/runway-sizes.ts'
import { bearer, jsonCall } from '../json-call.ts'
import type { Call, CallContext, VideoAdapter } from '../vendor.ts'
import { urlOf, urlsOf } from '../video-frames.ts'
import { parseSuccessBody, idIn, lost, newsOf, parseBodyObject, unexpected, type StateWords } from '../video-news.ts'
import { gatewayParameters, rarelyKnown, refuseNegativePrompt, refuseUnknown } from '../video-foreign.ts'

const words: StateWords = {
  PENDING: 'submitted',
  THROTTLED: 'submitted',
  RUNNING: 'running',
  SUCCEEDED: 'succeeded',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
}

const paths = {
  t2v: '/v1/text_to_video',
  i2v: '/v1/image_to_video',
  r2v: '/v1/video_to_video',
} as const satisfies Record<VideoKind, string>

/** Every call has to name the version of the protocol that it is written in. */
const version = '2024-11-06'

/** Runway. It has no list and takes no reference of ours, so a task in doubt cannot be found again. */
export const video: VideoAdapter = {
  create(ask, context) {
    refuseNegativePrompt(ask)
    refuseUnknown(ask, unknown)
    return jsonCall(`${context.baseUrl}${paths[ask.kind]}`, writeBody(ask, context), context, authHeaders(context))
  },

  readCreated(response) {
    const { id, error } = parseBodyObject(response)
    return id === undefined && textIn(error) !== '' ? { errorStatus: 500 } : idIn(id)
  },

  poll: (id, context) => taskCall('GET', id, context),

  readTask(response, facts) {
    // A deleted task is gone at once.
    if (response.status === 404) return lost
    const record = parseSuccessBody(response)
    const { status: word, failure, failureCode } = record
    if (typeof word !== 'string') throw unexpected()
    return newsOf(words, {
      word,
      record: withOneLink(record),
      error: { code: textIn(failureCode) || 'upstream_failed', message: textIn(failure) },
      result: readResult(record, facts),
      used: usageOf(facts),
    })
  },

  cancel: {
    deletes: true,
    forgets: true,
    call: (id, context) => taskCall('DELETE', id, context),
    read({ status }) {
      if (status === 200 || status === 204) return true
      if (status === 404) return false
      throw unexpected()
    },
  },
}

function authHeaders(context: CallContext): Call['headers'] {
  return { ...bearer(context), 'x-runway-version': version }
}

function taskCall(method: 'GET' | 'DELETE', id: string, context: CallContext): Call {
  return { method, url: `${context.baseUrl}/v1/tasks/${encodeURIComponent(id)}`, headers: authHeaders(context) }
}

const unknown = [...rarelyKnown, 'watermark']

/** Not passed on as given: parameters of other families, our own, and those that are written below. */
const foreign: ReadonlySet<string> = new Set([...unknown, ...gatewayParameters, 'sound', 'audio', 'seed'])

function writeBody(ask: VideoAsk, context: CallContext): JsonObject {
  const { parameters, prompt, kind, seed } = ask
  return {
    ...without(parameters, foreign),
    model: context.upstreamModel,
    ...(prompt !== '' && { promptText: prompt }),
    ...(kind === 'r2v' ? writeVideoEdit(ask) : writeFrame(ask)),
    ...(seed !== undefined && { seed }),
  }
}

function writeFrame({ media, ratio, seconds }: VideoAsk): JsonObject {
  const first = urlOf(media, 'first-frame')
  return { ...(first !== undefined && { promptImage: first }), ratio: runwaySize(ratio) ?? ratio, duration: seconds }
}

/** A video that is made from another has the length and size of that one, so neither is sent. */
function writeVideoEdit({ media }: VideoAsk): JsonObject {
  const references = urlsOf(media, 'reference-image').map((uri) => ({ type: 'image', uri }))
  return {
    videoUri: urlOf(media, 'reference-video') ?? '',
    ...(references.length > 0 && { references }),
  }
}

/** Billed by what was asked for, because the record counts nothing. How long an edited video is, is not known. */
function usageOf({ kind, seconds, resolution, sound }: VideoFacts) {
  return kind === 'r2v' ? undefined : { video: { seconds, resolution, sound } }
}

/** The list of links holds one. If it held more, the others would stay in our record after they had expired. */
function withOneLink(record: JsonObject): JsonObject {
  const { output } = record
  return output === undefined ? record : { ...record, output: itemsIn(output).slice(0, 1) }
}

function readResult({ output }: JsonObject, { resolution, ratio, seconds, kind, seed }: VideoFacts) {
  const videoUrl = textIn(itemsIn(output)[0])
  if (videoUrl === '') return undefined
  const result: VideoResult = {
    videoUrl,
    needsKey: false,
    resolution,
    ...(kind !== 'r2v' && { ratio, seconds }),
    // The record has no seed, so the one that was asked for is shown.
    ...(seed !== undefined && { seed }),
  }
  return result
}
