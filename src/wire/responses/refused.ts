import { badRequest } from '../../base/errors.ts'
import { isGiven, isObject, type Json, type JsonObject } from '../../base/json.ts'
import { notSupported } from '../issues.ts'
import { itemsIn, objectIn } from '../loose.ts'

const nothingKept = 'nothing is kept here. Send the whole conversation in `input`.'
// Vercel's AI SDK refers to earlier items by id, unless `store: false` tells it that they were not stored.
const nothingReferred = `${nothingKept} Clients that refer to it send it with \`store: false\`.`

/**
 * Fields without which the answer would differ from what was asked for, and what to do instead. `plain` lists the
 * values that ask for nothing.
 */
const refused: Readonly<Record<string, { readonly why: string; readonly plain?: readonly unknown[] }>> = {
  previous_response_id: { why: nothingKept },
  conversation: { why: nothingKept },
  prompt: { why: 'no prompts are kept here. Send its text in `instructions` and `input`.' },
  background: { why: 'nothing is kept here. Send the request with `stream` and read its answer.', plain: [false] },
  context_management: { why: 'conversations are not shortened here. Send only what the model is to read.' },
  moderation: { why: 'it has no price here.' },
  image: { why: 'images go to the vendor as they are.' },
  // OpenRouter serves this protocol too, and would search the web in its own way, at its own price.
  plugins: { why: 'hosted search is a tool here.' },
}

/** The same for fields of `reasoning`. */
const refusedThinking: typeof refused = {
  mode: { why: 'it has no price here. `reasoning.effort` says how long to think.', plain: ['standard'] },
  // The vendor's own command-line tool sends `all_turns`, which holds here: everything that is sent is passed on.
  context: { why: 'reasoning of earlier turns is passed on as it is sent.', plain: ['auto', 'all_turns'] },
}

const onlyInChat = 'has no equivalent here: send the request there'

/** Fields of chat, which would have no effect here, and what to write instead. */
const fieldsOfChat: Readonly<Record<string, string>> = {
  messages: 'is `input` here',
  max_tokens: 'is `max_output_tokens` here',
  max_completion_tokens: 'is `max_output_tokens` here',
  response_format: 'is `text.format` here',
  reasoning_effort: 'is `reasoning.effort` here',
  verbosity: 'is `text.verbosity` here',
  functions: 'is `tools` here',
  function_call: 'is `tool_choice` here',
  web_search_options: 'is a tool `web_search` in `tools` here',
  stop: onlyInChat,
  n: onlyInChat,
}

export const refusedFields: readonly string[] = [...Object.keys(refused), ...Object.keys(fieldsOfChat)]

/** Refuses unsupported fields with a reason; none is dropped silently. */
export function refuseFields(body: JsonObject): void {
  refuseAmong(refused, body, '')
  refuseAmong(refusedThinking, objectIn(body['reasoning']), 'reasoning.')
  for (const [field, instead] of Object.entries(fieldsOfChat)) {
    const value = body[field]
    if (!isGiven(value) || (field === 'n' && value === 1)) continue
    const message = `'${field}' is a field of \`/v1/chat/completions\` and ${instead}.`
    throw badRequest(message, field, 'unsupported_parameter')
  }
  // The vendor keeps files under the operator's account, so a file id in a request would name the file of someone else.
  for (const [at, item] of itemsIn(body['input']).entries()) if (isObject(item)) refuseItem(item, at)
}

function refuseAmong(fields: typeof refused, body: JsonObject, at: string): void {
  for (const [field, { why, plain = [] }] of Object.entries(fields)) {
    const value = body[field]
    if (isGiven(value) && !plain.includes(value)) throw notSupported(`${at}${field}`, why)
  }
}

/** The fields of an item whose parts may name a file. */
const lists = ['content', 'output'] as const

/** There may be a hundred thousand items, so the path of one is built only for an error. */
function refuseItem(item: JsonObject, at: number): void {
  const { type, role, id } = item
  if (type === 'item_reference') throw notSupported(`input[${at}].type`, nothingReferred)
  // A reference may leave out its `type`.
  if (!isGiven(type) && !isGiven(role) && isGiven(id)) throw notSupported(`input[${at}].id`, nothingReferred)
  for (const list of lists) {
    const parts = item[list]
    if (!Array.isArray(parts)) continue
    const index = parts.findIndex(namesFile)
    if (index === -1) continue
    throw notSupported(`input[${at}].${list}[${index}].file_id`, 'files are not kept here. Send the bytes or a URL.')
  }
}

function namesFile(part: Json): boolean {
  return isObject(part) && typeof part['file_id'] === 'string'
}
