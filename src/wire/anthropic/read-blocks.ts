import { badRequest } from '../../base/errors.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import {
  googleSignature,
  type AssistantBlock,
  type DocumentBlock,
  type ImageBlock,
  type Media,
  type TextBlock,
  type ToolCallBlock,
  type ToolResultBlock,
  type UserBlock,
} from '../../capabilities/conversation.ts'
import { cacheOf } from '../cache-hint.ts'
import { readSignature } from '../google-signature.ts'
import { objectIn, objectsIn, textIn } from '../loose.ts'
import { asImage } from '../media-url.ts'
import { shortName } from '../short-name.ts'
import { readCitations } from './citations.ts'
import { readCallId } from './tool-ids.ts'

// All blocks here have passed the schema: a block with another shape is of a type that the gateway does not know.

/** Content may be a single text; an empty text gives no block. */
export function blocksOf(content: Json | undefined): readonly JsonObject[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return objectsIn(content)
}

export function readText(block: JsonObject): TextBlock[] {
  const text = textIn(block['text'])
  return text === '' ? [] : [{ kind: 'text', text, ...cacheOf(block) }]
}

/** Unknown blocks are dropped: the newest clients send some that no other vendor could use. */
export function readUserBlock(block: JsonObject, at: string): UserBlock[] {
  switch (textIn(block['type'])) {
    case 'tool_result':
      return [readResult(block, at)]
    case 'container_upload':
      throw badRequest('This model takes no files into a container.', `${at}.type`, 'unsupported_value')
    default:
      return readShown(block, at)
  }
}

/** Blocks that both a user message and a tool result can hold. */
function readShown(block: JsonObject, at: string): (TextBlock | ImageBlock | DocumentBlock)[] {
  switch (textIn(block['type'])) {
    case 'text':
      return readText(block)
    case 'image':
      return [{ kind: 'image', media: imageOf(objectIn(block['source']), at), at, ...cacheOf(block) }]
    case 'document':
      return readDocument(block, at)
    case 'search_result':
      return [readSearchResult(block, at)]
    case 'tool_reference':
      return [readReference(block)]
    default:
      return []
  }
}

function readReference(block: JsonObject): TextBlock {
  const name = shortName(textIn(block['tool_name']))
  return { kind: 'text', text: `The tool ${name} can be called now.`, ...cacheOf(block) }
}

function mediaOf(source: JsonObject): Media {
  if (source['type'] === 'url') return { kind: 'url', url: textIn(source['url']) }
  if (source['type'] === 'file') return { kind: 'file', id: textIn(source['file_id']) }
  return { kind: 'bytes', mediaType: textIn(source['media_type']), base64: textIn(source['data']) }
}

function imageOf(source: JsonObject, at: string): Media {
  return asImage(mediaOf(source), `${at}.source.media_type`)
}

/** Images inside a document made of blocks are placed after its text. */
function readDocument(block: JsonObject, at: string): (DocumentBlock | ImageBlock)[] {
  const source = objectIn(block['source'])
  const facts = { at, ...titlesOf(block), ...citedOf(block), ...cacheOf(block) }
  if (source['type'] === 'text') {
    return [{ kind: 'document', media: { kind: 'text', text: textIn(source['data']) }, ...facts }]
  }
  if (source['type'] !== 'content') return [{ kind: 'document', media: mediaOf(source), ...facts }]
  const inside = shownIn(source['content'], `${at}.source.content`)
  const images = inside.filter((part) => part.kind === 'image')
  return [{ kind: 'document', media: { kind: 'text', text: joined(inside) }, ...facts }, ...images]
}

function readSearchResult(block: JsonObject, at: string): DocumentBlock {
  const text = joined(blocksOf(block['content']).flatMap(readText))
  const source = textIn(block['source'])
  const context = source === '' ? {} : { context: source }
  const facts = { at, ...titlesOf(block), ...context, ...citedOf(block), ...cacheOf(block) }
  return { kind: 'document', media: { kind: 'text', text }, ...facts }
}

function joined(blocks: readonly { readonly kind: string; readonly text?: string }[]): string {
  return blocks.flatMap(({ text }) => text ?? []).join('\n')
}

function titlesOf({ title, context }: JsonObject): { readonly title?: string; readonly context?: string } {
  return { ...(typeof title === 'string' && { title }), ...(typeof context === 'string' && { context }) }
}

function citedOf({ citations }: JsonObject): { readonly isCited?: boolean } {
  return objectIn(citations)['enabled'] === true ? { isCited: true } : {}
}

function shownIn(content: Json | undefined, at: string): (TextBlock | ImageBlock | DocumentBlock)[] {
  return blocksOf(content).flatMap((block, index) => readShown(block, `${at}[${index}]`))
}

function readResult(block: JsonObject, at: string): ToolResultBlock {
  return {
    kind: 'tool-result',
    callId: readCallId(textIn(block['tool_use_id'])),
    blocks: shownIn(block['content'], `${at}.content`),
    isError: block['is_error'] === true,
    at,
    ...cacheOf(block),
  }
}

/**
 * What the model said, in a client's request or in the vendor's answer. Blocks of hosted tools are left out. Texts with
 * any block between them, shown or not, are separate, and so is a compaction summary.
 */
export function readAssistantBlocks(content: Json | undefined): AssistantBlock[] {
  const blocks: AssistantBlock[] = []
  let isParted = false
  for (const block of blocksOf(content)) {
    const last = blocks.at(-1)
    const read = readAssistantBlock(block)
    const isPlain = textIn(block['type']) === 'text'
    isParted ||= !isPlain
    if (read?.kind === 'tool-call' && last?.kind === 'thinking' && isCarrier(last.text, last.signature)) {
      blocks[blocks.length - 1] = { ...read, ...(last.signature !== undefined && { signature: last.signature }) }
    } else if (read?.kind === 'text' && last?.kind === 'text' && isParted) blocks.push({ ...read, isApart: true })
    else if (read !== undefined) blocks.push(read)
    if (isPlain && read !== undefined) isParted = false
  }
  return blocks
}

/** Google signs the call itself. For clients that asked for thinking, an empty thinking block carries the signature. */
function isCarrier(text: string, signature: string | undefined): boolean {
  return text === '' && googleSignature(signature) !== undefined
}

function readAssistantBlock(block: JsonObject): AssistantBlock | undefined {
  switch (textIn(block['type'])) {
    case 'text': {
      const citations = readCitations(block['citations'])
      return readText(block).map((text) => ({ ...text, ...(citations.length > 0 && { citations }) }))[0]
    }
    case 'thinking': {
      const signature = textIn(block['signature'])
      return { kind: 'thinking', text: textIn(block['thinking']), ...(signature !== '' && { signature }) }
    }
    case 'redacted_thinking':
      return { kind: 'thinking-redacted', data: textIn(block['data']) }
    case 'tool_use':
      return readCall(block)
    case 'compaction':
      // The summary stands for everything before it, which clients then no longer send.
      return readText({ ...block, text: block['content'] })[0]
    default:
      return undefined
  }
}

function readCall(block: JsonObject): ToolCallBlock {
  const signature = readSignature(block)
  return {
    kind: 'tool-call',
    id: readCallId(textIn(block['id'])),
    name: shortName(textIn(block['name'])),
    argumentsText: JSON.stringify(objectIn(block['input'])),
    ...(signature !== undefined && { signature }),
    ...cacheOf(block),
  }
}
