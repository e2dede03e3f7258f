import { badRequest } from '../../base/errors.ts'
import { isGiven, isObject, type Json } from '../../base/json.ts'
import type {
  AssistantBlock,
  DocumentBlock,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
  UserBlock,
} from '../../capabilities/conversation.ts'
import { cacheOf } from '../cache-hint.ts'
import { readSignature } from '../google-signature.ts'
import { argumentsIn, objectWrittenIn } from '../loose.ts'
import { documentMediaOf, imageMediaOf, mediaOf } from '../media-url.ts'
import { thinkingTextOf } from './read-answer.ts'
import type { ChatRequest } from './chat-schema.ts'

type Message = ChatRequest['messages'][number]
type UserPart = Exclude<Extract<Message, { role: 'user' }>['content'], string>[number]
type ResultPart = Exclude<Extract<Message, { role: 'tool' }>['content'], string>[number]
type AssistantMessage = Extract<Message, { role: 'assistant' }>
type Part = { readonly type: 'text'; readonly text: string }

/** Vendors refuse an empty text, so it gives no block. */
export function textBlocks(content: string | readonly Part[]): TextBlock[] {
  const parts = typeof content === 'string' ? [{ text: content }] : content
  return parts.filter(({ text }) => text !== '').map(textBlock)
}

function textBlock(part: { readonly text: string }): TextBlock {
  return { kind: 'text', text: part.text, ...cacheOf(part) }
}

export function userBlock(part: UserPart, at: string): UserBlock {
  switch (part.type) {
    case 'text':
    case 'image_url':
    case 'file':
      return resultBlock(part, at)
    case 'input_audio': {
      const { data, format } = part.input_audio
      return { kind: 'audio', media: { kind: 'bytes', mediaType: `audio/${format}`, base64: data }, at }
    }
    case 'audio_url':
      return { kind: 'audio', media: mediaOf(part.audio_url.url, `${at}.audio_url.url`), at }
    case 'video_url':
      return { kind: 'video', media: mediaOf(part.video_url.url, `${at}.video_url.url`), at }
    case 'video':
      throw badRequest('This model takes no video as a list of frames.', `${at}.video`, 'unsupported_value')
  }
}

/** A part that a tool result can hold too. */
export function resultBlock(part: ResultPart, at: string): ToolResultBlock['blocks'][number] {
  if (part.type === 'text') return textBlock(part)
  if (part.type === 'file') return documentOf(part, at)
  const { url, detail } = part.image_url
  return {
    kind: 'image',
    media: imageMediaOf(url, `${at}.image_url.url`),
    at,
    ...(typeof detail === 'string' && { detail }),
    ...cacheOf(part),
  }
}

function documentOf(part: Extract<ResultPart, { type: 'file' }>, at: string): DocumentBlock {
  const { file_data: bytes, file_id: id, filename } = part.file
  const extras = { at, ...(typeof filename === 'string' && { title: filename }), ...cacheOf(part) }
  if (typeof bytes === 'string') {
    return { kind: 'document', media: documentMediaOf(bytes, `${at}.file.file_data`), ...extras }
  }
  if (typeof id === 'string') return { kind: 'document', media: { kind: 'file', id }, ...extras }
  throw badRequest("'file' needs file_data or file_id.", `${at}.file`, 'missing_required_parameter')
}

export function assistantBlocks(message: AssistantMessage, at: number): AssistantBlock[] {
  const blocks: AssistantBlock[] = thinkingBlocks(message)
  const { content, refusal } = message
  const parts = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : (content ?? [])
  for (const part of parts) {
    if (part.type === 'refusal') blocks.push({ kind: 'refusal', text: part.refusal })
    else if (part.type === 'text' && part.text !== '') blocks.push(textBlock(part))
    else if (part.type === 'thinking') blocks.push({ kind: 'thinking', text: thinkingTextOf(part.thinking as Json) })
  }
  if (typeof refusal === 'string' && refusal !== '') blocks.push({ kind: 'refusal', text: refusal })
  return [...blocks, ...calls(message, at)]
}

/**
 * Thinking as we showed it: with signatures in `thinking_blocks`, which a client that keeps the whole message sends
 * back, or without in `reasoning_content`.
 */
function thinkingBlocks(message: AssistantMessage): AssistantBlock[] {
  const { thinking_blocks: signed, reasoning_content: plain } = message as Readonly<Record<string, unknown>>
  if (Array.isArray(signed)) return (signed as readonly Json[]).flatMap(thinkingBlock)
  return typeof plain === 'string' && plain !== '' ? [{ kind: 'thinking', text: plain }] : []
}

function thinkingBlock(block: Json): AssistantBlock[] {
  if (!isObject(block)) return []
  const { type, thinking, signature, data } = block
  if (type === 'redacted_thinking' && typeof data === 'string') return [{ kind: 'thinking-redacted', data }]
  if (type !== 'thinking' || typeof thinking !== 'string') return []
  return [{ kind: 'thinking', text: thinking, ...(typeof signature === 'string' && { signature }) }]
}

function calls(message: AssistantMessage, at: number): ToolCallBlock[] {
  const { function_call: legacy, tool_calls: written } = message
  const found = (written ?? []).map((call, index): ToolCallBlock => {
    const param = `messages[${at}].tool_calls[${index}]`
    if (call.type !== 'function') {
      throw badRequest('This model takes function tools only.', `${param}.type`, 'unsupported_value')
    }
    const { name, arguments: text } = call.function
    const signature = readSignature(call)
    return {
      kind: 'tool-call',
      id: call.id,
      name,
      argumentsText: argumentsOf(text),
      ...(signature !== undefined && { signature }),
    }
  })
  if (!isGiven(legacy)) return found
  const { name, arguments: text } = legacy
  return [...found, { kind: 'tool-call', id: legacyCallId(name), name, argumentsText: argumentsOf(text) }]
}

/** The retired function calls have no ids, so an id is made from the name, for calls and results alike. */
export function legacyCallId(name: string): string {
  return `call_${name}`
}

/** A model's arguments come back here, complete or cut off: OpenAI takes any text, most vendors only an object. */
export function argumentsOf(text: string): string {
  return objectWrittenIn(text) === undefined ? JSON.stringify(argumentsIn(text)) : text
}
