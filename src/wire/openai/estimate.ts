import type { ChatAsk } from '../../capabilities/chat.ts'
import { estimateOnce } from '../../capabilities/estimate-tokens.ts'
import { countJson, countText, except, imageTokens } from '../estimate.ts'
import { objectsIn } from '../loose.ts'

/** The names left out hold files or their URLs. A model reads what the files show, which cannot be counted here. */
export const wordsOnly = except('url', 'data', 'file_data', 'video')

/** Tokens that the model would read, for when the vendor counted none. */
export function estimateInput({ native, inputTokensMax }: ChatAsk): number {
  const { messages, tools, functions } = native
  const words = estimateOnce(native, () => countText(messages, wordsOnly) + countJson(tools) + countJson(functions))
  const blocks = objectsIn(messages).flatMap(({ content }) => objectsIn(content))
  const images = blocks.filter(({ type }) => type === 'image_url').length
  return Math.min(words + imageTokens * images, inputTokensMax)
}
