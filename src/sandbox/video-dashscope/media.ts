import { type Fields, fieldsIn, isGiven, itemsIn, ownIn, textIn } from '../fields.ts'
import type { Family } from './families.ts'
import { mismatch, required } from './rules.ts'

/** The media that a request brings to start from. */
export type Media = {
  /** An image that the video begins with, and whose shape it takes. */
  readonly hasFirstFrame: boolean
  /** A reference video, whose seconds are billed too. */
  readonly hasVideo: boolean
}

const referencesMax = 5

/** Each version has its own fields for the same media. */
export function readMedia(input: Fields, family: Family, mayReadStore: boolean): Media {
  const { version, kind } = family
  for (const name of ['prompt', 'negative_prompt']) {
    if (isGiven(input[name]) && typeof input[name] !== 'string')
      throw mismatch(`Input should be a valid string: input.${name}`)
  }
  const inline = version === '3.0' ? /^data:(image|audio)\/[\w.+-]+;base64,/i : /^data:image\/[\w.+-]+;base64,/i
  const checkUrl = (value: unknown, path: string): string => readUrl(value, path, { inline, mayReadStore })
  if (kind === 'any') return readAny(input, checkUrl)
  if (kind !== 'i2v' && textIn(input.prompt) === '') throw required('input.prompt')
  if (version === '2.7' && kind !== 't2v')
    return kind === 'i2v' ? readFrames(input, checkUrl) : readReferences(input, checkUrl)
  if (isGiven(input.audio_url)) checkUrl(input.audio_url, 'input.audio_url')
  if (kind === 't2v') return { hasFirstFrame: false, hasVideo: false }
  if (kind === 'i2v') {
    if (!isGiven(input.img_url)) throw required('input.img_url')
    checkUrl(input.img_url, 'input.img_url')
    return { hasFirstFrame: true, hasVideo: false }
  }
  const given = input.reference_urls ?? input.reference_video_urls
  if (!isGiven(given)) throw required('input.reference_urls')
  const urls = itemsIn(given).map((url, index) => checkUrl(url, `input.reference_urls.${index}`))
  checkCount(urls.length, 'input.reference_urls')
  return { hasFirstFrame: false, hasVideo: urls.some((url) => isVideoUrl(url)) }
}

type CheckUrl = (value: unknown, path: string) => string

/** The combinations that 2.7 accepts for image-to-video. No type may occur twice. */
const frameSets: ReadonlySet<string> = new Set([
  'first_frame',
  'first_frame last_frame',
  'driving_audio first_frame',
  'driving_audio first_frame last_frame',
  'first_clip',
  'first_clip last_frame',
])

function readFrames(input: Fields, checkUrl: CheckUrl): Media {
  const types = readTypes(input, checkUrl)
  if (!frameSets.has(types.toSorted().join(' '))) {
    throw mismatch(`The combination of media types [${types.join(', ')}] is not supported: input.media`)
  }
  return { hasFirstFrame: true, hasVideo: false }
}

function readReferences(input: Fields, checkUrl: CheckUrl): Media {
  const types = readTypes(input, checkUrl)
  const foreign = types.find((type) => !['reference_image', 'reference_video', 'first_frame'].includes(type))
  if (foreign !== undefined) throw mismatch(`The media type ${foreign} is not supported: input.media`)
  const firstFrames = types.filter((type) => type === 'first_frame').length
  if (firstFrames > 1) throw mismatch('At most 1 first_frame is allowed: input.media')
  checkCount(types.length - firstFrames, 'input.media')
  itemsIn(input.media).forEach((item, index) => {
    const { reference_voice: voice } = fieldsIn(item)
    if (isGiven(voice)) checkUrl(voice, `input.media.${index}.reference_voice`)
  })
  return { hasFirstFrame: firstFrames > 0, hasVideo: types.includes('reference_video') }
}

const mostOfAny: Readonly<Record<string, number>> = {
  first_frame: 1,
  last_frame: 1,
  reference_image: 10,
  reference_video: 5,
  reference_audio: 5,
}

/** 3.0 takes a prompt, media, or both. */
function readAny(input: Fields, checkUrl: CheckUrl): Media {
  const types = isGiven(input.media) ? readTypes(input, checkUrl) : []
  if (types.length === 0 && textIn(input.prompt) === '') throw required('input.prompt')
  for (const type of types) {
    const most = ownIn(mostOfAny, type)
    if (most === undefined) throw mismatch(`The media type ${type} is not supported: input.media`)
    if (types.filter((one) => one === type).length > most)
      throw mismatch(`At most ${most} ${type} is allowed: input.media`)
  }
  const has = (kind: string): boolean => types.some((type) => type.endsWith(kind))
  if (has('_frame') && types.some((type) => type.startsWith('reference_'))) {
    throw mismatch(`The combination of media types [${types.join(', ')}] is not supported: input.media`)
  }
  return { hasFirstFrame: has('_frame'), hasVideo: has('_video') }
}

function readTypes(input: Fields, checkUrl: CheckUrl): string[] {
  if (!isGiven(input.media)) throw required('input.media')
  return itemsIn(input.media).map((item, index) => {
    const { type, url } = fieldsIn(item)
    if (!isGiven(type)) throw required(`input.media.${index}.type`)
    if (!isGiven(url)) throw required(`input.media.${index}.url`)
    checkUrl(url, `input.media.${index}.url`)
    return textIn(type)
  })
}

function checkCount(count: number, path: string): void {
  if (count < 1) throw mismatch(`List should have at least 1 item: ${path}`)
  if (count > referencesMax) throw mismatch(`List should have at most ${referencesMax} items: ${path}`)
}

type Accepted = { readonly inline: RegExp; readonly mayReadStore: boolean }

/** Up to 2.7 only images are accepted inline; the vendor's own store needs a header. Nothing is fetched. */
function readUrl(value: unknown, path: string, { inline, mayReadStore }: Accepted): string {
  const url = textIn(value)
  const isKnown = /^https?:\/\/[^/]/i.test(url) || inline.test(url)
  if (isKnown || (mayReadStore && url.startsWith('oss://'))) return url
  throw mismatch(`url error, please check url: ${path}`)
}

function isVideoUrl(url: string): boolean {
  return /\.(mp4|mov)([?#]|$)/i.test(url)
}
