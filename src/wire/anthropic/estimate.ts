import { isGiven, isObject, type Json } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import { estimateOnce, estimateTokens } from '../../capabilities/estimate-tokens.ts'
import { countJson, imageTokens } from '../estimate.ts'

// Values under these names are not counted as text: base64 of files, and data that only vendors read.
const unread: ReadonlySet<string> = new Set(['data', 'signature', 'encrypted_content', 'encrypted_index', 'type'])

/** Tokens of everything in a value that a model reads or has written. */
export function countText(value: Json | undefined): number {
  const texts: string[] = []
  collectTexts(value, texts)
  return estimateTokens(texts)
}

function collectTexts(value: Json | undefined, texts: string[]): void {
  if (typeof value === 'string') texts.push(value)
  else if (Array.isArray(value)) for (const item of value as readonly Json[]) collectTexts(item, texts)
  else if (isObject(value)) {
    for (const [name, item] of Object.entries(value)) {
      const isText = name === 'data' && value['type'] === 'text' // a document in plain text
      if (name === 'input') texts.push(isGiven(item) ? JSON.stringify(item) : '')
      else if (isText || !unread.has(name)) collectTexts(item, texts)
    }
  }
}

/** Tokens that the model would read, for vendors that do not count and for streams that ended without a count. */
export function estimateInput({ native, inputTokensMax }: ChatAsk): number {
  const { system, messages, tools } = native
  const words = estimateOnce(native, () => countText(system) + countText(messages) + countJson(tools))
  return Math.min(Math.max(1, words + imageTokens * countImages(messages)), inputTokensMax)
}

function countImages(value: Json | undefined): number {
  if (Array.isArray(value)) return value.reduce((sum: number, item: Json) => sum + countImages(item), 0)
  if (!isObject(value)) return 0
  return value['type'] === 'image' ? 1 : countImages(value['content'])
}
