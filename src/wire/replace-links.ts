import { isObject, type JsonObject } from '../base/json.ts'
import type { ChatAsk } from '../capabilities/chat.ts'
import type { MediaLink } from '../capabilities/conversation.ts'
import { itemsIn } from './loose.ts'

/** Gives a file as a `data:` URL, in place of the link that leads to it. */
export type Replace = (link: MediaLink) => string

/** The ask with each item of its list rewritten; the ask itself if `rewrite` found no link to replace. */
export function replaceLinksIn(
  ask: ChatAsk,
  list: 'messages' | 'input',
  replace: Replace,
  rewrite: (item: JsonObject, at: string, replace: Replace) => JsonObject,
): ChatAsk {
  let isChanged = false
  const noting: Replace = (link) => {
    isChanged = true
    return replace(link)
  }
  const items = itemsIn(ask.native[list]).map((item, index) => {
    return isObject(item) ? rewrite(item, `${list}[${index}]`, noting) : item
  })
  return isChanged ? { ...ask, native: { ...ask.native, [list]: items } } : ask
}
