import { isGiven, isObject, type JsonObject } from '../../base/json.ts'
import type { VideoAsk, VideoRole } from '../../capabilities/video.ts'
import { itemsIn, objectIn, objectsIn, textIn } from '../../wire/loose.ts'
import { frameIn, urlOf } from '../video-frames.ts'
import type { CreateContext, VideoAdapter } from '../vendor.ts'
import { parseSuccessBody, idIn, lost, newsOf, parseBodyObject, type StateWords } from '../video-news.ts'
import { negativePromptOf, gatewayParameters, refuseAllBut } from '../video-foreign.ts'
import { callTo } from './call.ts'
import { statusOf } from './explain.ts'

/** An operation has no word for its state: these are our own words for what its fields say together. */
const words: StateWords = { waiting: 'running', made: 'succeeded', filtered: 'failed', failed: 'failed' }

const operation = /^models\/[\w.-]{1,128}\/operations\/[\w-]{1,128}$/

/** Veo: a task is an operation, whose record says nothing about what was asked and whose file needs our credential. */
export const video: VideoAdapter = {
  fetches: ({ media }) => media.flatMap(({ url }) => (url.startsWith('data:') ? [] : [url])),

  create(ask, context) {
    refuseAllBut(ask, taken)
    const body = { instances: [writeInstance(ask, context)], parameters: writeParameters(ask) }
    return callTo('predictLongRunning', body, context)
  },

  readCreated(response) {
    const { name, error } = parseBodyObject(response)
    return name === undefined && isObject(error) ? { errorStatus: statusOf(error) } : idIn(name, operation)
  },

  poll(id, { baseUrl, credential }) {
    return { method: 'GET', url: `${baseUrl}/v1beta/${id}`, headers: { 'x-goog-api-key': credential } }
  },

  readTask(response, facts) {
    if (response.status === 404) return lost
    const record = parseSuccessBody(response)
    const { seconds, resolution, ratio, sound, seed } = facts
    const made = { needsKey: true, seconds, resolution, ratio, ...(seed !== undefined && { seed }) }
    const { word, error, videoUrl } = readOperation(record)
    return newsOf(words, {
      word,
      record,
      ...(error !== undefined && { error }),
      ...(videoUrl !== '' && { result: { videoUrl, ...made } }),
      // Veo is billed by what was asked for.
      used: { video: { seconds, resolution, sound } },
    })
  },
}

type Operation = {
  readonly word: keyof typeof words
  readonly videoUrl: string
  readonly error?: { readonly code: string; readonly message: string }
}

/** A false field may be left out, so an operation that is not done may hold nothing but its name. */
function readOperation({ done, error, response }: JsonObject): Operation {
  if (done !== true) return { word: 'waiting', videoUrl: '' }
  if (isGiven(error)) {
    const { code, message } = objectIn(error)
    const shown = typeof code === 'number' ? (codes[code] ?? String(code)) : textIn(code)
    return { word: 'failed', videoUrl: '', error: { code: shown || 'upstream_failed', message: textIn(message) } }
  }
  const made = objectIn(objectIn(response)['generateVideoResponse'])
  const [sample] = objectsIn(made['generatedSamples'])
  const videoUrl = textIn(objectIn(sample?.['video'])['uri'])
  if (videoUrl !== '') return { word: 'made', videoUrl }
  // An operation that is done without a video was held back by Google's filters, and is not charged.
  const reasons = itemsIn(made['raiMediaFilteredReasons']).map(textIn).filter(Boolean).join(' ')
  const message = reasons || 'The vendor gave no video.'
  return {
    word: 'filtered',
    videoUrl: '',
    error: { code: reasons === '' ? 'upstream_no_output' : 'content_filtered', message },
  }
}

/** The numbers of gRPC, with the names that Google's errors have elsewhere. */
const codes: Readonly<Record<number, string>> = {
  1: 'CANCELLED',
  3: 'INVALID_ARGUMENT',
  4: 'DEADLINE_EXCEEDED',
  5: 'NOT_FOUND',
  7: 'PERMISSION_DENIED',
  8: 'RESOURCE_EXHAUSTED',
  9: 'FAILED_PRECONDITION',
  13: 'INTERNAL',
  14: 'UNAVAILABLE',
}

function writeInstance(ask: VideoAsk, context: CreateContext): JsonObject {
  const image = imageOf(ask, 'first-frame', context)
  const lastFrame = imageOf(ask, 'last-frame', context)
  const references = ask.media
    .filter(({ role }) => role === 'reference-image')
    .map(({ url }) => ({ image: writeImage(url, context), referenceType: 'asset' }))
  return {
    ...(ask.prompt !== '' && { prompt: ask.prompt }),
    ...(image !== undefined && { image }),
    ...(lastFrame !== undefined && { lastFrame }),
    ...(references.length > 0 && { referenceImages: references }),
  }
}

function imageOf({ media }: VideoAsk, role: VideoRole, context: CreateContext): JsonObject | undefined {
  const url = urlOf(media, role)
  return url === undefined ? undefined : writeImage(url, context)
}

/** An image as bytes, because the vendor follows no links. */
function writeImage(url: string, { fetched }: CreateContext): JsonObject {
  const { bytes, mediaType } = frameIn(url, fetched)
  return { bytesBase64Encoded: Buffer.from(bytes).toString('base64'), mimeType: mediaType }
}

/** Veo's own fields that clients may set; it refuses any that it does not know. */
const passedFields = ['seed', 'personGeneration', 'enhancePrompt', 'negativePrompt'] as const
const taken: ReadonlySet<string> = new Set([...passedFields, ...gatewayParameters, 'audio', 'sound', 'negative_prompt'])

function writeParameters(ask: VideoAsk): JsonObject {
  const { parameters, ratio, resolution, seconds, limits } = ask
  const passed = passedFields.flatMap((name) =>
    parameters[name] === undefined ? [] : [[name, parameters[name]] as const],
  )
  const negative = negativePromptOf(ask)
  return {
    ...(negative !== '' && { negativePrompt: negative }),
    ...Object.fromEntries(passed),
    aspectRatio: ratio,
    // Models with a single resolution have no field for it.
    ...(limits.resolutions.length > 1 && { resolution }),
    durationSeconds: seconds,
    sampleCount: 1,
  }
}
