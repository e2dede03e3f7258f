import { isGiven } from '../../base/json.ts'
import {
  markOpenai,
  type AssistantBlock,
  type DocumentBlock,
  type ImageBlock,
  type Media,
  type TextBlock,
  type ToolResultBlock,
  type Turn,
  type UserBlock,
} from '../../capabilities/conversation.ts'
import { readSignature } from '../google-signature.ts'
import { invalid, missing } from '../issues.ts'
import { documentMediaOf, imageMediaOf } from '../media-url.ts'
import { argumentsOf } from '../openai/read-blocks.ts'
import type { Item } from './schema.ts'
import { isMarked, thinkingBlockOf, unseal } from './sealed.ts'
import { namesOf, neutralName, toolSearchName, writePlainInput } from './tools.ts'

type Message = Extract<Item, { role: unknown }>
type Part = Exclude<Message['content'], string>[number]
type Reasoning = Extract<Item, { type: 'reasoning' }>
type Output = Extract<Item, { output: unknown }>['output']

/** An item as a turn; undefined where it says nothing. `signature` is the call's, if the item before carried it. */
export function readItem(item: Item, at: string, signature: string | undefined): Turn | undefined {
  switch (item.type) {
    case 'function_call':
      return called(item.call_id, neutralName(item), argumentsOf(item.arguments), readSignature(item) ?? signature)
    case 'custom_tool_call':
      return called(item.call_id, neutralName(item), writePlainInput(item.input), signature)
    case 'function_call_output':
    case 'custom_tool_call_output':
      return { role: 'user', blocks: [resultOf(item.call_id, item.output, at)] }
    case 'tool_search_call':
      return called(item.call_id, toolSearchName, JSON.stringify(item.arguments), signature)
    case 'tool_search_output': {
      const names = namesOf(item.tools)
      const found = names.length === 0 ? 'None was found.' : `These tools can be called now: ${names.join(', ')}.`
      return { role: 'user', blocks: [resultOf(item.call_id, found, at)] }
    }
    case 'reasoning': {
      const thought = readReasoning(item)
      return thought === undefined ? undefined : assistant(thought)
    }
    case 'agent_message':
      return { role: 'user', blocks: textBlock(agentWords(item)) }
    case 'image_generation_call': {
      const { result, output_format: format } = item
      if (!isGiven(result) || result === '') return undefined
      return assistant({
        kind: 'image',
        media: { kind: 'bytes', mediaType: `image/${format ?? 'png'}`, base64: result },
      })
    }
    case 'additional_tools': // read by `placedTools`
    case 'web_search_call':
      return undefined
    case 'message':
    case null:
    case undefined:
      return readMessage(item, at)
  }
}

function assistant(block: AssistantBlock): Turn {
  return { role: 'assistant', blocks: [block] }
}

function called(id: string, name: string, argumentsText: string, signature: string | undefined): Turn {
  return assistant({ kind: 'tool-call', id, name, argumentsText, ...(signature !== undefined && { signature }) })
}

/** The signature of the following call, where the item only carries one. */
export function carriedSignature(item: Item): string | undefined {
  if (item.type !== 'reasoning' || !isGiven(item.encrypted_content)) return undefined
  const sealed = unseal(item.encrypted_content)
  return sealed?.kind === 'call' ? sealed.signature : undefined
}

/**
 * The reasoning as we sealed it, otherwise its text, which some vendors want back too. Content without our mark is
 * OpenAI's own, from an answer that passed through, and OpenAI takes it back when a later request is translated.
 */
function readReasoning({ summary, content, encrypted_content: seal }: Reasoning): AssistantBlock | undefined {
  const sealed = isGiven(seal) ? unseal(seal) : undefined
  if (sealed?.kind === 'call') return undefined
  if (sealed !== undefined) return thinkingBlockOf(sealed)
  const words = [...(content ?? []), ...(summary ?? [])].map(({ text }) => text).join('\n')
  const isOpenais = isGiven(seal) && seal !== '' && !isMarked(seal)
  if (words === '' && !isOpenais) return undefined
  return { kind: 'thinking', text: words, ...(isOpenais && { signature: markOpenai(seal) }) }
}

type AgentMessage = Extract<Item, { type: 'agent_message' }>

const openaisEncryption = /^gAAAA[\w-]{32,}={0,2}$/

