import type { Json, JsonObject } from '../../base/json.ts'
import { decodeUtf8 } from '../../base/utf8.ts'
import type { VideoAsk, VideoFacts, VideoResult } from '../../capabilities/video.ts'
import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { isGiven, unsupported } from '../../wire/native/video-fields.ts'
import { jsonCall } from '../json-call.ts'
import type { CallContext, Responded, VideoAdapter } from '../vendor.ts'
import { type Answered, goodObjectOf, idIn, newsOf, objectOf, type StateWords, unexpected } from '../video-news.ts'
import { refuseUnknown, seedanceOnly, seldomKnown } from '../video-foreign.ts'
import { statusOf } from './errors.ts'

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
 * PixVerse, from a text: a picture has to be uploaded to it in a call of its own before the order, and an order is one
 * call here. Errors come under good statuses. It keeps no list, so what is in doubt stays so; nobody knows how a task is
 * stopped; and where it calls back is set for an account as a whole, so it is polled.
 */
export const video: VideoAdapter = {
  create(ask, context) {
    refuseMissing(ask)
    const trace = digitsOf(context)
    return jsonCall(`${root(context)}/text/generate`, writeBody(ask, context), context, keyed(context, trace))
  },

  readCreated(response) {
    const json = objectOf(response)
    const errorStatus = statusOf(json)
    const id = numberIn(objectIn(json['Resp'])['video_id'])
    return errorStatus !== undefined && id === '' ? { errorStatus } : idIn(id)
  },

  statusOf(response) {
    return (response.status === 200 ? statusOf(jsonIn(response)) : undefined) ?? response.status
  },

  poll(id, context) {
    // Each call has another: the moment stands where a reference has the last of its digits.
    const trace = digitsOf(context).slice(0, -12) + (context.now ?? 0).toString(16).padStart(12, '0')
    const url = `${root(context)}/result/${encodeURIComponent(id)}`
    return { method: 'GET', url, headers: keyed(context, trace) }
  },

  readTask(response, facts) {
    if (isUnknown(response)) return { state: 'lost', word: '404', record: {} }
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
          ? { code: 'content_filtered', message: 'The vendor’s moderation held the film back.' }
          : { code: 'upstream_failed', message: 'The vendor could not make the film.' },
      result: readResult(film, facts),
      // Its record counts nothing: it is billed as it was asked for.
      used: { video: { seconds, resolution, sound } },
    })
  },
}

function root({ baseUrl }: CallContext): string {
  return `${baseUrl}/openapi/v2/video`
}

/** The trace is a UUID; one that comes twice may leave a film unfinished. */
function keyed({ credential }: CallContext, trace: string): Record<string, string> {
  const uuid = trace.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return { 'api-key': credential, 'ai-trace-id': uuid }
}

function digitsOf({ ref }: CallContext): string {
  return ref.replace(/^att_/, '')
}

/** Its ids and states are numbers; those who sell it on write them as texts. */
function numberIn(value: Json | undefined): string {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? String(value) : textIn(value)
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

function refuseMissing(ask: VideoAsk): void {
  const { parameters, resolution, sound } = ask
  refuseUnknown(ask, [...seedanceOnly, ...ofOthers, ...former])
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
      throw unsupported(`parameters.${name}`, `is not supported: say it as '${elsewhere}'.`)
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
])

function writeBody(ask: VideoAsk, context: CallContext): JsonObject {
  const { parameters, input, prompt, seconds, resolution, ratio, sound, seed, limits } = ask
  const passed = Object.entries(parameters).filter(([name]) => !foreign.has(name))
  const negative = textIn(input['negative_prompt']) || textIn(parameters['negative_prompt'])
  const { watermark } = parameters
  return {
    ...Object.fromEntries(passed),
    model: context.upstreamModel,
    prompt,
    ...(negative !== '' && { negative_prompt: negative }),
    aspect_ratio: ratio,
    duration: seconds,
    quality: resolution,
    ...(limits.sound === 'optional' && { generate_audio_switch: sound }),
    ...(watermark !== undefined && { water_mark: watermark }),
    ...(seed !== undefined && { seed }),
  }
}

function readResult(film: JsonObject, { seconds, resolution, ratio, seed }: VideoFacts): VideoResult | undefined {
  const videoUrl = textIn(film['url'])
  if (videoUrl === '') return undefined
  const { seed: told } = film
  const chosen = typeof told === 'number' && Number.isSafeInteger(told) && told > 0 ? told : seed
  return { videoUrl, needsKey: false, seconds, resolution, ratio, ...(chosen !== undefined && { seed: chosen }) }
}

/** What was asked is not kept once the vendor has it, so its echo is not either. */
function writeRecord(record: JsonObject, film: JsonObject): JsonObject {
  const { prompt: _prompt, negative_prompt: _negative, ...rest } = film
  return { ...record, Resp: rest }
}
