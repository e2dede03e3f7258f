import { expect } from 'bun:test'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import {
  canonical,
  fieldsIn,
  isFields,
  itemsIn,
  objectsIn,
  parse,
  pretty,
  replace,
  textIn,
  type Fields,
  type Value,
} from './exact-json.ts'

/**
 * What was sent and received, kept in `golden/`: a file per conversation, with an entry per model. With UPDATE_GOLDEN=1
 * a difference is written to the file instead of reported. What must survive is asserted separately, updates or not.
 */
const folder = join(import.meta.dir, 'golden')
const isUpdating = process.env['UPDATE_GOLDEN'] === '1'

export function checkGolden(name: string, model: string, turns: Value): void {
  const file = join(folder, `${name}.json`)
  const known = existsSync(file) ? fieldsIn(parse(readFileSync(file, 'utf8'))) : {}
  const shown = parse(JSON.stringify(turns))
  if (!isUpdating) expect(pretty(shown)).toBe(pretty(known[model] ?? null))
  else if (canonical(known[model]) !== canonical(shown))
    writeFileSync(file, `${pretty({ ...known, [model]: shown })}\n`)
}

/** Checks that no entry is left of a removed example; with UPDATE_GOLDEN=1, removes such entries. */
export function checkNoneLeft(expected: ReadonlyMap<string, readonly string[]>): void {
  const left: string[] = []
  for (const file of readdirSync(folder)) {
    const name = basename(file, '.json')
    const known = fieldsIn(parse(readFileSync(join(folder, file), 'utf8')))
    const models = expected.get(name) ?? []
    const stale = Object.keys(known).filter((model) => !models.includes(model))
    left.push(...stale.map((model) => `${name}: ${model}`))
    if (!isUpdating || stale.length === 0) continue
    const kept = Object.entries(known).filter(([model]) => models.includes(model))
    writeFileSync(join(folder, file), `${pretty(Object.fromEntries(kept))}\n`)
  }
  if (!isUpdating) expect(left).toEqual([])
}

const charactersMax = 200
const charactersShown = 40

/** Shows a long text by its beginning, its length and a hash. */
function shorten(value: Value): Value {
  if (typeof value !== 'string' || value.length <= charactersMax) return value
  const hash = createHash('sha256').update(value).digest('hex').slice(0, 8)
  return `${value.slice(0, charactersShown)}… ${value.length} characters, ${hash}`
}

/** The text of an answer is compared with the vendor's elsewhere; here its beginning is enough to recognise it. */
function shortenWords(value: Value, name: string): Value {
  const isWords = ['text', 'content', 'thinking', 'reasoning_content'].includes(name)
  if (typeof value !== 'string' || !isWords || value.length <= charactersShown) return shorten(value)
  return `${value.slice(0, charactersShown)}… ${value.length} characters`
}

const labels: ReadonlySet<string> = new Set(['user', 'user_id', 'safety_identifier', 'prompt_cache_key'])

/** A body sent to a vendor. User labels are derived with a secret, so they differ from start to start. */
export function showSent(body: Fields, before: Fields | undefined): Fields {
  const shown = fieldsIn(
    replace(body, (value, name) => (labels.has(name) && typeof value === 'string' ? '<opaque>' : shorten(value))),
  )
  return before === undefined ? shown : asChanges(shown, fieldsIn(showSent(before, undefined)))
}

/** Shows a later turn by what is new in it. */
function asChanges(shown: Fields, before: Fields): Fields {
  const same = Object.keys(shown).filter((name) => canonical(shown[name]) === canonical(before[name]))
  const changed = Object.entries(shown).flatMap(([name, value]) => {
    if (same.includes(name)) return []
    const known = itemsIn(before[name])
    const isLonger = known.length > 0 && known.every((item, at) => canonical(item) === canonical(itemsIn(value)[at]))
    return [[name, isLonger ? [`${known.length} as before`, ...itemsIn(value).slice(known.length)] : value]]
  })
  return { ...(same.length > 0 && { 'as before': same.join(', ') }), ...(Object.fromEntries(changed) as Fields) }
}

const ours: ReadonlySet<string> = new Set([
  'id',
  'created',
  'created_at',
  'completed_at',
  'request_id',
  'system_fingerprint',
])
// Item ids of a response are derived from its request id.
const itemId = /^([a-z]+_)[0-9a-f]{32}(\d\d)$/

export function showGot(body: Fields): Fields {
  const named = Object.entries(body).map(([name, value]) => [name, ours.has(name) ? `<${name}>` : value])
  return fieldsIn(replace(withoutItemIds(Object.fromEntries(named) as Fields), shortenWords))
}

function withoutItemIds(value: Value): Value {
  return replace(value, (part) => (typeof part === 'string' ? part.replace(itemId, '$1$2') : part))
}

const pieces: ReadonlySet<string> = new Set([
  'delta',
  'content',
  'reasoning_content',
  'refusal',
  'arguments',
  'text',
  'thinking',
  'partial_json',
])

/** The events of a stream: consecutive pieces of one text are joined, and chunks are reduced to their content. */
export function showEvents(events: readonly Fields[]): Value[] {
  const shown: Value[] = []
  for (const event of events) {
    const next = showEvent(event)
    const last = shown.at(-1)
    const isMore = last !== undefined && canonical(blank(last)) === canonical(blank(next))
    if (isMore) shown[shown.length - 1] = joinPieces(last, next)
    else shown.push(next)
  }
  return shown.map((event) =>
    replace(event, (value, name) => (pieces.has(name) ? shortenPiece(value) : shorten(value))),
  )
}

function showEvent(event: Fields): Fields {
  const { choices, usage, message, sequence_number: number } = event
  if (number !== undefined) return showNumbered(event)
  if (isFields(message)) return { ...event, message: showGot(message) }
  if (choices === undefined) return event
  const [choice] = objectsIn(choices)
  if (choice === undefined) return usage === undefined ? {} : { usage }
  const { delta, finish_reason: finish } = choice
  return finish === null ? { delta } : { delta, finish_reason: finish }
}

/** Events with a whole response, which repeats the request, show only its status; it is shown in full elsewhere. */
function showNumbered({ response, ...event }: Fields): Fields {
  const { sequence_number: _, ...shown } = fieldsIn(withoutItemIds(event))
  return isFields(response) ? { ...shown, response: { status: response['status'] } } : shown
}

function shortenPiece(value: Value): Value {
  return typeof value === 'string' && value.length > 2 * charactersShown
    ? `${value.slice(0, 20)}… ${value.length} characters`
    : value
}

function blank(event: Value): Value {
  return replace(event, (value, name) => (pieces.has(name) && typeof value === 'string' ? '' : value))
}

function joinPieces(known: Value, more: Value, name = ''): Value {
  if (pieces.has(name) && typeof known === 'string') return known + textIn(more)
  if (Array.isArray(known)) return itemsIn(known).map((item, at) => joinPieces(item, itemsIn(more)[at] ?? null))
  if (!isFields(known)) return known
  const joined = Object.entries(known).map(([key, value]) => [
    key,
    joinPieces(value ?? null, fieldsIn(more)[key] ?? null, key),
  ])
  return Object.fromEntries(joined) as Fields
}
