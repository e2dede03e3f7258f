import { badRequest } from '../../base/errors.ts'
import { isGiven, type JsonObject } from '../../base/json.ts'
import { GuardRefusal, readTarget, type GuardPolicy, type IsOwnLink } from '../../base/untrusted-url.ts'
import type { ReceivedRequest, Bound } from '../../capabilities/ask.ts'
import type { ModelTraits, VideoLimits } from '../../capabilities/limits.ts'
import type { VideoRequest } from '../../capabilities/video.ts'
import { checkSpellingOf } from '../check-spelling.ts'
import { parseBy } from '../check.ts'
import { invalid, missing } from '../issues.ts'
import { objectIn } from '../loose.ts'
import { requireModel } from '../require-model.ts'
import { seedanceTokensMax } from './seedance-sizes.ts'
import { parameterAt, placesIn, unsupported } from './video-fields.ts'
import { withoutSceneFields, readMediaScene, refuseMisplaced, shownFields } from './video-media.ts'
import { fieldsOf, parameterNames, readParameters, readAudio } from './video-parameters.ts'
import { countOf, type Scene } from './video-scene.ts'
import { checkRunwayShape, readRunwayScene } from './video-runway.ts'
import { videoRequest } from './video-schema.ts'
import { readSeedanceScene } from './video-seedance.ts'
import { readSizing, sizingFields, type Sizing } from './video-sizing.ts'
import { readSoraScene } from './video-sora.ts'
import { checkWanLength, isWanVersion, readWanScene } from './video-wan.ts'
import { webhookRefusal } from './webhook-refusal.ts'

/** Any https address: whether it may be reached is checked when an event is sent. */
const httpsOnly: GuardPolicy = { schemes: 'https', addresses: 'private', ports: 'any' }

/**
 * `POST /v1/videos/generations`. The values that billing follows are read from every place where the request may give
 * them and are checked; the rest of `input` and `parameters` is for the model's vendor.
 */
function readAsk(
  received: ReceivedRequest,
  lookUp: (model: string) => ModelTraits,
  webhooks: GuardPolicy = httpsOnly,
  isOwn: IsOwnLink = () => false,
): VideoRequest {
  const { body } = received
  const model = requireModel(body)
  const traits = lookUp(model)
  const { video: limits } = traits
  if (limits === undefined) throw new Error(`${model} has no limits for video`)
  parseBy(videoRequest, body)
  checkSpelling(body)
  checkSpelling(objectIn(body['input']), () => 'input.')
  checkSpelling(objectIn(body['parameters']), () => 'parameters.')
  const scene = readScene(body, limits, isOwn)
  const written = withoutSceneFields(objectIn(body['parameters']))
  const input = objectIn(body['input'])
  // Wan up to 2.7 is sent the whole `input`. Other vendors are sent parameters only, so the remaining fields of `input`
  // are read as parameters.
  const beside = isWanVersion(limits.form) ? {} : withoutSceneFields(input)
  const places = placesIn([
    { fields: body, at: (name) => name },
    { fields: written, at: (name) => `parameters.${name}` },
    { fields: beside, at: (name) => `input.${name}` },
    { fields: scene.flags, at: (name) => scene.flagAt(name) },
  ])
  const parameters = readParameters({ ...beside, ...written }, places, limits)
  const given = { parameters, parametersAt: fieldsOf(parameters, places) }
  const isDraft = checkDraft(given, scene, limits)
  const isFinal = scene.draftOf !== undefined
  const asked = readSizing({ places, kind: scene.kind, isDraft }, limits)
  if (!isFinal) checkTogether(asked, scene, limits)
  const sizing = isFinal ? sizingOfFinal(asked, limits) : asked
  checkSold(sizing, traits)
  const sound = isFinal ? limits.sound !== 'never' : readAudio(given, limits)
  const inputVideos = countOf(scene.media, 'reference-video') + countOf(scene.media, 'first-clip')
  const hasInputVideo = inputVideos > 0
  const video = { ...sizing, sound, hasInputVideo }
  const { kind, prompt, media, draftOf, draftAt } = scene
  const { seed } = parameters
  return {
    capability: 'video',
    model,
    stream: false,
    bound: boundOf(video, inputVideos, limits),
    kind,
    ...video,
    prompt,
    media,
    ...(draftOf !== undefined && draftAt !== undefined && { draftOf, draftAt }),
    // With a negative seed the model chooses one.
    ...(typeof seed === 'number' && seed >= 0 && { seed }),
    input,
    ...given,
    limits,
    ...readDeliveryOptions(received, webhooks),
  }
}

const checkSpelling = checkSpellingOf([
  ...Object.keys(videoRequest.shape),
  ...parameterNames,
  ...sizingFields,
  ...shownFields,
])

export const videoCodec = { readAsk }

