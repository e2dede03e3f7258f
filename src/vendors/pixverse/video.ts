import { isGiven, without, type Json, type JsonObject } from '../../base/json.ts'
import { decodeUtf8 } from '../../base/utf8.ts'
import type { VideoAsk, VideoFacts, VideoResult } from '../../capabilities/video.ts'
import { missing } from '../../wire/issues.ts'
import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { unsupported } from '../../wire/native/video-fields.ts'
import { jsonCall } from '../json-call.ts'
import type { Answered, CallContext, CreateContext, Responded, VideoAdapter } from '../vendor.ts'
import { goodObjectOf, idIn, lost, newsOf, objectOf, unexpected, type StateWords } from '../video-news.ts'
import { frameIn, urlOf } from '../video-frames.ts'
import { negativeOf, refuseNegative, refuseUnknown, seedanceOnly, seldomKnown } from '../video-foreign.ts'
import { statusOf } from './explain.ts'

const moderated = '7'

/** Its states are numbers. */
const words: StateWords = {
  1: 'succeeded',
  5: 'running',
  6: 'cancelled',
  [moderated]: 'failed',
  8: 'failed',
}

/**
 * PixVerse: an order names pictures that were uploaded before. Errors come under good statuses. It keeps no list, so what is
 * in doubt stays so; nobody knows how a task is stopped; and where it calls back is set for an account as a whole, so it is
 * polled.
 */
export const video: VideoAdapter = {
  upload: {
    calls(ask, context) {
      refuseMissing(ask)
      const { now = 0 } = context
      return framesOf(ask).map((url, index) => ({
        url: `${root(context)}/image/upload`,
        headers: keyed(context, traceAt(context, now + index)),
        body: writePicture(url),
      }))
    },
    read: (response) => readId(response, 'img_id'),
  },

  create(ask, context) {
    refuseMissing(ask)
    const url = `${root(context)}/video/${pathOf(ask)}/generate`
    return jsonCall(url, writeBody(ask, context), context, keyed(context, digitsOf(context)))
  },

  readCreated: (response) => readId(response, 'video_id'),

  statusOf(response) {
    return (response.status === 200 ? statusOf(jsonIn(response)) : undefined) ?? response.status
  },

  poll(id, context) {
    const url = `${root(context)}/video/result/${encodeURIComponent(id)}`
    return { method: 'GET', url, headers: keyed(context, traceAt(context, context.now ?? 0)) }
  },

  readTask(response, facts) {
    if (isUnknown(response)) return lost
    const record = goodObjectOf(response)
    const film = objectIn(record['Resp'])
    const word = numberIn(film['status'])
    if (statusOf(record) !== undefined || word === '') throw unexpected()
    const { seconds, resolution, sound } = facts
    return newsOf(words, {
      word,
      record: writeRecord(record, film),
      error:
        word === moderated
          ? { code: 'content_filtered', message: 'The vendor’s moderation held the video back.' }
          : { code: 'upstream_failed', message: 'The vendor could not make the video.' },
      result: readResult(film, facts),
      // Its record counts nothing: it is billed as it was asked for.
      used: { video: { seconds, resolution, sound } },
    })
  },
}

function root({ baseUrl }: CallContext): string {
  return `${baseUrl}/openapi/v2`
}

/** Each kind has an address of its own; all tasks are found under one. */
function pathOf(ask: VideoAsk): string {
  return (['text', 'img', 'transition'] as const)[framesOf(ask).length] ?? 'transition'
}

/** The first frame, and perhaps the last one. */
function framesOf({ media }: VideoAsk): string[] {
  return [urlOf(media, 'first-frame'), urlOf(media, 'last-frame')].filter((url) => url !== undefined)
}

/** The vendor follows links itself. */
function writePicture(url: string): FormData {
  const form = new FormData()
  if (url.startsWith('data:')) {
    const { bytes, mediaType } = frameIn(url)
    const name = mediaType.replace('/', '.')
    form.append('image', new File([bytes as Uint8Array<ArrayBuffer>], name, { type: mediaType }))
  } else form.append('image_url', url)
  return form
}

