import type { AssistantBlock, Reply } from './conversation.ts'
import { estimateOnce, estimateTokens } from './estimate-tokens.ts'

/**
 * Estimates the output tokens of a reply that came without usage, to charge it and to show it where usage is required.
 * It counts with `estimateTokens`, as for answers that pass through, because in some scripts a token has only a few
 * letters.
 */
export function estimateReply(
  { choices }: Reply,
  ask: { readonly outputTokensMax: number; readonly choices: number },
): number {
  const said = estimateOnce(choices, () => estimateTokens(choices.flatMap(({ blocks }) => blocks.flatMap(wordsOf))))
  return Math.min(Math.max(1, said), ask.outputTokensMax * ask.choices)
}

function wordsOf(block: AssistantBlock): string[] {
  if (block.kind === 'tool-call') return [block.name, block.argumentsText]
  return 'text' in block ? [block.text] : []
}
