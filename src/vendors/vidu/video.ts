import { without, type JsonObject } from '../../base/json.ts'
import type { Usage } from '../../capabilities/usage.ts'
import type { VideoAsk, VideoFacts, VideoResult } from '../../capabilities/video.ts'
import { countIn, objectsIn, textIn } from '../../wire/loose.ts'
import { jsonCall } from '../json-call.ts'
import type { Call, CallContext, CreateContext, VideoAdapter } from '../vendor.ts'
import { framesOf, urlOf, urlsOf } from '../video-frames.ts'
import { parseSuccessBody, idIn, lost, newsOf, parseBodyObject, unexpected, type StateWords } from '../video-news.ts'
import { reasonIn, statusOf } from './explain.ts'
import { gatewayParameters, rarelyKnown, refuseNegativePrompt, refuseUnknown } from '../video-foreign.ts'

const words: StateWords = {
  created: 'submitted',
  queueing: 'submitted',
  processing: 'running',
  success: 'succeeded',
  failed: 'failed',
}

/** Vidu. A task carries our reference but cannot be found by it, and no way to stop one is known. */
export const video: VideoAdapter = {
  create(ask, context) {
    refuseNegativePrompt(ask)
    refuseUnknown(ask, rarelyKnown)
    return jsonCall(`${context.baseUrl}/ent/v2/${pathOf(ask)}`, writeBody(ask, context), context, authHeaders(context))
  },

  readCreated(response) {
    const json = parseBodyObject(response)
    const { task_id: id } = json
    const word = reasonIn(json)
    return id === undefined && word !== '' ? { errorStatus: statusOf(word) } : idIn(id)
  },

  poll(id, context): Call {
    const url = `${context.baseUrl}/ent/v2/tasks/${encodeURIComponent(id)}/creations`
    return { method: 'GET', url, headers: authHeaders(context) }
  },

  readTask(response, facts) {
    if (response.status === 404) return lost
    const record = parseSuccessBody(response)
    const { state: word, err_code: code } = record
    if (typeof word !== 'string') throw unexpected()
    const [creation] = objectsIn(record['creations'])
    return newsOf(words, {
      word,
      record: writeRecord(record),
      error: { code: textIn(code) || 'upstream_failed', message: `The vendor says: ${textIn(code) || word}.` },
      result: creation === undefined ? undefined : readResult(creation, facts),
      used: readUsage(record, facts),
    })
  },
}

/** Each kind is ordered at a path of its own; all tasks are polled at one. */
function pathOf({ kind, media }: VideoAsk): string {
  if (kind === 't2v') return 'text2video'
  if (kind === 'r2v') return 'reference2video'
  return urlOf(media, 'last-frame') === undefined ? 'img2video' : 'start-end2video'
}

function authHeaders({ credential }: CallContext): { authorization: string } {
  return { authorization: `Token ${credential}` }
}

/** Not passed on as given: parameters of other families, our own, and those that are written below. */
const foreign: ReadonlySet<string> = new Set([...rarelyKnown, ...gatewayParameters, 'sound', 'seed'])

function writeBody(ask: VideoAsk, context: CreateContext): JsonObject {
  const { parameters, prompt, kind, seconds, resolution, ratio, sound, seed, limits } = ask
  // All images go in one list.
  const images = kind === 'r2v' ? urlsOf(ask.media, 'reference-image') : framesOf(ask)
  return {
    ...without(parameters, foreign),
    model: context.upstreamModel,
    ...(prompt !== '' && { prompt }),
    ...(images.length > 0 && { images }),
    duration: seconds,
    resolution,
    // A video from a first frame has the aspect ratio of that frame.
    ...(kind !== 'i2v' && { aspect_ratio: ratio }),
    ...(limits.sound === 'optional' && { audio: sound }),
    ...(seed !== undefined && { seed }),
    payload: context.ref,
    ...(context.callbackUrl !== undefined && { callback_url: context.callbackUrl }),
  }
}

/** Credits as the vendor counts them; its record says nothing about the video itself. */
function readUsage({ credits }: JsonObject, { seconds, resolution, sound }: VideoFacts): Usage | undefined {
  if (typeof credits !== 'number' || !Number.isSafeInteger(credits) || credits < 0) return undefined
  return { videoToken: countIn(credits), video: { seconds, resolution, sound, inCredits: true } }
}

function readResult(
  creation: JsonObject,
  { kind, seconds, resolution, ratio, seed }: VideoFacts,
): VideoResult | undefined {
  const videoUrl = textIn(creation['url'])
  if (videoUrl === '') return undefined
  return {
    videoUrl,
    needsKey: false,
    seconds,
    resolution,
    ...(kind !== 'i2v' && { ratio }),
    // The record has no seed, so the one that was asked for is shown; for zero the vendor chose one itself.
    ...(seed !== undefined && seed > 0 && { seed }),
  }
}

/**
 * A prompt is not kept once the vendor has it, so the vendor's echo of it is not kept either. Links besides the video's
 * own are dropped, because they would stay in our record after they had expired.
 */
function writeRecord(record: JsonObject): JsonObject {
  const { prompt: _prompt, images: _images, payload: _payload, creations, ...rest } = record
  if (creations === undefined) return rest
  const [creation] = objectsIn(creations)
  return {
    ...rest,
    creations: creation === undefined ? [] : [{ id: textIn(creation['id']), url: textIn(creation['url']) }],
  }
}
