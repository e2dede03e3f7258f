import { without, type JsonObject } from '../../base/json.ts'
import type { VideoKind } from '../../capabilities/limits.ts'
import type { Usage } from '../../capabilities/usage.ts'
import type { VideoAsk, VideoFacts, VideoResult } from '../../capabilities/video.ts'
import { objectIn, objectsIn, textIn } from '../../wire/loose.ts'
import { jsonCall } from '../json-call.ts'
import type { ResponseWithStatus, Call, CallContext, CreateContext, VideoAdapter } from '../vendor.ts'
import { urlOf } from '../video-frames.ts'
import { parseSuccessBody, idIn, lost, newsOf, parseBodyObject, unexpected, type StateWords } from '../video-news.ts'
import { authorizationFor } from './token.ts'
import { gatewayParameters, negativePromptOf, refuseUnknown, seedanceOnly } from '../video-foreign.ts'

const words: StateWords = {
  submitted: 'submitted',
  processing: 'running',
  succeed: 'succeeded',
  failed: 'failed',
}

const notFound = 1203

/** Kling. A task carries our reference as its external id, by which it can be found again; it cannot be stopped. */
export const video: VideoAdapter = {
  create(ask, context) {
    refuseUnknown(ask, unknown)
    return jsonCall(`${context.baseUrl}${pathOf(ask.kind)}`, writeBody(ask, context), context, authHeaders(context))
  },

  readCreated(response) {
    const json = parseBodyObject(response)
    const { code } = json
    const { task_id: id } = objectIn(json['data'])
    const isError = id === undefined && typeof code === 'number' && code !== 0
    // Error numbers from 5000 on are failures of the vendor.
    return isError ? { errorStatus: code >= 5000 ? 500 : 400 } : idIn(id)
  },

  poll: (id, context, facts) => taskCall(id, facts.kind, context),

  readTask(response, facts) {
    if (isUnknown(response)) return lost
    const record = parseSuccessBody(response)
    const data = objectIn(record['data'])
    const { task_status: word, task_status_msg: message } = data
    if (record['code'] !== 0 || typeof word !== 'string') throw unexpected()
    const [creation] = objectsIn(objectIn(data['task_result'])['videos'])
    return newsOf(words, {
      word,
      record,
      error: { code: 'upstream_failed', message: textIn(message) },
      result: creation === undefined ? undefined : readResult(creation, facts),
      used: readUsage(data, facts),
    })
  },

  find: {
    call: ({ ref, kind }, context) => taskCall(ref, kind, context),
    read(response) {
      if (isUnknown(response)) return 'absent'
      const { code, data } = parseSuccessBody(response)
      return code === 0 ? { upstreamId: idIn(objectIn(data)['task_id']) } : 'unsure'
    },
  },
}

/** Each kind has a path of its own, and its tasks are found only under that path. */
function pathOf(kind: VideoKind): string {
  return `/v1/videos/${kind === 't2v' ? 'text2video' : 'image2video'}`
}

function authHeaders(context: CallContext): { authorization: string } {
  return { authorization: authorizationFor(context) }
}

function taskCall(id: string, kind: VideoKind, context: CallContext): Call {
  return {
    method: 'GET',
    url: `${context.baseUrl}${pathOf(kind)}/${encodeURIComponent(id)}`,
    headers: authHeaders(context),
  }
}

function isUnknown(response: ResponseWithStatus): boolean {
  if (response.status === 404) return true
  return response.status === 200 && parseBodyObject(response)['code'] === notFound
}

const unknown = [...seedanceOnly, 'prompt_extend', 'shot_type', 'watermark']

/** Not passed on as given: parameters of other families, our own, and those that are written below. */
const foreign: ReadonlySet<string> = new Set([...unknown, ...gatewayParameters, 'audio', 'seed'])

function writeBody(ask: VideoAsk, context: CreateContext): JsonObject {
  const { parameters, prompt, media, kind, seconds, ratio, resolution, sound, limits } = ask
  const [first, last] = [urlOf(media, 'first-frame'), urlOf(media, 'last-frame')]
  const negative = negativePromptOf(ask)
  return {
    ...without(parameters, foreign),
    model_name: context.upstreamModel,
    ...(prompt !== '' && { prompt }),
    ...(negative !== '' && { negative_prompt: negative }),
    ...(first !== undefined && { image: bare(first) }),
    ...(last !== undefined && { image_tail: bare(last) }),
    mode: resolution === '1080p' ? 'pro' : 'std',
    duration: String(seconds),
    // A video from an image has the aspect ratio of the image.
    ...(kind === 't2v' && { aspect_ratio: ratio }),
    ...(limits.sound === 'optional' && { sound: sound ? 'on' : 'off' }),
    external_task_id: context.ref,
    ...(context.callbackUrl !== undefined && { callback_url: context.callbackUrl }),
  }
}

/** A URL, or base64 without the `data:` prefix. */
function bare(url: string): string {
  return url.startsWith('data:') ? url.slice(url.indexOf(',') + 1) : url
}

/**
 * The vendor charges for the length that was ordered, although the file and the length in its record are a little
 * longer (5.1 seconds for 5). Its own units tell whether it charged at all.
 */
function readUsage(data: JsonObject, { seconds, resolution, sound }: VideoFacts): Usage {
  const isFree = Number(textIn(data['final_unit_deduction']) || Number.NaN) === 0
  return { video: { seconds: isFree ? 0 : seconds, resolution, sound } }
}

function readResult(creation: JsonObject, { kind, resolution, ratio }: VideoFacts): VideoResult | undefined {
  const videoUrl = textIn(creation['url'])
  if (videoUrl === '') return undefined
  return { videoUrl, needsKey: false, resolution, ...(kind === 't2v' && { ratio }) }
}
