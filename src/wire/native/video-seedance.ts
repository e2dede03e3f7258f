import { badRequest } from '../../base/errors.ts'
import { isGiven, isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { IsOwnLink } from '../../base/untrusted-url.ts'
import type { VideoLimits } from '../../capabilities/limits.ts'
import { missing } from '../issues.ts'
import {
  checkLength,
  isNonEmpty,
  listOf,
  notOneOf,
  optionalText,
  readUrl,
  unsupported,
  wrongType,
} from './video-fields.ts'
import { readMediaScene, shownFields } from './video-media.ts'
import { isRoleName, kindOf, roleNames, scene, type Placed, type RoleName, type Scene } from './video-scene.ts'

/** The roles that each content type can have; the first is the default where an item names none. */
const roles = {
  image_url: ['first_frame', 'last_frame', 'reference_image'],
  video_url: ['reference_video'],
  audio_url: ['reference_audio'],
} as const satisfies Record<string, readonly RoleName[]>

type MediaType = keyof typeof roles

const inline = { image_url: ['image'], video_url: [], audio_url: ['audio'] } as const

/**
 * Seedance takes the vendor's own list of contents, in `input` or beside it, or a prompt with a list of media as in Wan
 * 2.7. Its modes exclude each other: text, first frame, first and last frame, references, the final version of a draft.
 */
export function readSeedanceScene(body: JsonObject, input: JsonObject, limits: VideoLimits, isOwn: IsOwnLink): Scene {
  const [given, at] = isGiven(input['content']) ? [input['content'], 'input.content'] : [body['content'], 'content']
  if (!isGiven(given)) return withoutFlags(readMediaScene(input, limits, isOwn), 'input.prompt')
  refuseSecondScene(body, input, at)
  const items = listOf(given, at).map((item, index) => readItem(item, `${at}[${index}]`))
  if (items.length === 0) throw missing(at)
  const draft = readDraft(items, limits)
  if (draft !== undefined) return { kind: 't2v', prompt: '', media: [], ...draft, flags: {}, flagAt: () => at }

  const text = items.filter(({ type }) => type === 'text')
  const prompt = text.map(({ fields, at: place }) => optionalText(fields, 'text', place)).join('\n')
  checkLength(prompt, at)
  const placed = readPlaced(items, isOwn)
  const kind = kindOf(placed, limits, at)
  return withoutFlags(scene(kind, prompt, placed), `${text[0]?.at ?? `${at}[0]`}.text`)
}

/** Refuses a second description of the video, because one of the two would be dropped silently. */
function refuseSecondScene(body: JsonObject, input: JsonObject, at: string): void {
  const field = shownFields.find((name) => name !== 'content' && isNonEmpty(input[name]))
  const outside = isGiven(body['content']) ? 'content' : at
  const second = field === undefined ? outside : `input.${field}`
  if (second !== at) throw badRequest(`'${at}' and '${second}' cannot both be given.`, second)
}

type Item = { readonly type: MediaType | 'text' | 'draft_task'; readonly fields: JsonObject; readonly at: string }

const types: readonly string[] = ['text', ...Object.keys(roles), 'draft_task']

function readItem(item: Json, at: string): Item {
  if (!isObject(item)) throw wrongType(at, 'an object')
  const type = optionalText(item, 'type', at)
  if (type === '') throw missing(`${at}.type`)
  if (type === 'text' || type === 'draft_task' || isMediaType(type)) return { type, fields: item, at }
  throw notOneOf(`${at}.type`, type, types)
}

function isMediaType(type: string): type is MediaType {
  return Object.hasOwn(roles, type)
}

/** A single image need not name its role; each of several has to. */
function readPlaced(items: readonly Item[], isOwn: IsOwnLink): Placed[] {
  const images = items.filter(({ type }) => type === 'image_url').length
  return items.flatMap(({ type, fields, at }): Placed[] => {
    if (type === 'text' || type === 'draft_task') return []
    const own = fields[type]
    if (!isObject(own)) throw missing(`${at}.${type}`)
    const url = readUrl(own['url'], `${at}.${type}.url`, isOwn, inline[type])
    const allowed: readonly string[] = roles[type]
    const role = optionalText(fields, 'role', at) || (type === 'image_url' && images > 1 ? '' : roles[type][0])
    if (role === '') throw missing(`${at}.role`)
    if (!isRoleName(role) || !allowed.includes(role)) throw notOneOf(`${at}.role`, role, allowed)
    return [{ role: roleNames[role], url, at: `${at}.role` }]
  })
}

function readDraft(items: readonly Item[], limits: VideoLimits): { draftOf: string; draftAt: string } | undefined {
  const draft = items.find(({ type }) => type === 'draft_task')
  if (draft === undefined) return undefined
  if (!limits.drafts) throw unsupported(`${draft.at}.type`, 'is not supported by this model: it makes no drafts.')
  if (items.length > 1) throw badRequest('A draft_task has to be the only content.', draft.at)
  const task = draft.fields['draft_task']
  const draftOf = isObject(task) ? optionalText(task, 'id', `${draft.at}.draft_task`) : ''
  const draftAt = `${draft.at}.draft_task.id`
  if (draftOf === '') throw missing(draftAt)
  return { draftOf, draftAt }
}

/** The vendor reads these flags from the prompt where the body lacks the field, so none may reach it unchecked. */
const flagNames: ReadonlyMap<string, string> = new Map([
  ['rs', 'resolution'],
  ['resolution', 'resolution'],
  ['rt', 'ratio'],
  ['ratio', 'ratio'],
  ['dur', 'duration'],
  ['duration', 'duration'],
  ['seed', 'seed'],
  ['cf', 'camera_fixed'],
  ['camerafixed', 'camera_fixed'],
  ['wm', 'watermark'],
  ['watermark', 'watermark'],
  ['frames', 'frames'],
  ['fps', 'fps'],
  ['framespersecond', 'fps'],
])

const flagPattern = /--([a-z]+)[\s=]+(\S+)/gi

/** Moves flags from the prompt into fields. */
function withoutFlags(found: Scene, flagsAt: string): Scene {
  const flags: Record<string, Json> = {}
  const words: Record<string, string> = {}
  const prompt = found.prompt.replace(flagPattern, (whole, name: string, value: string) => {
    const field = flagNames.get(name.toLowerCase())
    if (field === undefined) return whole
    const read = readFlag(value)
    if (isGiven(flags[field]) && flags[field] !== read) {
      throw badRequest(`The prompt says --${name} twice, and differently.`, flagsAt)
    }
    flags[field] = read
    words[field] = name
    return ''
  })
  // Removing a flag may have joined its neighbours into another one, which the vendor would obey.
  for (const [, name = ''] of prompt.matchAll(/--([a-z]+)/gi)) {
    if (flagNames.has(name.toLowerCase())) {
      throw badRequest(`The prompt says --${name} in a way that cannot be read.`, flagsAt)
    }
  }
  if (found.kind === 't2v' && prompt.trim() === '') throw missing(flagsAt)
  const isChanged = Object.keys(flags).length > 0
  return {
    ...found,
    prompt: isChanged ? prompt.replaceAll(/[ \t]{2,}/g, ' ').trim() : prompt,
    flags,
    flagAt: (field) => `${flagsAt} --${words[field] ?? field}`,
  }
}

function readFlag(text: string): Json {
  if (/^-?\d{1,15}$/.test(text)) return Number(text)
  return text === 'true' || text === 'false' ? text === 'true' : text
}
