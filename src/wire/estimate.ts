import { isGiven, isObject, type Json } from '../base/json.ts'
import { countWords } from '../capabilities/count-words.ts'

/** About what a picture of usual size takes; nothing here can see how large one is. */
export const imageTokens = 1_500

const everythingIsRead: ReadonlySet<string> = new Set()

/**
 * Tokens of all text inside a value, but for what stands under names that no model reads as words. By a tokenizer's rule of
 * thumb: bills use it only where the vendor gave no number.
 */
export function countText(value: Json | undefined, unread = everythingIsRead): number {
  if (typeof value === 'string') return countWords(value)
  if (Array.isArray(value)) return value.reduce((sum: number, item: Json) => sum + countText(item, unread), 0)
  if (!isObject(value)) return 0
  let tokens = 0
  for (const [name, item] of Object.entries(value)) if (!unread.has(name)) tokens += countText(item, unread)
  return tokens
}

/** Tokens of what a model reads as JSON. Names are words there: a schema may have no others. */
export function countJson(value: Json | undefined): number {
  return isGiven(value) ? countWords(JSON.stringify(value)) : 0
}
