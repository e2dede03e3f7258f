import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import { itemsIn } from '../loose.ts'
import { replaceLinksIn, type Replace } from '../replace-links.ts'

export function replaceLinks(ask: ChatAsk, replace: Replace): ChatAsk {
  return replaceLinksIn(ask, 'input', replace, inItem)
}

/** Messages have parts in their content, and results of tools in their output. */
function inItem(item: JsonObject, at: string, replace: Replace): JsonObject {
  const written: Record<string, Json | undefined> = { ...item }
  for (const field of ['content', 'output']) {
    if (!Array.isArray(item[field])) continue
    written[field] = itemsIn(item[field]).map((part, index) => {
      return isObject(part) ? inPart(part, `${at}.${field}[${index}]`, replace) : part
    })
  }
  return written
}

function inPart(part: JsonObject, at: string, replace: Replace): JsonObject {
  const { image_url: image, file_url: file, ...rest } = part
  if (isLink(image)) return { ...part, image_url: replace({ kind: 'image', url: image, at }) }
  if (!isLink(file)) return part
  // The vendor takes bytes only with a name.
  return { filename: 'document.pdf', ...rest, file_data: replace({ kind: 'document', url: file, at }) }
}

function isLink(value: Json | undefined): value is string {
  return typeof value === 'string' && !/^data:/i.test(value)
}
