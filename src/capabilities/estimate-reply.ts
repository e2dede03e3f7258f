import type { Reply } from './conversation.ts'

// English text averages about four characters a token.
const charactersPerToken = 4

/** Output tokens of a reply that came without usage: what is charged for it, and what is shown where usage must be. */
export function estimateReply(
  reply: Reply,
  ask: { readonly outputTokensMax: number; readonly choices: number },
): number {
  const estimated = Math.max(1, Math.ceil(textLength(reply) / charactersPerToken))
  return Math.min(estimated, ask.outputTokensMax * ask.choices)
}

function textLength(reply: Reply): number {
  let length = 0
  for (const { blocks } of reply.choices) {
    for (const block of blocks) {
      if (block.kind === 'tool-call') length += block.argumentsText.length
      else if ('text' in block) length += block.text.length
    }
  }
  return length
}
