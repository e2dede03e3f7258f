import type { SandboxModel } from '../model.ts'
import { checkCalls, checkParts, emptyArray } from './check-calls-and-parts.ts'
import { badRequest, missing } from './errors.ts'
import { type Fields, fieldsIn, isFields, isGiven, itemsIn, shown, textIn } from '../fields.ts'
import { checkOneOf } from '../responses/shape.ts'

const roles = ['system', 'assistant', 'user', 'function', 'tool', 'developer'] as const
const partTypes: ReadonlySet<unknown> = new Set([
  'text',
  'image_url',
  'input_audio',
  'file',
  'refusal',
  'video_url',
  'video',
])

/**
 * The vendor's rules on `messages`: their shapes, and that every tool call is answered before the conversation goes on.
 * OpenAI checks every part; other vendors accept some parts in several shapes.
 */
export function checkMessages(messages: unknown, { vendor }: Pick<SandboxModel, 'vendor'>): readonly Fields[] {
  const isParticular = vendor === 'openai'
  if (!isGiven(messages)) throw missing('messages')
  if (!Array.isArray(messages)) {
    const got = typeof messages === 'object' ? 'an object' : `a ${typeof messages}`
    const message = `Invalid type for 'messages': expected an array of objects, but got ${got} instead.`
    throw badRequest(message, 'messages', 'invalid_type')
  }
  if (messages.length === 0) throw emptyArray('messages')
  const open = new Set<string>()
  return messages.map((message: unknown, index) => {
    if (!isFields(message)) {
      throw badRequest(
        `Invalid type for 'messages[${index}]': expected an object.`,
        `messages[${index}]`,
        'invalid_type',
      )
    }
    if (isParticular) checkEmpty(message, index)
    checkTurn(message, index, open)
    checkContent(message, index)
    if (isParticular) checkParts(message.content, `messages[${index}].content`)
    if (index === messages.length - 1) checkAnswered(open, index)
    return message
  })
}

function checkTurn(message: Fields, index: number, open: Set<string>): void {
  const { role } = message
  checkOneOf(role, roles, `messages[${index}].role`)
  if (role !== 'tool') {
    checkAnswered(open, index)
    checkCalls(message.tool_calls, `messages[${index}].tool_calls`)
    for (const call of itemsIn(message.tool_calls)) open.add(textIn(fieldsIn(call).id))
    return
  }
  const id = message.tool_call_id
  if (typeof id !== 'string') throw missing(`messages[${index}].tool_call_id`)
  if (!open.delete(id)) {
    const message = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
    throw badRequest(`Invalid parameter: ${message}`, `messages.[${index}].role`)
  }
}

function checkAnswered(open: ReadonlySet<string>, index: number): void {
  if (open.size === 0) return
  const ids = [...open].join(', ')
  const message = `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids}`
  throw badRequest(message, `messages.[${index}].role`)
}

function checkEmpty(message: Fields, index: number): void {
  for (const name of ['content', 'tool_calls'] as const) {
    const list = message[name]
    if (Array.isArray(list) && list.length === 0) throw emptyArray(`messages[${index}].${name}`)
  }
}

function checkContent({ role, content, tool_calls: calls, ...rest }: Fields, index: number): void {
  const param = `messages[${index}].content`
  if (!isGiven(content)) {
    const mayBeEmpty =
      role === 'assistant' &&
      (isGiven(calls) || isGiven(rest.function_call) || isGiven(rest.audio) || isGiven(rest.refusal))
    if (mayBeEmpty) return
    throw badRequest(`Invalid value for 'content': expected a string, got null.`, param)
  }
  if (typeof content === 'string') return
  if (!Array.isArray(content)) {
    const message = `Invalid type for '${param}': expected one of a string or array of objects.`
    throw badRequest(message, param, 'invalid_type')
  }
  for (const [at, part] of content.entries()) {
    const { type } = fieldsIn(part)
    const isTaken =
      role === 'user' ? partTypes.has(type) : type === 'text' || (type === 'refusal' && role === 'assistant')
    if (!isTaken) throw badRequest(`Invalid value: '${shown(type)}'.`, `${param}[${at}].type`, 'invalid_value')
  }
}
