import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import {
  fieldsIn,
  isFields,
  itemsIn,
  objectsIn,
  parse,
  replace,
  textIn,
  type Fields,
  type Value,
} from './exact-json.ts'

const protocols = ['chat', 'messages', 'responses'] as const
export type Protocol = (typeof protocols)[number]
/** The protocols of vendors and clients. */
export type Speech = 'common' | 'anthropic' | 'google' | 'responses'

/** One conversation of the corpus; see README.md for how its file is written. */
export type Example = {
  readonly name: string
  readonly protocol: Protocol
  readonly shows: string
  /** Asked in turn, each for the whole conversation. */
  readonly models: readonly string[]
  /** Each turn continues with the next of the models. */
  readonly moves: boolean
  readonly headers: Readonly<Record<string, string>>
  /** The request, without `model` and `stream`. */
  readonly body: Fields
  /** What the client says after each answer, which it appends first. `$call:0` is the id of the answer's first call. */
  readonly later: readonly (readonly Fields[])[]
}

const usual = ['gpt-4.1', 'claude-sonnet-5', 'gemini-3.5-flash']
const folder = join(import.meta.dir, 'corpus')

export function readCorpus(): Example[] {
  const files = readdirSync(folder).toSorted()
  return files.map((file) => readExample(basename(file, '.json'), readFileSync(join(folder, file), 'utf8')))
}

function readExample(name: string, text: string): Example {
  const { shows, models, moves, headers, body, later } = fieldsIn(replace(parse(text), repeat))
  return {
    name,
    protocol: protocolOf(name),
    shows: textIn(shows),
    models: models === undefined ? usual : itemsIn(models).map(textIn),
    moves: moves === true,
    headers: Object.fromEntries(Object.entries(fieldsIn(headers)).map(([header, value]) => [header, textIn(value)])),
    body: fieldsIn(body),
    later: itemsIn(later).map(objectsIn),
  }
}

function protocolOf(name: string): Protocol {
  const protocol = protocols.find((known) => name.startsWith(`${known}-`))
  if (protocol === undefined) throw new Error(`${name} is of no protocol`)
  return protocol
}

/** `{"$repeat": "la", "times": 2}` stands for a long text. */
function repeat(value: Value): Value {
  if (!isFields(value) || typeof value['$repeat'] !== 'string') return value
  return value['$repeat'].repeat(Number(value['times']))
}

export function speechOf(model: string): Speech {
  if (model.startsWith('claude')) return 'anthropic'
  return model.startsWith('gemini') ? 'google' : 'common'
}
