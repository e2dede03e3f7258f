import type { ChatAsk } from '../../capabilities/chat.ts'
import { estimateOnce } from '../../capabilities/estimate-tokens.ts'
import { countJson, countText, imageTokens } from '../estimate.ts'
import { objectsIn } from '../loose.ts'

/** Names that hold files or their URLs. A model reads what the files show, which cannot be counted here. */
export const unread: ReadonlySet<string> = new Set(['url', 'data', 'file_data', 'video'])

/** Tokens that the model would read, for when the vendor counted none. */
export function estimateInput({ native, inputTokensMax }: ChatAsk): number {
  const { messages, tools, functions } = native
  const words = estimateOnce(native, () => countText(messages, unread) + countJson(tools) + countJson(functions))
  const blocks = objectsIn(messages).flatMap(({ content }) => objectsIn(content))
  const images = blocks.filter(({ type }) => type === 'image_url').length
  return Math.min(words + imageTokens * images, inputTokensMax)
}
