import type { Json } from '../../base/json.ts'
import { partsIn, reasoningIn } from '../../wire/openai/read-answer.ts'

/** A message or a delta, as far as it has words. */
export type Worded = { readonly content?: Json; readonly reasoning_content?: Json; readonly reasoning?: Json }

/** The words of an answer that was passed through: vendors of one protocol write them in more than one form. */
export function wordsIn(said: Worded): { readonly text: string; readonly reasoning: string } {
  const words = { text: '', reasoning: reasoningIn(said) ?? '' }
  for (const { kind, text } of partsIn(said.content)) words[kind === 'text' ? 'text' : 'reasoning'] += text
  return words
}
