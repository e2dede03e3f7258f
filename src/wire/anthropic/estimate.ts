import { isGiven, isObject, type Json } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import { estimateOnce } from '../../capabilities/estimate-tokens.ts'
import { countJson, countText, except, imageTokens, type Reading } from '../estimate.ts'

// Base64 of files, and data that only vendors read.
const plain = except('data', 'signature', 'encrypted_content', 'encrypted_index', 'type')

/** A model reads a call's input as JSON, and the data of a document in plain text. */
export const wordsOnly: Reading = (name, item, holder) => {
  if (name === 'input') return isGiven(item) ? JSON.stringify(item) : undefined
  const isDocument = name === 'data' && holder['type'] === 'text'
  return isDocument ? item : plain(name, item, holder)
}

/** Tokens that the model would read, for vendors that do not count and for streams that ended without a count. */
export function estimateInput({ native, inputTokensMax }: ChatAsk): number {
  const { system, messages, tools } = native
  const words = estimateOnce(
    native,
    () => countText(system, wordsOnly) + countText(messages, wordsOnly) + countJson(tools),
  )
  return Math.min(Math.max(1, words + imageTokens * countImages(messages)), inputTokensMax)
}

function countImages(value: Json | undefined): number {
  if (Array.isArray(value)) return value.reduce((sum: number, item: Json) => sum + countImages(item), 0)
  if (!isObject(value)) return 0
  return value['type'] === 'image' ? 1 : countImages(value['content'])
}
