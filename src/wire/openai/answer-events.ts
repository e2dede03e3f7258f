import { isGiven, isObject, type Json, type JsonObject } from '../../base/json.ts'
import { objectIn, objectsIn, textIn } from '../loose.ts'
import { readChoices } from './chat-answer.ts'
import { argumentsTextIn } from './read-answer.ts'

const encoder = new TextEncoder()

/** A whole answer as the events of a stream, for servers that were asked to stream and answer whole. */
export function answerEvents(body: Uint8Array): Uint8Array[] {
  const { json, choices } = readChoices(body)
  const { usage } = json
  const write = (fields: JsonObject) => {
    const { usage: _, ...head } = json
    const chunk = { ...head, object: 'chat.completion.chunk', ...fields }
    return encoder.encode(`data: ${JSON.stringify(chunk)}\n\n`)
  }
  const parts = objectsIn(choices).flatMap(partsOf)
  return [
    ...parts.map((part) => write({ choices: [part] })),
    ...(isObject(usage) ? [write({ choices: [], usage })] : []),
    encoder.encode('data: [DONE]\n\n'),
  ]
}

/** The deltas of one choice and its finish, without which clients take a stream for broken. */
function partsOf({ index, message, finish_reason: reason, ...more }: JsonObject, position: number): JsonObject[] {
  const deltas = deltasOf(objectIn(message))
  const choice = { index: typeof index === 'number' ? index : position }
  const isCalled = deltas.some(({ tool_calls: calls }) => objectsIn(calls).length > 0)
  const finish = textIn(reason) || (isCalled ? 'tool_calls' : 'stop')
  const said = deltas.map((delta, at) => ({ ...choice, delta, ...(at === 0 && more), finish_reason: null }))
  return [...said, { ...choice, delta: {}, finish_reason: finish }]
}

/**
 * The message in the order in which models make one: reasoning, words, calls. Where a server gives no usage, each is
 * counted as output by itself. The first delta names the role.
 */
function deltasOf(message: JsonObject): JsonObject[] {
  const given = Object.entries(message).filter(([name, value]) => name !== 'role' && isGiven(value))
  const made = Object.groupBy(given, ([name]) => stageOf(name))
  const [first = [], ...later] = [made.thoughts, made.words, made.calls].filter((fields) => fields !== undefined)
  const deltas = [[['role', 'assistant'] as const, ...first], ...later]
  return deltas.map((fields) => Object.fromEntries(fields.map(([name, value]) => [name, asDelta(name, value)])))
}

function stageOf(field: string): 'thoughts' | 'words' | 'calls' {
  if (field === 'tool_calls' || field === 'function_call') return 'calls'
  return field.startsWith('reasoning') ? 'thoughts' : 'words'
}

function asDelta(name: string, value: Json | undefined): Json | undefined {
  if (name !== 'tool_calls') return value
  return objectsIn(value).map((call, index) => ({ index, ...call, ...withArgumentsAsText(call) }))
}

/** Clients join the parts of the arguments, which some servers send as an object. */
function withArgumentsAsText({ function: called }: JsonObject): JsonObject {
  if (!isObject(called)) return {}
  return { function: { ...called, arguments: argumentsTextIn(called['arguments']) } }
}
