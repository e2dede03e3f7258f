import { isDeepStrictEqual } from 'node:util'
import { isGiven, isObject, type JsonObject } from '../../base/json.ts'
import type { IsOwnLink } from '../../base/untrusted-url.ts'
import type { VideoForm, VideoLimits } from '../../capabilities/limits.ts'
import { checkSpellingOf } from '../check-spelling.ts'
import { missing } from '../issues.ts'
import { objectIn } from '../loose.ts'
import { isNonEmpty, listOf, notOneOf, optionalText, readUrl, unsupported, wrongType } from './video-fields.ts'
import { isRoleName, kindOf, type Placed, roleNames, type RoleName, scene, type Scene } from './video-scene.ts'

/** `data:` URLs are taken for images and most audio, not for videos. */
const inline = { image: ['image'], audio: ['audio'], video: [] } as const

function inlineFor(name: RoleName): readonly ('image' | 'audio')[] {
  // Only Wan takes this one, and of what it is shown it reads nothing but images inline.
  if (name === 'driving_audio') return []
  if (name.endsWith('audio')) return inline.audio
  return name.endsWith('video') || name.endsWith('clip') ? inline.video : inline.image
}

const checkItemSpelling = checkSpellingOf(['type', 'url', 'reference_voice'])

/** `media: [{type, url}]`, the list that Wan 2.7 introduced. */
export function readMediaList(input: JsonObject, allowed: readonly RoleName[], isOwn: IsOwnLink): Placed[] {
  return listOf(input['media'], 'input.media').map((item, index) => {
    const at = `input.media[${index}]`
    if (!isObject(item)) throw wrongType(at, 'an object')
    checkItemSpelling(item, () => `${at}.`)
    const type = optionalText(item, 'type', at)
    if (type === '') throw missing(`${at}.type`)
    if (!isRoleName(type) || !allowed.includes(type)) throw notOneOf(`${at}.type`, type, allowed)
    if (isGiven(item['reference_voice'])) readUrl(item['reference_voice'], `${at}.reference_voice`, isOwn)
    return { role: roleNames[type], url: readUrl(item['url'], `${at}.url`, isOwn, inlineFor(type)), at: `${at}.type` }
  })
}

const names: readonly RoleName[] = [
  'first_frame',
  'last_frame',
  'reference_image',
  'reference_video',
  'reference_audio',
]

/** Fields that each stand for one item of the list. */
const shorthands = [
  ['img_url', 'first_frame'],
  ['image', 'first_frame'],
  ['image_tail', 'last_frame'],
  ['first_frame_image', 'first_frame'],
  ['last_frame_image', 'last_frame'],
] as const

/** The fields of `input` that the gateway reads as the content of a video. */
const sceneFields: readonly string[] = ['prompt', 'media', 'subject_reference', ...shorthands.map(([field]) => field)]

/** What other versions and vendors call such content in their own protocols. */
const otherNames: readonly string[] = [
  'content',
  'audio_url',
  'reference_urls',
  'reference_video_urls',
  'ref_images_url',
  'image_url',
  'first_frame_url',
  'last_frame_url',
  'video_url',
  'image_list',
  'images',
  'subjects',
  'videos',
  'promptImage',
  'videoUri',
  'references',
  'input_reference',
]

/** Every field that can say what a video shows, under any name. Those that a model's form does not read are refused. */
export const shownFields: readonly string[] = [...sceneFields, ...otherNames]

const notRead = "is not read: describe the video in 'input'."

/**
 * Refuses content outside `input`, where it is not read: the video would be made, and charged, without it. At the top
 * level a field may repeat what `input` says.
 */
export function refuseMisplaced(body: JsonObject, input: JsonObject, own: readonly string[]): void {
  const parameters = objectIn(body['parameters'])
  for (const name of shownFields) {
    const isUnread = !own.includes(name) && isNonEmpty(body[name]) && !isDeepStrictEqual(body[name], input[name])
    if (isUnread) throw unsupported(name, notRead)
    if (isNonEmpty(parameters[name])) throw unsupported(`parameters.${name}`, notRead)
  }
}

/** The fields of `input` or `parameters` that are not content; the gateway treats both places alike. */
export function withoutSceneFields(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !shownFields.includes(name)))
}

/** `subject_reference: [{type: "character", image: [url]}]`, as MiniMax has it. */
function readSubjects(input: JsonObject, isOwn: IsOwnLink): Placed[] {
  return listOf(input['subject_reference'], 'input.subject_reference').flatMap((item, index): Placed[] => {
    const at = `input.subject_reference[${index}]`
    if (!isObject(item)) throw wrongType(at, 'an object')
    const type = optionalText(item, 'type', at)
    if (type !== 'character') throw notOneOf(`${at}.type`, type, ['character'])
    return listOf(item['image'], `${at}.image`).map((url, nth) => {
      const place = `${at}.image[${nth}]`
      return { role: 'reference-image', url: readUrl(url, place, isOwn, inline.image), at: place }
    })
  })
}

/** Families that make a video from references alone, without a prompt. */
const wordlessForms: ReadonlySet<VideoForm> = new Set(['wan3.0', 'seedance'])

/** For families whose request shapes the specification does not show: a prompt, and a list of media as in Wan 2.7. */
export function readMediaScene(
  input: JsonObject,
  limits: VideoLimits,
  isOwn: IsOwnLink,
  /** The family's own rules; throws. */
  check: (placed: readonly Placed[]) => void = () => {},
): Scene {
  const unread = otherNames.find((name) => isNonEmpty(input[name]))
  if (unread !== undefined) {
    throw unsupported(
      `input.${unread}`,
      "is not supported by this model, which takes 'input.prompt' and 'input.media'.",
    )
  }
  const short = shorthands.flatMap(([field, name]): Placed[] => {
    const at = `input.${field}`
    return isGiven(input[field])
      ? [{ role: roleNames[name], url: readUrl(input[field], at, isOwn, inline.image), at }]
      : []
  })
  const placed = [...readMediaList(input, names, isOwn), ...short, ...readSubjects(input, isOwn)]
  check(placed)
  const prompt = optionalText(input, 'prompt', 'input')
  optionalText(input, 'negative_prompt', 'input')
  const kind = kindOf(placed, limits, 'input.media')
  const isShown = kind === 'i2v' || (kind === 'r2v' && wordlessForms.has(limits.form))
  if (prompt.trim() === '' && !isShown) throw missing('input.prompt')
  return scene(kind, prompt, placed)
}