function readScene(body: JsonObject, limits: VideoLimits, isOwn: IsOwnLink): Scene {
  const { form } = limits
  const isBeside = form === 'seedance' && isGiven(body['content'])
  if (!isGiven(body['input']) && !isBeside) throw missing('input')
  const input = objectIn(body['input'])
  refuseMisplaced(body, input, form === 'seedance' ? ['content'] : [])
  if (form === 'seedance') return readSeedanceScene(body, input, limits, isOwn)
  if (form === 'runway') return readRunwayScene(input, limits, isOwn)
  if (form === 'sora') return readSoraScene(input, limits, isOwn)
  return isWanVersion(form) ? readWanScene(input, limits, form, isOwn) : readMediaScene(input, limits, isOwn)
}

function checkDraft(
  given: Pick<VideoRequest, 'parameters' | 'parametersAt'>,
  { draftOf }: Scene,
  { drafts }: VideoLimits,
): boolean {
  const { draft, return_last_frame: returnsLast } = given.parameters
  if (draft !== true) return false
  const at = parameterAt(given, 'draft')
  if (!drafts) throw unsupported(at, 'is not supported: this model makes no drafts.')
  if (draftOf !== undefined) throw badRequest('The final of a draft is no draft.', at)
  if (returnsLast === true) throw unsupported(parameterAt(given, 'return_last_frame'), 'is not supported for a draft.')
  return true
}

const veoSeconds = 8

/** Rules in which the length or the ratio depends on other fields. */
function checkTogether({ seconds, resolution, ratio }: Sizing, scene: Scene, limits: VideoLimits): void {
  checkWanLength(limits, scene, seconds)
  checkRunwayShape(limits, scene, ratio)
  if (limits.form === 'veo' && seconds !== veoSeconds && (resolution !== '720p' || scene.kind === 'r2v')) {
    const why = scene.kind === 'r2v' ? 'reference images' : resolution
    throw unsupported('duration', `has to be ${veoSeconds} with ${why} on this model.`)
  }
}

/** The final version of a draft has the draft's length and ratio. Neither is known here, so the longest counts. */
function sizingOfFinal(asked: Sizing, { durations }: VideoLimits): Sizing {
  return { ...asked, seconds: Math.max(...durations), isFreeLength: true, ratio: 'adaptive' }
}

/** Some vendors price whole videos, and do not sell every length in every resolution. */
function checkSold({ seconds, resolution }: Sizing, traits: ModelTraits): void {
  if (traits.sellsVideo(resolution, seconds)) return
  const lengths = (traits.video?.durations ?? []).filter((length) => traits.sellsVideo(resolution, length))
  throw unsupported('duration', `is ${lengths.join(' or ')} at ${resolution} on this model.`)
}

/** The longest reference video that any vendor takes. */
const inputVideoSecondsMax = 30

type PricedVideo = Sizing & { readonly sound: boolean; readonly hasInputVideo: boolean }

/** The most it can cost: the longest length where the model chooses, plus input videos where they are charged. */
function boundOf(
  { seconds, resolution, ratio, sound, hasInputVideo }: PricedVideo,
  inputVideos: number,
  limits: VideoLimits,
): Bound {
  const { inputSecondsBilled, inputSecondsMax = inputVideos * inputVideoSecondsMax } = limits
  const inputSeconds = hasInputVideo && inputSecondsBilled ? inputSecondsMax : 0
  const video = { seconds: seconds + inputSeconds, resolution, sound, ...(hasInputVideo && { hasInputVideo }) }
  const credits = limits.creditsPerSecond?.[resolution]
  if (credits !== undefined) return { video: { ...video, inCredits: true }, videoToken: video.seconds * credits }
  if (limits.form !== 'seedance') return { video }
  return { video, videoToken: seedanceTokensMax({ resolution, ratio, seconds, inputSeconds }) }
}

const timeoutSecondsDefault = 60
const timeoutSecondsMax = 300

/** `wait` and `timeout` come from the query string or the body; the query string wins where both give one. */
function readDeliveryOptions(received: ReceivedRequest, webhooks: GuardPolicy) {
  const { body } = received
  const url = body['webhook_url']
  const timeoutSeconds = readTimeout(received.query?.('timeout') ?? body['timeout'] ?? timeoutSecondsDefault)
  const asked = received.query?.('wait') ?? undefined
  const wait = asked === undefined ? body['wait'] === true : readWait(asked)
  return { wait, timeoutSeconds, ...(typeof url === 'string' && { webhookUrl: checkWebhook(url, webhooks) }) }
}

function readWait(text: string): boolean {
  if (text === 'false') return false
  if (text === 'true' || text === '') return true
  throw invalid('wait', 'expected true or false')
}

function readTimeout(given: unknown): number {
  const seconds = typeof given === 'string' && /^\d{1,6}$/.test(given) ? Number(given) : given
  if (typeof seconds === 'number' && Number.isSafeInteger(seconds) && seconds >= 1 && seconds <= timeoutSecondsMax) {
    return seconds
  }
  throw invalid('timeout', `expected 1 to ${timeoutSecondsMax} seconds`)
}

function checkWebhook(url: string, policy: GuardPolicy): string {
  try {
    readTarget(url, policy)
    return url
  } catch (thrown) {
    if (thrown instanceof GuardRefusal) throw webhookRefusal(thrown, policy, 'webhook_url')
    throw thrown
  }
}
