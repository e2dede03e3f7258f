import { isGiven, isObject, type Json } from '../base/json.ts'
import { estimateTokens } from '../capabilities/estimate-tokens.ts'

/** About what an image of usual size takes; its real size is not known here. */
export const imageTokens = 1_500

// The most expensive published image of any vendor is about 48,000 tokens (gpt-4o-mini at high detail). A hold must
// cover it in whichever protocol the image came, because asks are translated. Anthropic's own images stay below 5,000.
export const imageTokensMax = 50_000

const everythingIsRead: ReadonlySet<string> = new Set()

/**
 * Tokens of all text inside a value, except under the names in `unread`, which no model reads as text. The count is a
 * tokenizer's rule of thumb; bills use it only where the vendor gave no number.
 */
export function countText(value: Json | undefined, unread = everythingIsRead): number {
  const texts: string[] = []
  collectTexts(value, unread, texts)
  return estimateTokens(texts)
}

function collectTexts(value: Json | undefined, unread: ReadonlySet<string>, texts: string[]): void {
  if (typeof value === 'string') texts.push(value)
  else if (Array.isArray(value)) for (const item of value as readonly Json[]) collectTexts(item, unread, texts)
  else if (isObject(value)) {
    for (const [name, item] of Object.entries(value)) if (!unread.has(name)) collectTexts(item, unread, texts)
  }
}

/** Tokens of a value that a model reads as JSON. Property names count too: a schema may contain no other text. */
export function countJson(value: Json | undefined): number {
  return isGiven(value) ? estimateTokens([JSON.stringify(value)]) : 0
}