/** Whether any words are only labelled as encrypted, as those of other vendors' models are: OpenAI refuses them. */
export function isMislabelled({ content }: AgentMessage): boolean {
  const parts = Array.isArray(content) ? content : []
  return parts.some((part) => part.type === 'encrypted_content' && !openaisEncryption.test(part.encrypted_content))
}

/** The words of a message between agents, without those that OpenAI encrypted. */
function agentWords({ content }: AgentMessage): string {
  if (!Array.isArray(content)) return content ?? ''
  const words = content.map((part) => (part.type === 'input_text' ? part.text : part.encrypted_content))
  return words.filter((text) => !openaisEncryption.test(text)).join('')
}

function readMessage(message: Message, at: string): Turn {
  const { role, content } = message
  const parts = typeof content === 'string' ? [{ type: 'input_text' as const, text: content }] : content
  const place = (index: number) => (typeof content === 'string' ? `${at}.content` : `${at}.content[${index}]`)
  switch (role) {
    case 'user':
      return { role, blocks: parts.flatMap((part, index) => readUserPart(part, place(index))) }
    case 'assistant':
      return { role, blocks: parts.flatMap((part, index) => readAssistantPart(part, place(index))) }
    case 'system':
    case 'developer':
      return { role: 'system', blocks: parts.flatMap((part, index) => readInstruction(part, place(index))) }
  }
}

/** Vendors refuse an empty text, so it gives no block. */
function textBlock(text: string): TextBlock[] {
  return text === '' ? [] : [{ kind: 'text', text }]
}

function readUserPart(part: Part, at: string): UserBlock[] {
  if (part.type === 'output_text' || part.type === 'refusal') throw misplaced(part.type, 'user', at)
  if (part.type !== 'input_audio') return readShown(part, at)
  const { data, format } = part.input_audio
  return [{ kind: 'audio', media: { kind: 'bytes', mediaType: `audio/${format}`, base64: data }, at }]
}

function readAssistantPart(part: Part, at: string): AssistantBlock[] {
  if (part.type === 'refusal') return part.refusal === '' ? [] : [{ kind: 'refusal', text: part.refusal }]
  if (part.type === 'output_text' || part.type === 'input_text') return textBlock(part.text)
  throw misplaced(part.type, 'assistant', at)
}

function readInstruction(part: Part, at: string): TextBlock[] {
  if (part.type === 'input_text') return textBlock(part.text)
  throw misplaced(part.type, 'developer', at)
}

function misplaced(type: string, role: string, at: string) {
  return invalid(`${at}.type`, `'${type}' has no place in a message of role '${role}'`)
}

type Shown = Extract<Part, { type: 'input_text' | 'input_image' | 'input_file' }>

/** Parts that both a user message and a tool result can hold. */
function readShown(part: Shown, at: string): (TextBlock | ImageBlock | DocumentBlock)[] {
  switch (part.type) {
    case 'input_text':
      return textBlock(part.text)
    case 'input_image': {
      const { image_url: url, detail } = part
      if (!isGiven(url)) throw missing(`${at}.image_url`)
      return [{ kind: 'image', media: imageMediaOf(url, `${at}.image_url`), at, ...(isGiven(detail) && { detail }) }]
    }
    case 'input_file': {
      const { file_data: bytes, file_url: url, filename } = part
      const facts = { at, ...(isGiven(filename) && { title: filename }) }
      if (isGiven(bytes)) return [{ kind: 'document', media: fileOf(bytes, `${at}.file_data`), ...facts }]
      if (isGiven(url)) return [{ kind: 'document', media: documentMediaOf(url, `${at}.file_url`), ...facts }]
      throw missing(`${at}.file_data`)
    }
  }
}

function resultOf(callId: string, output: Output, at: string): ToolResultBlock {
  const blocks =
    typeof output === 'string'
      ? textBlock(output)
      : output.flatMap((part, index) => readShown(part, `${at}.output[${index}]`))
  return { kind: 'tool-result', callId, blocks, isError: false, at }
}

/** File bytes come as a data URL or as bare base64, which counts as a PDF: the protocol's own vendor reads those. */
function fileOf(data: string, param: string): Media {
  if (/^data:/i.test(data)) return documentMediaOf(data, param)
  return { kind: 'bytes', mediaType: 'application/pdf', base64: data }
}
