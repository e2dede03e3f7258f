import type { Json, JsonObject } from '../../base/json.ts'
import {
  googleSignature,
  type AssistantBlock,
  type Conversation,
  type Media,
  type TextBlock,
  type ToolCallBlock,
  type ToolResultBlock,
  type Turn,
  type UserBlock,
} from '../../capabilities/conversation.ts'

type Speaker = { readonly reasoning: boolean; readonly takesThoughts: boolean }

/** The turns of a conversation as messages of the common protocol. */
export function writeMessages({ system, turns }: Conversation, speaker: Speaker): JsonObject[] {
  const role = speaker.reasoning ? 'developer' : 'system'
  const messages: JsonObject[] = []
  if (system.length > 0) messages.push({ role, content: joined(system) })
  for (const turn of turns) messages.push(...writeTurn(turn, role, speaker))
  return messages
}

function writeTurn(turn: Turn, instructions: string, speaker: Speaker): JsonObject[] {
  switch (turn.role) {
    case 'system':
      return [{ role: instructions, content: joined(turn.blocks) }]
    case 'user':
      return writeUser(turn.blocks)
    case 'assistant':
      return [writeAssistant(turn.blocks, speaker)]
  }
}

function joined(blocks: readonly TextBlock[]): string {
  return blocks.map(({ text }) => text).join('\n\n')
}

/** Results first, each a message of its own; pictures among them follow in a user message, since none may stand there. */
function writeUser(blocks: readonly UserBlock[]): JsonObject[] {
  const messages: JsonObject[] = []
  const parts: JsonObject[] = []
  for (const block of blocks) {
    if (block.kind === 'tool-result') {
      messages.push({ role: 'tool', tool_call_id: block.callId, content: resultText(block) })
      parts.push(...resultMedia(block))
    } else {
      parts.push(writePart(block))
    }
  }
  const only = parts.length === 1 ? parts[0] : undefined
  const content: Json | undefined = only?.['type'] === 'text' ? only['text'] : parts
  if (parts.length > 0) messages.push({ role: 'user', content })
  return messages
}

function resultText({ blocks, isError }: ToolResultBlock): string {
  const texts: string[] = []
  for (const block of blocks) {
    if (block.kind === 'text') texts.push(block.text)
    else if (block.kind === 'document' && block.media.kind === 'text') texts.push(block.media.text)
  }
  const text = texts.join('\n')
  return isError ? `Error: ${text}` : text
}

function resultMedia({ callId, blocks }: ToolResultBlock): JsonObject[] {
  const media = blocks.filter((block) => block.kind !== 'text').filter(({ media }) => media.kind !== 'text')
  if (media.length === 0) return []
  return [{ type: 'text', text: `Attached to the result of ${callId}:` }, ...media.map(writePart)]
}

function writePart(block: Exclude<UserBlock, ToolResultBlock>): JsonObject {
  switch (block.kind) {
    case 'text':
      return { type: 'text', text: block.text }
    case 'image': {
      const { media, detail } = block
      return { type: 'image_url', image_url: { url: urlOf(media), ...(detail !== undefined && { detail }) } }
    }
    case 'audio':
      return block.media.kind === 'bytes'
        ? {
            type: 'input_audio',
            input_audio: { data: block.media.base64, format: block.media.mediaType.replace(/^audio\//, '') },
          }
        : { type: 'audio_url', audio_url: { url: urlOf(block.media) } }
    case 'video':
      return { type: 'video_url', video_url: { url: urlOf(block.media) } }
    case 'document': {
      const { media, title } = block
      if (media.kind === 'text')
        return { type: 'text', text: title === undefined ? media.text : `${title}\n\n${media.text}` }
      if (media.kind === 'file') return { type: 'file', file: { file_id: media.id } }
      return { type: 'file', file: { file_data: urlOf(media), filename: title ?? 'document.pdf' } }
    }
  }
}

function urlOf(media: Media): string {
  if (media.kind === 'bytes') return `data:${media.mediaType};base64,${media.base64}`
  return media.kind === 'url' ? media.url : media.id
}

function writeAssistant(blocks: readonly AssistantBlock[], { takesThoughts }: Speaker): JsonObject {
  const texts: string[] = []
  const thoughts: string[] = []
  const refusals: string[] = []
  const calls: JsonObject[] = []
  for (const block of blocks) {
    if (block.kind === 'text') texts.push(block.text)
    else if (block.kind === 'thinking') thoughts.push(block.text)
    else if (block.kind === 'refusal') refusals.push(block.text)
    else if (block.kind === 'tool-call') calls.push(writeCall(block))
  }
  return {
    role: 'assistant',
    content: texts.length > 0 ? texts.join('') : calls.length > 0 || refusals.length > 0 ? null : '',
    ...(refusals.length > 0 && { refusal: refusals.join('') }),
    ...(takesThoughts && thoughts.length > 0 && { reasoning_content: thoughts.join('') }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
}

export function writeCall({ id, name, argumentsText, signature }: ToolCallBlock): JsonObject {
  const google = googleSignature(signature)
  return {
    id,
    type: 'function',
    function: { name, arguments: argumentsText },
    ...(google !== undefined && { extra_content: { google: { thought_signature: google } } }),
  }
}
