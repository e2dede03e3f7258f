import { excerpt } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import {
  anthropicSignature,
  type AssistantBlock,
  type DocumentBlock,
  type ImageBlock,
  type Media,
  type Placed,
  type TextBlock,
  type ToolResultBlock,
  type UserBlock,
} from '../../capabilities/conversation.ts'
import { argumentsIn } from '../loose.ts'
import { typeToSend } from '../media-type.ts'
import { unsupportedBlock } from '../unsupported-block.ts'
import { writeImageText } from './shown.ts'
import type { WriteCache } from './write-cache.ts'

/** The vendor refuses text of only whitespace. */
export function writeText(block: TextBlock, cache: WriteCache): JsonObject[] {
  return block.text.trim() === '' ? [] : [{ type: 'text', text: block.text, ...cache(block) }]
}

export function writeUserBlock(block: Exclude<UserBlock, ToolResultBlock>, cache: WriteCache): JsonObject[] {
  switch (block.kind) {
    case 'text':
      return writeText(block, cache)
    case 'image':
      return [{ type: 'image', source: writeImage(block), ...cache(block) }]
    case 'document':
      return [writeDocument(block, cache)]
    case 'audio':
      throw unsupportedBlock(block, 'this model takes no audio.')
    case 'video':
      throw unsupportedBlock(block, 'this model takes no video.')
  }
}

/** Where the bytes of a file are. */
export function writeSource(block: ImageBlock | DocumentBlock): JsonObject {
  return block.kind === 'image' ? writeImage(block) : writeDocumentSource(block)
}

function writeImage({ media, ...place }: ImageBlock): JsonObject {
  if (media.kind === 'bytes') {
    return { type: 'base64', media_type: typeToSend(media), data: media.base64 }
  }
  return writeReference(media, place)
}

function writeReference(media: Exclude<Media, { kind: 'bytes' }>, place: Placed): JsonObject {
  if (media.kind === 'url') {
    if (/^https:/i.test(media.url)) return { type: 'url', url: media.url }
    throw unsupportedBlock(place, "this model's vendor reads https:// links only.", 'invalid_url')
  }
  throw unsupportedBlock(
    place,
    `this model's vendor does not have the file '${excerpt(media.id)}': send its bytes or a URL.`,
  )
}

function writeDocument(block: DocumentBlock, cache: WriteCache): JsonObject {
  return {
    type: 'document',
    source: writeDocumentSource(block),
    ...(block.title !== undefined && { title: block.title }),
    ...(block.context !== undefined && { context: block.context }),
    ...(block.isCited === true && { citations: { enabled: true } }),
    ...cache(block),
  }
}

function writeDocumentSource({ media, ...place }: DocumentBlock): JsonObject {
  if (media.kind === 'text') return writePlain(media.text)
  if (media.kind !== 'bytes') return writeReference(media, place)
  const { mediaType, base64 } = media
  if (mediaType === 'application/pdf') return { type: 'base64', media_type: mediaType, data: base64 }
  if (mediaType.startsWith('text/') || mediaType === 'application/json') {
    return writePlain(Buffer.from(base64, 'base64').toString())
  }
  throw unsupportedBlock(place, `this model takes PDF and text files, not '${excerpt(mediaType)}'.`)
}

function writePlain(text: string): JsonObject {
  return { type: 'text', media_type: 'text/plain', data: text }
}

export function writeResult(block: ToolResultBlock, id: string, cache: WriteCache): JsonObject {
  const content = writeResultContent(block.blocks, cache)
  return {
    type: 'tool_result',
    tool_use_id: id,
    ...(content.length > 0 && { content }),
    ...(block.isError && { is_error: true }),
    ...cache(block),
  }
}

export function writeResultContent(
  blocks: readonly (TextBlock | ImageBlock | DocumentBlock)[],
  cache: WriteCache,
): JsonObject[] {
  return blocks.flatMap((block) => writeUserBlock(block, cache))
}

/** `idOf` gives the id to write for a call, which is unique in the conversation. */
export function writeAssistantBlock(
  block: AssistantBlock,
  idOf: (id: string) => string,
  cache: WriteCache,
): JsonObject[] {
  switch (block.kind) {
    case 'text':
      return writeText(block, cache)
    case 'refusal':
      return writeText({ kind: 'text', text: block.text }, cache)
    case 'image':
      // The vendor takes no images in assistant messages; an image with a URL keeps it as text.
      return [{ type: 'text', text: block.media.kind === 'url' ? writeImageText(block.media) : '[image]' }]
    case 'thinking': {
      // Thinking without the vendor's own signature is refused.
      const signature = anthropicSignature(block.signature)
      return signature === undefined ? [] : [{ type: 'thinking', thinking: block.text, signature }]
    }
    case 'thinking-redacted':
      return [{ type: 'redacted_thinking', data: block.data }]
    case 'tool-call': {
      const { id, name, argumentsText } = block
      return [{ type: 'tool_use', id: idOf(id), name, input: argumentsIn(argumentsText), ...cache(block) }]
    }
  }
}
