import { isGiven, without, type Json, type JsonObject } from '../../base/json.ts'
import type { VideoAsk, VideoFacts, VideoResult } from '../../capabilities/video.ts'
import { fieldsIn } from '../../wire/answer-body.ts'
import { missing } from '../../wire/issues.ts'
import { objectIn, textIn } from '../../wire/loose.ts'
import { parameterAt, unsupported } from '../../wire/native/video-fields.ts'
import { jsonCall } from '../json-call.ts'
import type { CallContext, CreateContext, Form, ResponseWithStatus, VendorResponse, VideoAdapter } from '../vendor.ts'
import { parseSuccessBody, idIn, lost, newsOf, parseBodyObject, unexpected, type StateWords } from '../video-news.ts'
import { frameIn, framesOf, urlOf } from '../video-frames.ts'
import {
  gatewayParameters,
  negativePromptOf,
  rarelyKnown,
  refuseNegativePrompt,
  refuseUnknown,
} from '../video-foreign.ts'
import { statusOf } from './explain.ts'

const moderated = '7'

/** PixVerse's states are numbers. */
const words: StateWords = {
  1: 'succeeded',
  5: 'running',
  6: 'cancelled',
  [moderated]: 'failed',
  8: 'failed',
}

/**
 * PixVerse: an order names images that were uploaded before. Errors come with 2xx statuses. The vendor has no list, so
 * a task in doubt stays in doubt; no way to stop a task is known; and its callback URL is set for a whole account, so
 * tasks are polled.
 */
export const video: VideoAdapter = {
  upload: {
    calls(ask, context) {
      refuseMissing(ask)
      const { now = 0 } = context
      return framesOf(ask).map((url, index) => ({
        url: `${root(context)}/image/upload`,
        headers: authHeaders(context, traceAt(context, now + index)),
        body: writeImage(url),
      }))
    },
    read: (response) => readId(response, 'img_id'),
  },

  create(ask, context) {
    refuseMissing(ask)
    const url = `${root(context)}/video/${pathOf(ask)}/generate`
    return jsonCall(url, writeBody(ask, context), context, authHeaders(context, digitsOf(context)))
  },

  readCreated: (response) => readId(response, 'video_id'),

  statusOf(response) {
    return (response.status === 200 ? statusOf(fieldsIn(response.body)) : undefined) ?? response.status
  },

  poll(id, context) {
    const url = `${root(context)}/video/result/${encodeURIComponent(id)}`
    return { method: 'GET', url, headers: authHeaders(context, traceAt(context, context.now ?? 0)) }
  },

  readTask(response, facts) {
    if (isUnknown(response)) return lost
    const record = parseSuccessBody(response)
    const found = objectIn(record['Resp'])
    const word = numberIn(found['status'])
    if (statusOf(record) !== undefined || word === '') throw unexpected()
    const { seconds, resolution, sound } = facts
    return newsOf(words, {
      word,
      record: writeRecord(record, found),
      error:
        word === moderated
          ? { code: 'content_filtered', message: 'The vendor’s moderation held the video back.' }
          : { code: 'upstream_failed', message: 'The vendor could not make the video.' },
      result: readResult(found, facts),
      // The record counts nothing, so the video is billed by what was asked for.
      used: { video: { seconds, resolution, sound } },
    })
  },
}

function root({ baseUrl }: CallContext): string {
  return `${baseUrl}/openapi/v2`
}

/** Each kind is ordered at a path of its own; all tasks are polled at one. */
function pathOf(ask: VideoAsk): string {
  return (['text', 'img', 'transition'] as const)[framesOf(ask).length] ?? 'transition'
}

/** A link is sent as it is, because the vendor follows links itself. */
function writeImage(url: string): Form {
  if (!url.startsWith('data:')) return [{ field: 'image_url', value: url }]
  const { bytes, mediaType } = frameIn(url)
  return [{ field: 'image', value: { name: mediaType.replace('/', '.'), mediaType, bytes } }]
}

/** The id of what was created or, for an error, the status that it stands for. */
function readId(response: VendorResponse, field: string): string | { readonly errorStatus: number } {
  const json = parseBodyObject(response)
  const errorStatus = statusOf(json)
  const id = numberIn(objectIn(json['Resp'])[field])
  return errorStatus !== undefined && id === '' ? { errorStatus } : idIn(id)
}

/** The trace id is a UUID; one that is used twice may leave a video unfinished. */
function authHeaders({ credential }: CallContext, trace: string): Record<string, string> {
  const uuid = trace.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return { 'api-key': credential, 'ai-trace-id': uuid }
}

