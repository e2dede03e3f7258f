import { isGiven, without, type Json, type JsonObject } from '../../base/json.ts'
import type { VideoAsk } from '../../capabilities/video.ts'
import { fieldsIn } from '../../wire/answer-body.ts'
import { objectIn, textIn } from '../../wire/loose.ts'
import { agreed, parameterAt } from '../../wire/native/video-fields.ts'
import { bearer, jsonCall } from '../json-call.ts'
import type { ResponseWithStatus, Call, CallContext, VideoAdapter } from '../vendor.ts'
import { urlOf, urlsOf } from '../video-frames.ts'
import { parseSuccessBody, idIn, newsOf, parseBodyObject, type StateWords, unexpected } from '../video-news.ts'
import { baseIn, numbers, statusOf } from './explain.ts'
import { gatewayParameters, refuseNegativePrompt, refuseSeed, refuseUnknown, seedanceOnly } from '../video-foreign.ts'

const words: StateWords = {
  Preparing: 'submitted',
  Queueing: 'submitted',
  Processing: 'running',
  Success: 'succeeded',
  Fail: 'failed',
}

/**
 * Hailuo, in version 1 of its protocol: errors come with 2xx statuses, and a finished video is a file whose URL has to
 * be asked for. The vendor has no list and takes no reference, so a task in doubt stays in doubt, and it cannot stop a
 * task. It calls back only a server that has answered a challenge, whose form we have not seen, so tasks are polled.
 */
export const video: VideoAdapter = {
  create(ask, context) {
    return jsonCall(`${context.baseUrl}/video_generation`, writeBody(ask, context), context, bearer(context))
  },

  readCreated(response) {
    const json = parseBodyObject(response)
    const errorStatus = statusOf(json)
    const { task_id: id } = json
    // An error may come with an empty id.
    return errorStatus !== undefined && textIn(id) === '' ? { errorStatus } : idIn(id)
  },

  statusOf(response) {
    const json = fieldsIn(response.body)
    // A failed task has its reason where a refused poll has its error, but also has a word for its state.
    const isRefused = response.status === 200 && textIn(json['status']) === ''
    return (isRefused ? statusOf(json) : undefined) ?? response.status
  },

  poll: (id, context) => read('query/video_generation', 'task_id', id, context),

  readTask(response, { seconds, resolution, sound }) {
    if (isUnknown(response)) return { state: 'lost', word: String(response.status), record: {} }
    const record = parseSuccessBody(response)
    const word = textIn(record['status'])
    if (word === '') throw unexpected()
    const { code, message } = baseIn(record)
    const isFiltered = code === numbers.input || code === numbers.output
    return newsOf(words, {
      word,
      record,
      error: {
        code: isFiltered ? 'content_filtered' : 'upstream_failed',
        message: code === 0 ? '' : message,
      },
      // Hailuo is billed by what was asked for.
      used: { video: { seconds, resolution, sound } },
    })
  },

  locate: {
    call({ file_id: file }, context) {
      const id = typeof file === 'number' && Number.isSafeInteger(file) ? String(file) : textIn(file)
      return id === '' ? undefined : read('files/retrieve', 'file_id', id, context)
    },
    read(response, { kind, seconds, resolution, ratio }) {
      const json = parseSuccessBody(response)
      if (baseIn(json).code !== 0) throw unexpected()
      const videoUrl = textIn(objectIn(json['file'])['download_url'])
      if (videoUrl === '') return undefined
      // A video from an image has the aspect ratio of the image.
      return { videoUrl, needsKey: false, seconds, resolution, ...(kind === 't2v' && { ratio }) }
    },
  },
}

function read(path: string, name: string, id: string, context: CallContext): Call {
  const url = `${context.baseUrl}/${path}?${name}=${encodeURIComponent(id)}`
  return { method: 'GET', url, headers: bearer(context) }
}

/** A poll has one parameter, the task's id: where the vendor calls a parameter wrong, there is no such task. */
function isUnknown(response: ResponseWithStatus): boolean {
  if (response.status === 404) return true
  const json = fieldsIn(response.body)
  return response.status <= 400 && textIn(json['status']) === '' && baseIn(json).code === numbers.parameter
}

const unknown = [...seedanceOnly, 'mode', 'shot_type', 'watermark']

/** Not passed on as given: parameters of other families, our own, and those that are written below. */
const foreign: ReadonlySet<string> = new Set([
  ...unknown,
  ...gatewayParameters,
  'model',
  'negative_prompt',
  'prompt_extend',
  'prompt_optimizer',
  'sound',
  'audio',
  'seed',
])

function writeBody(ask: VideoAsk, context: CallContext): JsonObject {
  const { parameters, prompt, media, seconds, resolution } = ask
  refuseMissing(ask)
  const [first, last] = [urlOf(media, 'first-frame'), urlOf(media, 'last-frame')]
  const optimizer = optimizerOf(ask)
  const subjects = urlsOf(media, 'reference-image')
  return {
    ...without(parameters, foreign),
    model: context.upstreamModel,
    ...(prompt !== '' && { prompt }),
    ...(optimizer !== undefined && { prompt_optimizer: optimizer }),
    ...(first !== undefined && { first_frame_image: first }),
    ...(last !== undefined && { last_frame_image: last }),
    ...(subjects.length > 0 && { subject_reference: [{ type: 'character', image: subjects }] }),
    duration: seconds,
    resolution: resolution.toUpperCase(),
  }
}

/** Hailuo has no field for these. If they were dropped silently, they would be paid for and have no effect. */
function refuseMissing(ask: VideoAsk): void {
  refuseNegativePrompt(ask)
  refuseUnknown(ask, unknown)
  refuseSeed(ask)
}

/** Whether the vendor may rewrite the prompt, under its own name for that or the specification's. */
function optimizerOf(ask: VideoAsk): Json | undefined {
  const names = ['prompt_optimizer', 'prompt_extend'] as const
  return agreed(
    names.flatMap((name) => {
      const value = ask.parameters[name]
      return isGiven(value) ? [{ value, at: parameterAt(ask, name) }] : []
    }),
  )?.value
}
