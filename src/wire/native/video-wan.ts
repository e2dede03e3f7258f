import { badRequest } from '../../base/errors.ts'
import { isGiven, type JsonObject } from '../../base/json.ts'
import type { IsOwnLink } from '../../base/untrusted-url.ts'
import type { VideoForm, VideoKind, VideoLimits } from '../../capabilities/limits.ts'
import { missing } from '../issues.ts'
import { isNonEmpty, listOf, optionalText, readUrl, requiredText, unsupported } from './video-fields.ts'
import { readMediaList, shownFields } from './video-media.ts'
import { countOf, type Placed, type RoleName, scene, type Scene, tooMany } from './video-scene.ts'

type Version = Extract<VideoForm, 'wan2.5' | 'wan2.6' | 'wan2.7'>

/** The specification's `input` fields by model version; audio for text-to-video is the vendor's own addition. */
const taken = {
  'wan2.5': { t2v: ['audio_url'], i2v: ['img_url', 'audio_url'], r2v: [] },
  'wan2.6': { t2v: ['audio_url'], i2v: ['img_url', 'audio_url'], r2v: ['reference_urls', 'reference_video_urls'] },
  'wan2.7': { t2v: ['audio_url'], i2v: ['media'], r2v: ['media'] },
} as const satisfies Record<Version, Record<VideoKind, readonly string[]>>

/** Whether the client writes `input` in the vendor's own form. */
export function isWanVersion(form: VideoForm): form is Version {
  return form in taken
}

/** Wan up to 2.7: the model's suffix decides which fields it takes, its version in which protocol. */
export function readWanScene(input: JsonObject, limits: VideoLimits, version: Version, isOwn: IsOwnLink): Scene {
  const [kind = 't2v'] = limits.kinds
  refuseForeign(input, taken[version][kind], kind)
  // An image alone says enough; a reference does not, and text-to-video has nothing else.
  const prompt = kind === 'i2v' ? optionalText(input, 'prompt', 'input') : requiredText(input, 'prompt', 'input')
  optionalText(input, 'negative_prompt', 'input')
  return scene(kind, prompt, readPlaced({ input, limits, isOwn }, version, kind))
}

type Given = { readonly input: JsonObject; readonly limits: VideoLimits; readonly isOwn: IsOwnLink }

function readPlaced(given: Given, version: Version, kind: VideoKind): Placed[] {
  const isLater = version === 'wan2.7'
  switch (kind) {
    case 't2v':
      return readAudio(given)
    case 'i2v': {
      if (isLater) return readFrames(given)
      const url = readUrl(given.input['img_url'], 'input.img_url', given.isOwn, ['image'])
      return [{ role: 'first-frame', url, at: 'input.img_url' }, ...readAudio(given)]
    }
    case 'r2v':
      return isLater ? readReferences(given) : readReferenceUrls(given)
  }
}

/** A version ignores the fields of other versions and would make a different video than the client asked for. */
function refuseForeign(input: JsonObject, own: readonly string[], kind: VideoKind): void {
  const read = new Set(['prompt', ...own])
  const foreign = shownFields.find((field) => !read.has(field) && isNonEmpty(input[field]))
  if (foreign === undefined) return
  const wanted = kind === 't2v' ? "a prompt only ('input.prompt')" : `'input.${own[0]}'`
  throw unsupported(`input.${foreign}`, `is not supported by this model, which takes ${wanted}.`)
}

function readAudio({ input, isOwn }: Given): Placed[] {
  if (!isGiven(input['audio_url'])) return []
  return [{ role: 'driving-audio', url: readUrl(input['audio_url'], 'input.audio_url', isOwn), at: 'input.audio_url' }]
}

const frameTypes: readonly RoleName[] = ['first_frame', 'last_frame', 'driving_audio', 'first_clip']

/** The combinations that 2.7 takes for image-to-video: each type once, and audio only with a first frame. */
const frameSets: ReadonlySet<string> = new Set([
  'first-frame',
  'first-frame last-frame',
  'driving-audio first-frame',
  'driving-audio first-frame last-frame',
  'first-clip',
  'first-clip last-frame',
])

function readFrames({ input, isOwn }: Given): Placed[] {
  const placed = readMediaList(input, frameTypes, isOwn)
  if (placed.length === 0) throw missing('input.media')
  const set = placed.map(({ role }) => role).toSorted()
  if (frameSets.has(set.join(' '))) return placed
  const choices = 'a first_frame, with a last_frame or driving_audio if you like, or a first_clip with a last_frame'
  throw badRequest(`This model takes ${choices}.`, 'input.media')
}

const referenceTypes: readonly RoleName[] = ['reference_image', 'reference_video', 'first_frame']

function readReferences({ input, limits, isOwn }: Given): Placed[] {
  const placed = readMediaList(input, referenceTypes, isOwn)
  const [, secondFrame] = placed.filter(({ role }) => role === 'first-frame')
  if (secondFrame !== undefined) throw tooMany('first-frame', 1, secondFrame.at)
  const references = placed.filter(({ role }) => role !== 'first-frame')
  if (references.length === 0 && placed.length > 0) {
    const message = 'This model needs a reference_image or reference_video beside a first_frame.'
    throw badRequest(message, 'input.media', 'missing_required_parameter')
  }
  checkReferenceCount(references, limits, 'input.media')
  return placed
}

/** Images and videos count together. */
function checkReferenceCount(references: readonly Placed[], { referencesMax }: VideoLimits, at: string): void {
  if (references.length === 0) throw missing(at)
  if (references[referencesMax] === undefined) return
  throw badRequest(`This model takes at most ${referencesMax} references.`, at, 'unsupported_value')
}

const inlineImage = /^data:image\//i

function readReferenceUrls({ input, limits, isOwn }: Given): Placed[] {
  const [field, older] = ['reference_urls', 'reference_video_urls'] as const
  if (isNonEmpty(input[field]) && isNonEmpty(input[older])) {
    throw badRequest(`'input.${field}' and 'input.${older}' cannot both be given.`, `input.${older}`)
  }
  const name = isNonEmpty(input[older]) ? older : field
  const placed = listOf(input[name], `input.${name}`).map((value, index): Placed => {
    const at = `input.${name}[${index}]`
    const url = readUrl(value, at, isOwn, ['image'])
    // A URL does not show what it leads to, whatever its extension. It counts as a video, whose seconds are charged;
    // what the vendor does not charge is released at settlement.
    return { role: name === field && inlineImage.test(url) ? 'reference-image' : 'reference-video', url, at }
  })
  checkReferenceCount(placed, limits, `input.${name}`)
  return placed
}

const secondsWithVideoMax = 10

/** Wan 2.7 makes at most 10 seconds with a reference video, and longer videos from images. */
export function checkWanLength({ form }: VideoLimits, { media }: Scene, seconds: number): void {
  if (form !== 'wan2.7' || countOf(media, 'reference-video') === 0 || seconds <= secondsWithVideoMax) return
  throw unsupported('duration', `is at most ${secondsWithVideoMax} with a reference_video on this model.`)
}
