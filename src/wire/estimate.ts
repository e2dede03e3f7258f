import { isGiven, isObject, type Json, type JsonObject } from '../base/json.ts'
import { estimateTokens } from '../capabilities/estimate-tokens.ts'

/** About what an image of usual size takes; its real size is not known here. */
export const imageTokens = 1_500

// The most expensive published image of any vendor is about 48,000 tokens (gpt-4o-mini at high detail). A hold must
// cover it in whichever protocol the image came, because asks are translated. Anthropic's own images stay below 5,000.
export const imageTokensMax = 50_000

/** What a model reads of the item under this name in an object; undefined where it reads none of it. */
export type Reading = (name: string, item: Json | undefined, holder: JsonObject) => Json | undefined

/**
 * Tokens of all text that a model reads in a value. The count is a tokenizer's rule of thumb; bills use it only where
 * the vendor gave no number.
 */
export function countText(value: Json | undefined, reading: Reading = (_, item) => item): number {
  const texts: string[] = []
  collectTexts(value, reading, texts)
  return estimateTokens(texts)
}

/** Reads everything but what stands under these names. */
export function except(...unread: readonly string[]): Reading {
  const names = new Set(unread)
  return (name, item) => (names.has(name) ? undefined : item)
}

function collectTexts(value: Json | undefined, reading: Reading, texts: string[]): void {
  if (typeof value === 'string') texts.push(value)
  else if (Array.isArray(value)) for (const item of value as readonly Json[]) collectTexts(item, reading, texts)
  else if (isObject(value)) {
    for (const [name, item] of Object.entries(value)) collectTexts(reading(name, item, value), reading, texts)
  }
}

/** Tokens of a value that a model reads as JSON. Property names count too: a schema may contain no other text. */
export function countJson(value: Json | undefined): number {
  return isGiven(value) ? estimateTokens([JSON.stringify(value)]) : 0
}
