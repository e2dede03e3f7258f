import { type Fields, fieldsIn, isFields, isGiven, shown, textIn } from '../fields.ts'
import type { Family } from './families.ts'
import { invalidField, missingField } from './refusals.ts'

/** What all items of `content` together ask for. */
export type Content = {
  readonly text: string
  /** Made from text alone, a first frame, a first and a last frame, references, or an earlier draft. */
  readonly mode: 'text' | 'first' | 'first-last' | 'reference' | 'draft'
  readonly videos: number
  readonly draftId: string | undefined
}

const itemTypes = ['text', 'image_url', 'video_url', 'audio_url', 'draft_task'] as const
type ItemType = (typeof itemTypes)[number]

/** The roles of each type of item. */
const roles: Readonly<Partial<Record<ItemType, readonly string[]>>> = {
  image_url: ['first_frame', 'last_frame', 'reference_image'],
  video_url: ['reference_video'],
  audio_url: ['reference_audio'],
}

type Item = { readonly type: ItemType; readonly role: string | undefined; readonly fields: Fields }

export function readContent(content: unknown, family: Family): Content {
  if (!isGiven(content)) throw missingField('content')
  if (!Array.isArray(content) || content.length === 0) throw invalidField('content', 'it must be a non-empty array')
  const items = content.map(readItem)
  const ofType = (type: ItemType): Item[] => items.filter((item) => item.type === type)
  const text = ofType('text').map(({ fields }) => textIn(fields.text))
  if (text.length > 1) throw invalidField('content', 'only one text content is allowed')
  const draftId = readDraft(ofType('draft_task'), items.length, family)
  const mode = draftId === undefined ? readMode(items, family) : 'draft'
  if (mode === 'text' && (text[0] ?? '').trim() === '') throw missingField('content.text')
  return { text: text[0] ?? '', mode, videos: ofType('video_url').length, draftId }
}

function readItem(value: unknown, index: number): Item {
  const fields = fieldsIn(value)
  const path = `content[${index}]`
  const type = itemTypes.find((known) => known === fields.type)
  if (type === undefined) throw invalidField(`${path}.type`, `unknown type ${shown(fields.type)}`)
  if (type === 'text') {
    if (typeof fields.text !== 'string') throw missingField(`${path}.text`)
    return { type, role: undefined, fields }
  }
  if (!isFields(fields[type])) throw missingField(`${path}.${type}`)
  if (type !== 'draft_task') checkUrl(fieldsIn(fields[type]).url, type, `${path}.${type}.url`)
  const role = isGiven(fields.role) ? textIn(fields.role) : undefined
  const allowed = roles[type] ?? []
  if (role !== undefined && !allowed.includes(role)) throw invalidField(`${path}.role`, `unknown role ${role}`)
  return { type, role, fields }
}

/** Videos are accepted as a URL only, other media also inline. Nothing is fetched. */
function checkUrl(url: unknown, type: ItemType, path: string): void {
  if (!isGiven(url)) throw missingField(path)
  const isInline = type !== 'video_url' && /^data:(image|audio)\/[\w.+-]+;base64,/.test(textIn(url))
  if (!isInline && !/^(https?|asset):\/\/[^/]/.test(textIn(url))) throw invalidField(path, 'it is not a valid url')
}

function readDraft(drafts: readonly Item[], items: number, { makesDrafts }: Family): string | undefined {
  const [draft] = drafts
  if (draft === undefined) return undefined
  if (!makesDrafts) throw invalidField('content', 'draft_task is not supported by the model')
  if (drafts.length > 1 || items > 1) throw invalidField('content', 'draft_task must be the only content')
  const id = textIn(fieldsIn(draft.fields.draft_task).id)
  if (id === '') throw missingField('content[0].draft_task.id')
  return id
}

function readMode(items: readonly Item[], family: Family): Content['mode'] {
  const images = items.filter(({ type }) => type === 'image_url')
  const count = (role: string): number => images.filter((item) => item.role === role).length
  // A single image may omit its role.
  const [only] = images
  const isBare = images.length === 1 && only?.role === undefined
  if (!isBare && images.some(({ role }) => role === undefined)) {
    throw invalidField('content', 'role must be specified for image contents')
  }
  const first = isBare ? 1 : count('first_frame')
  const last = count('last_frame')
  const clips = items.filter(({ type }) => type === 'video_url').length
  const audios = items.filter(({ type }) => type === 'audio_url').length
  const references = count('reference_image') + clips + audios
  if (references > 0) {
    if (first + last > 0) {
      throw invalidField('content', 'first/last frame content cannot be mixed with reference media content')
    }
    checkReferences(count('reference_image'), clips, audios, family)
    return 'reference'
  }
  if (first > 1 || last > 1) throw invalidField('content', 'more than one image has the same role')
  if (last > first) throw invalidField('content', 'last_frame requires first_frame')
  if (first === 0) return 'text'
  return last === 0 ? 'first' : 'first-last'
}

function checkReferences(images: number, videos: number, audios: number, { references, generation }: Family): void {
  if (!references) throw invalidField('content', 'reference media is not supported by the model')
  const counts = { images, videos, audios }
  for (const kind of ['images', 'videos', 'audios'] as const) {
    if (counts[kind] > references[kind]) {
      throw invalidField('content', `at most ${references[kind]} reference ${kind} are allowed`)
    }
  }
  if (generation === '2.0' && images + videos === 0) {
    throw invalidField('content', 'reference audio requires a reference image or video')
  }
}
