import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import { itemsIn, objectIn, textIn } from '../loose.ts'
import { mediaOf } from '../media-url.ts'
import { replaceLinksIn, type Replace } from '../replace-links.ts'
import { writeSource } from './write-blocks.ts'

export function replaceLinks(ask: ChatAsk, replace: Replace): ChatAsk {
  return replaceLinksIn(ask, 'messages', replace, inContent)
}

/** Blocks can be nested: in a tool result, and in a document made of blocks. */
function inContent(holder: JsonObject, at: string, replace: Replace): JsonObject {
  const { content } = holder
  if (!Array.isArray(content)) return holder
  const blocks = itemsIn(content).map((block, index): Json => {
    return isObject(block) ? inBlock(block, `${at}.content[${index}]`, replace) : block
  })
  return { ...holder, content: blocks }
}

function inBlock(block: JsonObject, at: string, replace: Replace): JsonObject {
  const written = inContent(block, at, replace)
  const source = objectIn(block['source'])
  if (source['type'] === 'content') return { ...written, source: inContent(source, `${at}.source`, replace) }
  if (source['type'] !== 'url') return written
  const kind = block['type'] === 'image' ? 'image' : 'document'
  const url = textIn(source['url'])
  const media = mediaOf(replace({ kind, url, at }), `${at}.source.url`)
  return media.kind === 'bytes' ? { ...written, source: writeSource({ kind, media, at }) } : written
}
