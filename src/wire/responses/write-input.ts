import type { Json, JsonObject } from '../../base/json.ts'
import {
  openaiReasoning,
  type AssistantBlock,
  type Conversation,
  type DocumentBlock,
  type TextBlock,
  type ToolResultBlock,
  type Turn,
  type UserBlock,
} from '../../capabilities/conversation.ts'
import { withHeading } from '../document-heading.ts'
import { urlOf } from '../media-url.ts'
import { joined, resultText, textOf, writeCallId } from '../openai/write-messages.ts'
import { unsupportedBlock } from '../unsupported-block.ts'

/** A conversation in this protocol: the instructions, and a list of items. */
export function writeInput({ system, turns }: Conversation): JsonObject {
  const instructions = joined(system)
  // Instructions alone are no input, so they are sent as the only message.
  if (turns.length === 0) return { input: [{ role: 'developer', content: instructions }] }
  return { ...(instructions !== '' && { instructions }), input: turns.flatMap(writeTurn) }
}

function writeTurn(turn: Turn): JsonObject[] {
  switch (turn.role) {
    case 'system':
      return [{ role: 'developer', content: joined(turn.blocks) }]
    case 'user':
      return writeUser(turn.blocks)
    case 'assistant':
      return writeAssistant(turn.blocks)
  }
}

/** Results come first, each as an item of its own. */
function writeUser(blocks: readonly UserBlock[]): JsonObject[] {
  const results: JsonObject[] = []
  const parts: JsonObject[] = []
  for (const block of blocks) {
    if (block.kind === 'tool-result') results.push(writeResult(block))
    else parts.push(...writePart(block))
  }
  const only = parts.length === 1 ? parts[0] : undefined
  const content: Json | undefined = only?.['type'] === 'input_text' ? only['text'] : parts
  return parts.length === 0 ? results : [...results, { role: 'user', content }]
}

/** The result with its images and files, which this protocol takes inside a result. */
function writeResult(result: ToolResultBlock): JsonObject {
  const media = result.blocks.filter((block) => block.kind !== 'text').filter((block) => block.media.kind !== 'text')
  const text = resultText(result)
  return {
    type: 'function_call_output',
    call_id: writeCallId(result.callId, 'any'),
    output: media.length === 0 ? text : [...(text === '' ? [] : [textPart(text)]), ...media.flatMap(writePart)],
  }
}

function textPart(text: string): JsonObject {
  return { type: 'input_text', text }
}

function writePart(block: Exclude<UserBlock, ToolResultBlock>): JsonObject[] {
  switch (block.kind) {
    case 'text':
      return [textPart(block.text)]
    case 'image': {
      const { media, detail } = block
      return [{ type: 'input_image', image_url: urlOf(media, block), ...(detail !== undefined && { detail }) }]
    }
    case 'document':
      return writeDocument(block)
    case 'audio':
      throw unsupportedBlock(block, 'this model does not take audio.')
    case 'video':
      throw unsupportedBlock(block, 'this model does not take video.')
  }
}

/** A text document is written under its title and context; a file keeps its name, with its context before it. */
function writeDocument(document: DocumentBlock): JsonObject[] {
  const { media, title = 'document', context } = document
  if (media.kind === 'text') return [textPart(withHeading(document, media.text))]
  const before = context === undefined ? [] : [textPart(context)]
  if (media.kind === 'url') return [...before, { type: 'input_file', file_url: media.url }]
  const filename = /\.\w+$/.test(title) ? title : `${title}.pdf`
  return [...before, { type: 'input_file', filename, file_data: urlOf(media, document) }]
}

/**
 * What the model said, called and thought, in order. The vendor takes reasoning back only as it encrypted it, and only
 * in front of the output that followed it.
 */
function writeAssistant(blocks: readonly AssistantBlock[]): JsonObject[] {
  const items: JsonObject[] = []
  let texts: TextBlock[] = []
  function endText(): void {
    const text = textOf(texts)
    if (text !== '') items.push(message({ type: 'output_text', text }))
    texts = []
  }
  for (const block of blocks) {
    if (block.kind === 'text') {
      texts.push(block)
      continue
    }
    endText()
    items.push(...writeSaid(block))
  }
  endText()
  return items.slice(0, items.findLastIndex(({ type }) => type !== 'reasoning') + 1)
}

function writeSaid(block: Exclude<AssistantBlock, TextBlock>): JsonObject[] {
  switch (block.kind) {
    case 'thinking': {
      const encrypted = openaiReasoning(block.signature)
      if (encrypted === undefined) return []
      const summary = block.text === '' ? [] : [{ type: 'summary_text', text: block.text }]
      return [{ type: 'reasoning', summary, encrypted_content: encrypted }]
    }
    case 'tool-call': {
      const { id, name, argumentsText } = block
      return [{ type: 'function_call', call_id: writeCallId(id, 'any'), name, arguments: argumentsText }]
    }
    case 'refusal':
      return [message({ type: 'refusal', refusal: block.text })]
    case 'image': // no protocol takes an image from an assistant
    case 'thinking-redacted': // from another vendor
      return []
  }
}

function message(part: JsonObject): JsonObject {
  return { type: 'message', role: 'assistant', content: [part] }
}
