import type { Json, JsonObject } from '../../base/json.ts'
import type { Usage } from '../../capabilities/usage.ts'
import type { VideoFacts, VideoResult } from '../../capabilities/video.ts'
import { objectIn, objectsIn, textIn } from '../../wire/loose.ts'
import { wanFrame } from '../../wire/native/wan-sizes.ts'
import { bearer, jsonCall } from '../json-call.ts'
import type { Call, CallContext, VideoAdapter } from '../vendor.ts'
import {
  clockSkewMs,
  parseSuccessBody,
  idIn,
  newsOf,
  parseBodyObject,
  secondsIn,
  absentOrUnsure,
  type StateWords,
  timeIn,
  unexpected,
} from '../video-news.ts'
import { statusOf } from './explain.ts'
import { refuseUnsupported, writeInput, writeParameters } from './write-video.ts'

/** `UNKNOWN`, which comes with a 2xx status, is a task that never existed or is too old. */
const words: StateWords = {
  PENDING: 'submitted',
  SUSPENDED: 'submitted',
  RUNNING: 'running',
  SUCCEEDED: 'succeeded',
  FAILED: 'failed',
  CANCELED: 'cancelled',
  UNKNOWN: 'lost',
}

/** Wan. The vendor checks nearly all fields only once the task runs, so the gateway has checked them before this. */
export const video: VideoAdapter = {
  create(ask, context) {
    refuseUnsupported(ask)
    const body = { model: context.upstreamModel, input: writeInput(ask), parameters: writeParameters(ask) }
    const url = `${context.baseUrl}/api/v1/services/aigc/video-generation/video-synthesis`
    return jsonCall(url, body, context, { ...bearer(context), 'x-dashscope-async': 'enable' })
  },

  readCreated(response) {
    const json = parseBodyObject(response)
    const { task_id: id } = objectIn(json['output'])
    const code = textIn(json['code'])
    return id === undefined && code !== '' ? { errorStatus: statusOf(code) } : idIn(id)
  },

  poll: (id, context) => get(`/tasks/${encodeURIComponent(id)}`, context),

  readTask(response, facts) {
    const record = parseSuccessBody(response)
    const output = objectIn(record['output'])
    const { task_status: word, code, message } = output
    if (typeof word !== 'string') throw unexpected()
    const usage = objectIn(record['usage'])
    return newsOf(words, {
      word,
      record: { ...record, output: withoutPrompts(output) },
      error: { code: textIn(code) || 'upstream_failed', message: textIn(message) },
      result: readResult(output, usage, facts),
      used: readUsage(usage, facts),
    })
  },

  cancel: {
    call: (id, context) => ({ ...get(`/tasks/${encodeURIComponent(id)}/cancel`, context), method: 'POST' }),
    read(response) {
      if (response.status === 200) return true
      // Only a task that is still pending can be cancelled.
      if (response.status === 400 && textIn(parseBodyObject(response)['code']) === 'UnsupportedOperation') return false
      throw unexpected()
    },
  },

  find: {
    call({ sentAt, sentUntil = sentAt, upstreamModel }, context) {
      const query = new URLSearchParams({
        start_time: writeTime(sentAt - clockSkewMs),
        end_time: writeTime(sentUntil + listedMs),
        model_name: upstreamModel,
        page_size: '100',
      })
      return get(`/tasks/?${query.toString()}`, context)
    },
    read(response, sought) {
      const { data, total } = parseSuccessBody(response)
      const rows = objectsIn(data)
      // A list that does not say how long it is may be cut off anywhere, so it proves nothing.
      if (!Array.isArray(data) || typeof total !== 'number' || total > rows.length) return 'unsure'
      return absentOrUnsure(
        rows.map((row) => ({ id: textIn(row['task_id']), createdAt: timeIn(row['gmt_create']) })),
        sought,
      )
    },
  },
}

function get(path: string, context: CallContext): Call {
  return { method: 'GET', url: `${context.baseUrl}/api/v1${path}`, headers: bearer(context) }
}

/** A prompt is not kept once the vendor has it, so the vendor's echo of it is not kept either. */
function withoutPrompts(output: JsonObject): JsonObject {
  const { orig_prompt: _asked, actual_prompt: _written, ...rest } = output
  return rest
}

// Longer than any creation takes to reach the vendor.
const listedMs = 15 * 60_000
const zoneMs = 8 * 60 * 60_000

/** `YYYYMMDDhhmmss` in UTC+8. */
function writeTime(ms: number): string {
  return new Date(ms + zoneMs).toISOString().replaceAll(/\D/g, '').slice(0, 14)
}

/** `YYYY-MM-DD hh:mm:ss.SSS` in UTC+8, although the text names no zone. */
function readTime(text: string): number | undefined {
  const ms = Date.parse(`${text.replace(' ', 'T')}Z`)
  return Number.isNaN(ms) ? undefined : ms - zoneMs
}

const tiers: ReadonlySet<string> = new Set(['480', '720', '1080'])

/** The tier is a number in some responses and text in others; before Wan 2.6 only the size tells it. */
function readResolution(usage: JsonObject): string | undefined {
  const tier = usage['SR']
  const told = typeof tier === 'number' ? String(tier) : textIn(tier)
  if (tiers.has(told)) return `${told}p`
  return wanFrame('wan2.5', sizeIn(usage))?.resolution
}

/** Before Wan 2.7 only the size tells the ratio. A video from an image has the image's ratio, whatever was asked. */
function readRatio(usage: JsonObject, { kind, ratio }: VideoFacts): string {
  const told = textIn(usage['ratio']) || wanFrame('wan2.5', sizeIn(usage))?.ratio
  return told ?? (kind === 'i2v' ? '' : ratio)
}

function sizeIn(usage: JsonObject): string {
  return textIn(usage['video_ratio']) || textIn(usage['size'])
}

/** The first number above zero, because a version that does not use a field may send it as zero. */
function readSeconds(usage: JsonObject): number | undefined {
  const parts = [usage['input_video_duration'], usage['output_video_duration']].map(secondsIn)
  const sum = parts.some((part) => part !== undefined)
    ? parts.reduce<number>((all, part) => all + (part ?? 0), 0)
    : undefined
  const told = [usage['duration'], usage['video_duration'], sum].map(secondsIn)
  return told.find((seconds) => seconds !== undefined && seconds > 0) ?? told.find((seconds) => seconds !== undefined)
}

/** Seconds as billed, with those of reference videos, which the vendor itself adds. */
function readUsage(usage: JsonObject, facts: VideoFacts): Usage | undefined {
  const seconds = readSeconds(usage)
  if (seconds === undefined) return undefined
  const audio: Json | undefined = usage['audio']
  return {
    video: {
      seconds,
      resolution: readResolution(usage) ?? facts.resolution,
      sound: typeof audio === 'boolean' ? audio : facts.sound,
    },
  }
}

function readResult(output: JsonObject, usage: JsonObject, facts: VideoFacts): VideoResult | undefined {
  const videoUrl = textIn(output['video_url'])
  if (videoUrl === '') return undefined
  const seconds = secondsIn(usage['output_video_duration']) || readSeconds(usage)
  const madeAt = readTime(textIn(output['end_time']))
  const ratio = readRatio(usage, facts)
  return {
    videoUrl,
    needsKey: false,
    resolution: readResolution(usage) ?? facts.resolution,
    ...(ratio !== '' && { ratio }),
    ...(seconds !== undefined && { seconds }),
    // The record has no seed, so the one that was asked for is shown.
    ...(facts.seed !== undefined && { seed: facts.seed }),
    ...(madeAt !== undefined && { madeAt }),
  }
}
