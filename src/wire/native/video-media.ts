import { isObject, type JsonObject } from '../../base/json.ts'
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
export function readMediaList(input: JsonObject, allowed: readonly RoleName[]): Placed[] {
  return listOf(input['media'], 'input.media').map((item, index) => {
    const at = `input.media[${index}]`
    if (!isObject(item)) throw wrongType(at, 'an object')
    const type = optionalText(item, 'type', at)
    if (type === '') throw missing(`${at}.type`)
    if (!isRoleName(type) || !allowed.includes(type)) throw notOneOf(`${at}.type`, type, allowed)
    if (isGiven(item['reference_voice'])) readUrl(item['reference_voice'], `${at}.reference_voice`)
    return { role: roleNames[type], url: readUrl(item['url'], `${at}.url`, inlineFor(type)), at: `${at}.type` }
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
] as const

/** The fields of `input` that say the same as a list of contents. */
export const sceneFields: readonly string[] = ['prompt', 'media', ...shorthands.map(([field]) => field)]

/** Families whose request shapes the specification does not show: a prompt, and media as of version 2.7. */
export function readMediaScene(input: JsonObject, limits: VideoLimits): Scene {
  const short = shorthands.flatMap(([field, name]): Placed[] => {
    const at = `input.${field}`
    return isGiven(input[field]) ? [{ role: roleNames[name], url: readUrl(input[field], at, inline.image), at }] : []
  })
  const placed = [...readMediaList(input, names), ...short]
  const prompt = optionalText(input, 'prompt', 'input')
  optionalText(input, 'negative_prompt', 'input')
  const kind = kindOf(placed, limits, 'input.media')
  if (prompt.trim() === '' && kind !== 'i2v') throw missing('input.prompt')
  return scene(kind, prompt, placed)
}
