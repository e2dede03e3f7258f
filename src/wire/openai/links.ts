import type { Json, JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import type { MediaLink } from '../../capabilities/conversation.ts'
import { itemsIn, objectIn } from '../loose.ts'
import { replaceLinksIn, type Replace } from '../replace-links.ts'

/** Where a part of each type has its link or its `data:` URL, and what the link leads to. */
const places: Readonly<Record<string, { readonly field: string; readonly kind: MediaLink['kind'] }>> = {
  image_url: { field: 'url', kind: 'image' },
  video_url: { field: 'url', kind: 'video' },
  audio_url: { field: 'url', kind: 'audio' },
  file: { field: 'file_data', kind: 'document' },
}

export function replaceLinks(ask: ChatAsk, replace: Replace): ChatAsk {
  return replaceLinksIn(ask, 'messages', replace, inMessage)
}

function inMessage(message: JsonObject, at: string, replace: Replace): JsonObject {
  if (!Array.isArray(message['content'])) return message
  const parts = itemsIn(message['content']).map((part, index) => inPart(part, `${at}.content[${index}]`, replace))
  return { ...message, content: parts }
}

function inPart(written: Json, at: string, replace: Replace): Json {
  const part: JsonObject = objectIn(written)
  const { type } = part
  if (typeof type !== 'string') return written
  if (type === 'video') return { ...part, video: inFrames(part['video'], `${at}.video`, replace) }
  const place = Object.hasOwn(places, type) ? places[type] : undefined
  if (place === undefined) return written
  const { field, kind } = place
  const holder = objectIn(part[type])
  return { ...part, [type]: { ...holder, [field]: inText(holder[field], kind, `${at}.${type}.${field}`, replace) } }
}

/** A video is one link, or a list of frames. */
function inFrames(video: Json | undefined, at: string, replace: Replace): Json | undefined {
  if (!Array.isArray(video)) return inText(video, 'video', at, replace)
  return itemsIn(video).map((frame, index) => inText(frame, 'image', `${at}[${index}]`, replace) ?? null)
}

/** Base64 has no colon, so that a text with one is a link, unless it is a `data:` URL. */
function inText(text: Json | undefined, kind: MediaLink['kind'], at: string, replace: Replace): Json | undefined {
  if (typeof text !== 'string' || /^data:/i.test(text) || !text.includes(':')) return text
  return replace({ kind, url: text, at })
}
