import { createHash } from 'node:crypto'
import type { Json, JsonObject } from '../../base/json.ts'
import {
  gap,
  type AssistantBlock,
  type AudioBlock,
  type Conversation,
  type DocumentBlock,
  type TextBlock,
  type ToolCallBlock,
  type ToolResultBlock,
  type Turn,
  type UserBlock,
} from '../../capabilities/conversation.ts'
import { withHeading } from '../document-heading.ts'
import { takesGoogleSignatures, writeSignature } from '../google-signature.ts'
import { urlOf } from '../media-url.ts'
import { remembersReasoning } from '../past-reasoning.ts'
import { withInstructionsAsText } from '../turns.ts'
import { unsupportedBlock } from '../unsupported-block.ts'
import type { TranslationTarget } from './write-ask.ts'

type Speaker = Pick<
  TranslationTarget,
  | 'upstreamModel'
  | 'reasoning'
  | 'takesDeveloper'
  | 'messageLeftOut'
  | 'pastReasoning'
  | 'callIds'
  | 'instructions'
  | 'afterToolResults'
>

/** The turns of a conversation as messages of the common protocol. */
export function writeMessages({ system, turns }: Conversation, speaker: Speaker): JsonObject[] {
  const role = speaker.reasoning && speaker.takesDeveloper ? 'developer' : 'system'
  const messages: JsonObject[] = []
  if (system.length > 0) messages.push({ role, content: joined(system) })
  const said = speaker.instructions === 'first' ? withInstructionsAsText(turns) : turns
  for (const turn of said) messages.push(...writeTurn(turn, role, speaker))
  return messages
}

function writeTurn(turn: Turn, instructions: string, speaker: Speaker): JsonObject[] {
  switch (turn.role) {
    case 'system':
      return [{ role: instructions, content: joined(turn.blocks) }]
    case 'user':
      return writeUser(turn.blocks, speaker)
    case 'assistant':
      return [writeAssistant(turn.blocks, speaker)]
  }
}

export function joined(blocks: readonly TextBlock[]): string {
  return blocks.map(({ text }) => text).join('\n\n')
}

// Written as the model's message, for vendors that take no user message directly after results.
const seenWords = 'I have the results.'

/** Results come first, each as its own message; their images follow in a user message, because a result holds none. */
function writeUser(blocks: readonly UserBlock[], { callIds, afterToolResults }: Speaker): JsonObject[] {
  const messages: JsonObject[] = []
  const parts: JsonObject[] = []
  for (const block of blocks) {
    if (block.kind === 'tool-result') {
      const id = writeCallId(block.callId, callIds)
      messages.push({ role: 'tool', tool_call_id: id, content: resultText(block) })
      parts.push(...resultMedia(block, id))
    } else {
      parts.push(...writePart(block))
    }
  }
  const only = parts.length === 1 ? parts[0] : undefined
  const content: Json | undefined = only?.['type'] === 'text' ? only['text'] : parts
  if (parts.length === 0) return messages
  if (messages.length > 0 && afterToolResults === 'model') messages.push({ role: 'assistant', content: seenWords })
  return [...messages, { role: 'user', content }]
}

export function resultText({ blocks, isError }: ToolResultBlock): string {
  const texts: string[] = []
  for (const block of blocks) {
    if (block.kind === 'text') texts.push(block.text)
    else if (block.kind === 'document' && block.media.kind === 'text') texts.push(withHeading(block, block.media.text))
  }
  const text = texts.join('\n')
  return isError ? `Error: ${text}` : text
}

function resultMedia({ blocks }: ToolResultBlock, id: string): JsonObject[] {
  const media = blocks.filter((block) => block.kind !== 'text').filter(({ media }) => media.kind !== 'text')
  if (media.length === 0) return []
  return [{ type: 'text', text: `Attached to the result of ${id}:` }, ...media.flatMap(writePart)]
}

function writePart(block: Exclude<UserBlock, ToolResultBlock>): JsonObject[] {
  switch (block.kind) {
    case 'text':
      return [{ type: 'text', text: block.text }]
    case 'image': {
      const { media, detail } = block
      return [{ type: 'image_url', image_url: { url: urlOf(media, block), ...(detail !== undefined && { detail }) } }]
    }
    case 'audio':
      return [writeAudio(block)]
    case 'video':
      return [{ type: 'video_url', video_url: { url: urlOf(block.media, block) } }]
    case 'document':
      return writeDocument(block)
  }
}

