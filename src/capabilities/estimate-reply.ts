import type { AssistantBlock, Reply } from './conversation.ts'
import { countWords } from './count-words.ts'

/**
 * Output tokens of a reply that came without usage: what is charged for it, and what is shown where usage must be. As of an
 * answer that passes through, by a tokenizer's rule of thumb: letters are few to a token in some scripts.
 */
export function estimateReply(
  { choices }: Reply,
  ask: { readonly outputTokensMax: number; readonly choices: number },
): number {
  const said = choices.flatMap(({ blocks }) => blocks.flatMap(wordsOf))
  const estimated = said.reduce((sum, words) => sum + countWords(words), 0)
  return Math.min(Math.max(1, estimated), ask.outputTokensMax * ask.choices)
}

function wordsOf(block: AssistantBlock): string[] {
  if (block.kind === 'tool-call') return [block.name, block.argumentsText]
  return 'text' in block ? [block.text] : []
}