function digitsOf({ ref }: CallContext): string {
  return ref.replace(/^att_/, '')
}

/** Each call needs a trace id of its own: the time replaces the last twelve digits of our reference. */
function traceAt(context: CallContext, moment: number): string {
  return digitsOf(context).slice(0, -12) + moment.toString(16).padStart(12, '0')
}

/** PixVerse's ids and states are numbers; its resellers write them as text. */
function numberIn(value: Json | undefined): string {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? String(value) : textIn(value)
}

/** Undoes `numberIn`. */
function asNumber(id: string): number | string {
  return Number.isSafeInteger(Number(id)) ? Number(id) : id
}

function isUnknown(response: ResponseWithStatus): boolean {
  return response.status === 404 || (response.status === 200 && statusOf(fieldsIn(response.body)) === 404)
}

/** Parameters of version 5 and earlier, which later versions do not have. */
const former = ['motion_mode', 'camera_movement', 'sound_effect_switch', 'lip_sync_switch', 'lip_sync_tts_switch']

/** Ids of images in the operator's own account at PixVerse. */
const ofAccount = ['img_id', 'img_ids', 'first_frame_img', 'last_frame_img']

function refuseMissing(ask: VideoAsk): void {
  const { parameters, media, prompt, resolution, sound } = ask
  refuseUnknown(ask, [...rarelyKnown, ...former])
  if (prompt.trim() === '') throw missing('input.prompt')
  if (urlOf(media, 'last-frame') !== undefined) refuseNegativePrompt(ask)
  for (const name of ofAccount) {
    if (isGiven(parameters[name])) throw unsupported(parameterAt(ask, name), 'is not supported: send the image itself.')
  }
  for (const name of ['template_id', 'generate_multi_clip_switch']) {
    if (parameters[name]) throw unsupported(parameterAt(ask, name), 'is not supported: its price is not known.')
  }
  // PixVerse's own names for values that are read from other fields: what is charged and what is made must not differ.
  for (const [name, meant, elsewhere] of [
    ['quality', resolution, 'resolution'],
    ['generate_audio_switch', sound, 'audio'],
  ] as const) {
    const given = parameters[name]
    if (isGiven(given) && given !== meant) {
      throw unsupported(parameterAt(ask, name), `is not supported: use '${elsewhere}'.`)
    }
  }
}

/** Not passed on as given: parameters that PixVerse does not know, our own, and those that are written below. */
const foreign: ReadonlySet<string> = new Set([
  ...rarelyKnown,
  ...former,
  ...gatewayParameters,
  'audio',
  'sound',
  'watermark',
  'seed',
  'negative_prompt',
  'template_id',
  'generate_multi_clip_switch',
  ...ofAccount,
])

function writeBody(ask: VideoAsk, context: CreateContext): JsonObject {
  const { parameters, prompt, kind, seconds, resolution, ratio, sound, seed, limits } = ask
  const negative = negativePromptOf(ask)
  const { watermark } = parameters
  return {
    ...without(parameters, foreign),
    model: context.upstreamModel,
    prompt,
    ...(negative !== '' && { negative_prompt: negative }),
    ...writeFrames(context),
    // A video from a first frame has the aspect ratio of that frame.
    ...(kind !== 'i2v' && { aspect_ratio: ratio }),
    duration: seconds,
    quality: resolution,
    ...(limits.sound === 'optional' && { generate_audio_switch: sound }),
    ...(watermark !== undefined && { water_mark: watermark }),
    ...(seed !== undefined && { seed }),
  }
}

function writeFrames({ uploaded = [] }: CreateContext): JsonObject {
  const [first, last] = uploaded.map(asNumber)
  if (first === undefined) return {}
  return last === undefined ? { img_id: first } : { first_frame_img: first, last_frame_img: last }
}

function readResult(found: JsonObject, facts: VideoFacts): VideoResult | undefined {
  const { kind, seconds, resolution, ratio, seed } = facts
  const videoUrl = textIn(found['url'])
  if (videoUrl === '') return undefined
  const { seed: told } = found
  const chosen = typeof told === 'number' && Number.isSafeInteger(told) && told > 0 ? told : seed
  return {
    videoUrl,
    needsKey: false,
    seconds,
    resolution,
    ...(kind !== 'i2v' && { ratio }),
    ...(chosen !== undefined && { seed: chosen }),
  }
}

/** A prompt is not kept once the vendor has it, so the vendor's echo of it is not kept either. */
function writeRecord(record: JsonObject, found: JsonObject): JsonObject {
  const { prompt: _prompt, negative_prompt: _negative, ...rest } = found
  return { ...record, Resp: rest }
}
