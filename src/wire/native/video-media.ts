import { isObject, type JsonObject } from '../../base/json.ts'
import type { IsOwnLink } from '../../base/untrusted-url.ts'
import type { VideoLimits } from '../../capabilities/limits.ts'
import { isGiven, listOf, missing, notOneOf, optionalText, readUrl, wrongType } from './video-fields.ts'
import { isRoleName, kindOf, type Placed, roleNames, type RoleName, scene, type Scene } from './video-scene.ts'

/** `data:` is for pictures, and for sound that is only listened to. */
const inline = { image: ['image'], audio: ['audio'], video: [] } as const

function inlineFor(name: RoleName): readonly ('image' | 'audio')[] {
  if (name.endsWith('audio')) return inline.audio
  return name.endsWith('video') || name.endsWith('clip') ? inline.video : inline.image
}

/** `media: [{type, url}]`, as of version 2.7. */
export function readMediaList(input: JsonObject, allowed: readonly RoleName[], isOwn: IsOwnLink): Placed[] {
  return listOf(input['media'], 'input.media').map((item, index) => {
    const at = `input.media[${index}]`
    if (!isObject(item)) throw wrongType(at, 'an object')
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

/** Short ways to say what a list of one or two says. */
const shorthands = [
  ['img_url', 'first_frame'],
  ['image', 'first_frame'],
  ['image_tail', 'last_frame'],
  ['first_frame_image', 'first_frame'],
  ['last_frame_image', 'last_frame'],
] as const

/** The fields of `input` that say the same as a list of contents. */
export const sceneFields: readonly string[] = [
  'prompt',
  'media',
  'subject_reference',
  ...shorthands.map(([field]) => field),
]

/** What else a client wrote into `input`: nobody here knows more of it than of a parameter. */
export function besideScene(input: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(input).filter(([name]) => !sceneFields.includes(name)))
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

/** Families whose request shapes the specification does not show: a prompt, and media as of version 2.7. */
export function readMediaScene(
  input: JsonObject,
  limits: VideoLimits,
  isOwn: IsOwnLink,
  /** Rules of a family's own; throws. */
  check: (placed: readonly Placed[]) => void = () => {},
): Scene {
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
  if (prompt.trim() === '' && kind !== 'i2v') throw missing('input.prompt')
  return scene(kind, prompt, placed)
}