/** Of what an answer made, or the status that its error has elsewhere. */
function readId(response: Responded, field: string): string | { readonly errorStatus: number } {
  const json = objectOf(response)
  const errorStatus = statusOf(json)
  const id = numberIn(objectIn(json['Resp'])[field])
  return errorStatus !== undefined && id === '' ? { errorStatus } : idIn(id)
}

/** The trace is a UUID; one that comes twice may leave a film unfinished. */
function keyed({ credential }: CallContext, trace: string): Record<string, string> {
  const uuid = trace.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return { 'api-key': credential, 'ai-trace-id': uuid }
}

function digitsOf({ ref }: CallContext): string {
  return ref.replace(/^att_/, '')
}

/** Each call has another: the moment stands where a reference has the last of its digits. */
function traceAt(context: CallContext, moment: number): string {
  return digitsOf(context).slice(0, -12) + moment.toString(16).padStart(12, '0')
}

/** Its ids and states are numbers; those who sell it on write them as texts. */
function numberIn(value: Json | undefined): string {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? String(value) : textIn(value)
}

/** As it was read. */
function asNumber(id: string): number | string {
  return Number.isSafeInteger(Number(id)) ? Number(id) : id
}

function jsonIn({ body }: Responded): Json | undefined {
  return parseLoosely(decodeUtf8(body))
}

function isUnknown(response: Answered): boolean {
  return response.status === 404 || (response.status === 200 && statusOf(jsonIn(response)) === 404)
}

/** Those of version 5 and before, which later ones do not have. */
const former = ['motion_mode', 'camera_movement', 'sound_effect_switch', 'lip_sync_switch', 'lip_sync_tts_switch']

/** Of other families. */
const ofOthers = ['mode', 'prompt_extend', 'prompt_optimizer', 'shot_type']

/** Pictures that lie in the operator's own account there. */
const ofAccount = ['img_id', 'img_ids', 'first_frame_img', 'last_frame_img']

function refuseMissing(ask: VideoAsk): void {
  const { parameters, media, prompt, resolution, sound } = ask
  refuseUnknown(ask, [...seedanceOnly, ...ofOthers, ...former])
  if (prompt.trim() === '') throw missing('input.prompt')
  if (urlOf(media, 'last-frame') !== undefined) refuseNegative(ask)
  for (const name of ofAccount) {
    if (isGiven(parameters[name])) throw unsupported(`parameters.${name}`, 'is not supported: send the image itself.')
  }
  for (const name of ['template_id', 'generate_multi_clip_switch']) {
    if (parameters[name]) throw unsupported(`parameters.${name}`, 'is not supported: its price is not known.')
  }
  // Its own names for what is read elsewhere: what is charged and what is made must not differ.
  for (const [name, meant, elsewhere] of [
    ['quality', resolution, 'resolution'],
    ['generate_audio_switch', sound, 'audio'],
  ] as const) {
    const given = parameters[name]
    if (isGiven(given) && given !== meant) {
      throw unsupported(`parameters.${name}`, `is not supported: use '${elsewhere}'.`)
    }
  }
}

/** Not passed on as it came: what it does not know, ours, and what is written below. */
const foreign: ReadonlySet<string> = new Set([
  ...seldomKnown,
  ...ofOthers,
  ...former,
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
  const negative = negativeOf(ask)
  const { watermark } = parameters
  return {
    ...without(parameters, foreign),
    model: context.upstreamModel,
    prompt,
    ...(negative !== '' && { negative_prompt: negative }),
    ...writeFrames(context),
    // A first frame has a shape of its own.
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

function readResult(film: JsonObject, facts: VideoFacts): VideoResult | undefined {
  const { kind, seconds, resolution, ratio, seed } = facts
  const videoUrl = textIn(film['url'])
  if (videoUrl === '') return undefined
  const { seed: told } = film
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

/** What was asked is not kept once the vendor has it, so its echo is not either. */
function writeRecord(record: JsonObject, film: JsonObject): JsonObject {
  const { prompt: _prompt, negative_prompt: _negative, ...rest } = film
  return { ...record, Resp: rest }
}
