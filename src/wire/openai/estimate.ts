import type { ChatAsk } from '../../capabilities/chat.ts'
import { countJson, countText, imageTokens } from '../estimate.ts'
import { objectsIn } from '../loose.ts'

/** Where files are, whole or by their addresses. What they show is read, which nothing here can see. */
export const unread: ReadonlySet<string> = new Set(['url', 'data', 'file_data', 'video'])

/** Tokens of what the model would read, for when the vendor counted none. */
export function estimateInput({ native, inputTokensMax }: ChatAsk): number {
  const { messages, tools, functions } = native
  const words = countText(messages, unread) + countJson(tools) + countJson(functions)
  const blocks = objectsIn(messages).flatMap(({ content }) => objectsIn(content))
  const images = blocks.filter(({ type }) => type === 'image_url').length
  return Math.min(words + imageTokens * images, inputTokensMax)
}
