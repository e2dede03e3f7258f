import type { JsonObject } from '../../base/json.ts'
import type { CacheHint, Conversation } from '../../capabilities/conversation.ts'

// The vendor refuses a request with more breakpoints.
const breakpointsMax = 4

/** Writes a block's cache hint where it may be kept. Must be called in the vendor's order: tools, system, messages. */
export type WriteCache = (block: { readonly cache?: CacheHint }) => JsonObject

/**
 * Of too many hints the last ones are kept, because they cover the longest prefixes. The vendor allows no one-hour hint
 * after a five-minute one, so such a hint becomes five minutes.
 */
export function openCacheHints({ tools, system, turns }: Conversation): WriteCache {
  let surplus =
    countHints([...tools, ...system, ...turns.flatMap((turn): readonly object[] => turn.blocks)]) - breakpointsMax
  let isShort = false
  return ({ cache }) => {
    if (cache === undefined || surplus-- > 0) return {}
    isShort ||= cache === '5m'
    return { cache_control: isShort ? { type: 'ephemeral' } : { type: 'ephemeral', ttl: '1h' } }
  }
}

type Carrier = { readonly cache?: CacheHint; readonly blocks?: readonly Carrier[] }

function countHints(carriers: readonly object[]): number {
  let hints = 0
  for (const carrier of carriers) {
    const { cache, blocks = [] }: Carrier = carrier
    hints += countHints(blocks) + (cache === undefined ? 0 : 1)
  }
  return hints
}
