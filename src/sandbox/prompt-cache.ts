import { blockTokens, type Prompt } from './prompt.ts'

/**
 * The vendor's prompt cache: a prefix of at least 1,024 tokens that the same key sent before (to the same model, under
 * the same prompt_cache_key or none) is read back in blocks of 128.
 */
export type PromptCache = {
  /** How many leading tokens are in the cache. Remembers the prompt for the next call. */
  read(owner: string, prompt: Prompt): number
}

/** The shortest prefix that is cached. */
export const cachedBlocksMin = 1_024 / blockTokens
const prefixesMax = 200_000

export function createPromptCache(): PromptCache {
  // Insertion order is age: the oldest prefix is dropped first when the cache is full.
  const seen = new Set<string>()
  return {
    read(owner, { blocks }) {
      if (blocks.length < cachedBlocksMin) return 0
      let known = 0
      for (const [index, block] of blocks.entries()) {
        const name = `${owner}\n${block}`
        if (seen.has(name)) known = index + 1
        else if (index + 1 >= cachedBlocksMin) seen.add(name)
      }
      for (const oldest of seen) {
        if (seen.size <= prefixesMax) break
        seen.delete(oldest)
      }
      return known >= cachedBlocksMin ? known * blockTokens : 0
    },
  }
}