function writeAudio({ media, ...place }: AudioBlock): JsonObject {
  if (media.kind !== 'bytes') return { type: 'audio_url', audio_url: { url: urlOf(media, place) } }
  return { type: 'input_audio', input_audio: { data: media.base64, format: media.mediaType.replace(/^audio\//, '') } }
}

/** A text document is written under its title and context; a file keeps its name, with its context before it. */
function writeDocument(document: DocumentBlock): JsonObject[] {
  const { media, title = 'document', context } = document
  if (media.kind === 'text') return [{ type: 'text', text: withHeading(document, media.text) }]
  if (media.kind === 'url') {
    throw unsupportedBlock(document, 'this model does not read documents from the web: send the bytes in base64.')
  }
  const filename = /\.\w+$/.test(title) ? title : `${title}.pdf`
  return [
    ...(context === undefined ? [] : [{ type: 'text', text: context }]),
    { type: 'file', file: { filename, file_data: urlOf(media, document) } },
  ]
}

// Vendors that require the thinking of every turn only check that there is some. A client may never have been shown it,
// and for a turn of another vendor's model there is none.
export const missingReasoning = ' '

/** Whether the reasoning of earlier turns is required. */
export function wantsReasoning({
  pastReasoning,
  upstreamModel,
}: Pick<Speaker, 'pastReasoning' | 'upstreamModel'>): boolean {
  return pastReasoning === 'wanted' || (pastReasoning === 'ignored' && remembersReasoning.test(upstreamModel))
}

function writeAssistant(blocks: readonly AssistantBlock[], speaker: Speaker): JsonObject {
  const isSigned = takesGoogleSignatures(speaker.upstreamModel)
  const takesRefusal = !speaker.messageLeftOut.includes('refusal')
  const thoughts: string[] = []
  const refusals: string[] = []
  const calls: JsonObject[] = []
  for (const block of blocks) {
    if (block.kind === 'thinking') thoughts.push(block.text)
    else if (block.kind === 'refusal') refusals.push(block.text)
    else if (block.kind === 'tool-call') {
      calls.push(writeCall({ ...block, id: writeCallId(block.id, speaker.callIds) }, isSigned))
    }
  }
  const text = textOf(blocks) || (takesRefusal ? '' : refusals.join(''))
  return {
    role: 'assistant',
    content: text || (calls.length > 0 || refusals.length > 0 ? null : ''),
    ...(refusals.length > 0 && takesRefusal && { refusal: refusals.join('') }),
    ...(wantsReasoning(speaker) && { reasoning_content: thoughts.join('') || missingReasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
}

/** All text of a reply. */
export function textOf(blocks: readonly AssistantBlock[]): string {
  return textsOf(blocks).join('')
}

/** What each block adds to the text. A text block directly after another continues it; any other is a separate text. */
export function textsOf(blocks: readonly AssistantBlock[]): string[] {
  let isSaid = false
  return blocks.map((block, index) => {
    if (block.kind !== 'text') return ''
    const goesOn = blocks[index - 1]?.kind === 'text' && block.isApart !== true
    const text = !isSaid || goesOn ? block.text : gap + block.text
    isSaid ||= text !== ''
    return text
  })
}

// OpenAI refuses a longer id.
const idCharactersMax = 40
const nine = /^[A-Za-z0-9]{9}$/

/** An id that the vendor does not take is hashed, because no vendor's answer refers to it again. */
export function writeCallId(id: string, callIds: Speaker['callIds']): string {
  if (callIds === 'nine' ? nine.test(id) : id.length <= idCharactersMax) return id
  const digits = createHash('sha256').update(id).digest('hex')
  return callIds === 'nine' ? digits.slice(0, 9) : `call_${digits.slice(0, 32)}`
}

type Called = Pick<ToolCallBlock, 'id' | 'name' | 'argumentsText' | 'signature'>

export function writeCall({ id, name, argumentsText, signature }: Called, isSigned = true): JsonObject {
  const called = { name, arguments: argumentsText }
  return { id, type: 'function', function: called, ...(isSigned && writeSignature(signature)) }
}
