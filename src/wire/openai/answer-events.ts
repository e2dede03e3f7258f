import { isGiven, isObject, type Json, type JsonObject } from '../../base/json.ts'
import { objectIn, objectsIn, textIn } from '../loose.ts'
import { readChoices } from './chat-answer.ts'
import { argumentsTextIn } from './read-answer.ts'

const encoder = new TextEncoder()

/**
 * A whole answer as the events of a stream, for servers that were asked to stream and answer whole. As in vendors' own
 * streams, a chunk has one choice, because LangChain and others read no more of it. What stands beside the choices may
 * be long, and comes only with the first chunk of each stage. Choices that were not asked for are left out: a body of
 * 64 MB may have millions of them, and each takes chunks of its own.
 */
export function answerEvents(body: Uint8Array, choicesMax: number): Uint8Array[] {
  const { json, choices } = readChoices(body)
  const { usage, ...whole } = json
  const name = nameIn(whole)
  const write = (head: JsonObject, fields: JsonObject) => {
    const chunk = { ...head, object: 'chat.completion.chunk', ...fields }
    return encoder.encode(`data: ${JSON.stringify(chunk)}\n\n`)
  }
  const parts = Object.groupBy(objectsIn(choices).slice(0, choicesMax).flatMap(partsOf), ({ stage }) => stage)
  const made = stages.flatMap((stage) => {
    return (parts[stage] ?? []).map(({ part }, at) => write(at === 0 ? whole : name, { choices: [part] }))
  })
  return [
    ...made,
    ...(isObject(usage) ? [write(whole, { choices: [], usage })] : []),
    encoder.encode('data: [DONE]\n\n'),
  ]
}

// Vendors' names have less than half of that. A body of 64 MB may be one long id beside all of its choices.
const nameCharsMax = 500

/** What says of which stream a chunk is. */
function nameIn({ id, created, model }: JsonObject): JsonObject {
  const name = { id, created, model }
  return JSON.stringify(name).length > nameCharsMax ? {} : name
}

/** In the order in which models make an answer. Where a server gives no usage, each is counted as output by itself. */
const stages = ['thoughts', 'words', 'images', 'calls', 'finish'] as const
type Stage = (typeof stages)[number]

/** Calls and those in the old form. A choice that ends with them has the name of the field as its reason. */
const callFields = ['tool_calls', 'function_call'] as const

type Part = { readonly stage: Stage; readonly part: JsonObject }

/** The deltas of one choice and its finish, without which clients take a stream for broken. */
function partsOf({ index, message, finish_reason: reason, ...more }: JsonObject, position: number): Part[] {
  const deltas = deltasOf(objectIn(message))
  const choice = { index: typeof index === 'number' ? index : position }
  const called = callFields.find((field) => deltas.some(({ delta }) => delta[field] !== undefined))
  const finish = textIn(reason) || (called ?? 'stop')
  // What else a choice has is mostly the logprobs of its words, which are read from their chunk only.
  const withMore = deltas.find(({ stage }) => stage === 'words') ?? deltas[0]
  const said = deltas.map((one) => {
    const part = { ...(one === withMore && more), ...choice, delta: one.delta, finish_reason: null }
    return { stage: one.stage, part }
  })
  return [...said, { stage: 'finish', part: { ...choice, delta: {}, finish_reason: finish } }]
}

/** The message, of which the first delta names the role. */
function deltasOf(message: JsonObject): { readonly stage: Stage; readonly delta: JsonObject }[] {
  const given = Object.entries(message).filter(([name, value]) => name !== 'role' && isSaid(value))
  const fields = Object.groupBy(given, ([name]) => stageOf(name))
  const made = stages.filter((stage) => fields[stage] !== undefined)
  return (made.length === 0 ? (['words'] as const) : made).map((stage, at) => {
    const shown = (fields[stage] ?? []).map(([name, value]) => [name, asDelta(name, value)])
    return { stage, delta: { ...(at === 0 && { role: 'assistant' }), ...Object.fromEntries(shown) } }
  })
}

/**
 * An empty list says nothing. Many servers give one in place of calls, and OpenAI's client for Go panics at such a
 * delta, because it looks at the first call.
 */
function isSaid(value: Json | undefined): boolean {
  return isGiven(value) && !(Array.isArray(value) && value.length === 0)
}

function stageOf(field: string): Stage {
  if (callFields.some((name) => name === field)) return 'calls'
  if (field === 'images') return 'images'
  return field.startsWith('reasoning') ? 'thoughts' : 'words'
}

/** Calls are numbered by their places: some servers give each the index 0, and clients would join them into one. */
function asDelta(name: string, value: Json | undefined): Json | undefined {
  if (name === 'function_call') return withArgumentsAsText(value)
  if (name !== 'tool_calls') return value
  return objectsIn(value).map((call, index) => ({ ...call, function: withArgumentsAsText(call['function']), index }))
}

/** Clients join the parts of the arguments, which some servers send as an object. */
function withArgumentsAsText(called: Json | undefined): Json | undefined {
  return isObject(called) ? { ...called, arguments: argumentsTextIn(called['arguments']) } : called
}
