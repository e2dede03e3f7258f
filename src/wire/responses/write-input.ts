import type { Json, JsonObject } from '../../base/json.ts'
import {
  openaiThought,
  type AssistantBlock,
  type Conversation,
  type DocumentBlock,
  type TextBlock,
  type ToolResultBlock,
  type Turn,
  type UserBlock,
} from '../../capabilities/conversation.ts'
import { notTaken } from '../not-taken.ts'
import { joined, resultText, textOf, urlOf, withHeading, writeCallId } from '../openai/write-messages.ts'

/** A conversation as this protocol says it: instructions apart, and a list of items. */
export function writeInput({ system, turns }: Conversation): JsonObject {
  const instructions = joined(system)
  // Instructions alone are no input: there they are what is said.
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

/** Results first, each an item of its own. */
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

/** With pictures and files where it has any: here they may stand in a result. */
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
      throw notTaken(block, 'this model does not take audio.')
    case 'video':
      throw notTaken(block, 'this model does not take video.')
  }
}

/** A text is said, below its title and what it is about; a file has a name, and the rest is said before it. */
function writeDocument(document: DocumentBlock): JsonObject[] {
  const { media, title = 'document', context } = document
  if (media.kind === 'text') return [textPart(withHeading(document, media.text))]
  const before = context === undefined ? [] : [textPart(context)]
  if (media.kind === 'url') return [...before, { type: 'input_file', file_url: media.url }]
  const filename = /\.\w+$/.test(title) ? title : `${title}.pdf`
  return [...before, { type: 'input_file', filename, file_data: urlOf(media, document) }]
}

/**
 * What the model said, called and thought, in its order. A thought is taken back only as the vendor encrypted it, and
 * only before what came of it.
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
      const encrypted = openaiThought(block.signature)
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
    case 'image': // nowhere may an assistant show one
    case 'thinking-redacted': // another vendor's
      return []
  }
}

function message(part: JsonObject): JsonObject {
  return { type: 'message', role: 'assistant', content: [part] }
}
