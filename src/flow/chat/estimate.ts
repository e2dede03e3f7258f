import type { StreamFacts } from '../../capabilities/chat.ts'

/** The least that Google, whose models show images in chats, counts for one. */
const tokensPerImage = 1_120

// English text averages about four bytes a token, and most vendors send one token an event.
export const bytesPerToken = 4

/**
 * Output tokens of a stream that came without usage: one per event, or by its bytes where the vendor sends several
 * tokens at once. Never 0 after output. The measured error is in docs/billing.md.
 */
export function estimateOutput(facts: Pick<StreamFacts, 'outputEvents' | 'outputBytes'>): number {
  if (facts.outputEvents === 0) return 0
  return Math.max(facts.outputEvents, Math.ceil(facts.outputBytes / bytesPerToken))
}

/** The tokens of the images in an output that came without usage. */
export function estimateImages({ images }: Pick<StreamFacts, 'images'>): number {
  return images * tokensPerImage
}
