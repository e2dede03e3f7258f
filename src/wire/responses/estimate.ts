import type { ChatAsk } from '../../capabilities/chat.ts'
import { estimateOnce } from '../../capabilities/estimate-tokens.ts'
import { countJson, countText, except, imageTokens } from '../estimate.ts'
import { objectsIn } from '../loose.ts'

/** The names left out hold no text that a model reads: files, names, and data that only vendors read. */
export const wordsOnly = except(
  'type',
  'id',
  'call_id',
  'encrypted_content',
  'image_url',
  'file_url',
  'file_data',
  'data',
  'result',
)

/** Tokens that the model would read, for when the vendor counted none. */
export function estimateInput({ native, inputTokensMax }: ChatAsk): number {
  const { instructions, input, tools } = native
  const words = estimateOnce(native, () => countText(instructions) + countText(input, wordsOnly) + countJson(tools))
  const parts = objectsIn(input).flatMap(({ content, output }) => [...objectsIn(content), ...objectsIn(output)])
  const images = parts.filter(({ type }) => type === 'input_image').length
  return Math.min(Math.max(1, words + imageTokens * images), inputTokensMax)
}
