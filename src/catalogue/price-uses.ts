import type { Capability } from '../capabilities/capability.ts'
import { CatalogueError, type Path } from './error.ts'
import type { WrittenPrices } from './schema.ts'

const tokens = ['chat', 'embeddings', 'images', 'edits', 'speech'] as const
const videos = ['video'] as const

/** What each price can be charged for. `currency` and `markup` are no prices; `perRequest` suits every capability. */
const usesOf = {
  inputPerMillion: tokens,
  cachedInputPerMillion: tokens,
  cacheWritePerMillion: tokens,
  cacheWriteHourPerMillion: tokens,
  outputPerMillion: tokens,
  imageInputPerMillion: tokens,
  imageOutputPerMillion: tokens,
  audioInputPerMillion: tokens,
  audioOutputPerMillion: tokens,
  tiers: tokens,
  thinkingOutputPerMillion: ['chat'],
  webSearchPerThousand: ['chat'],
  perMillionCharacters: ['speech'],
  perImage: ['images', 'edits'],
  perSecond: videos,
  perVideo: videos,
  perMillionVideoTokens: videos,
  perMillionVideoTokensWithInput: videos,
} as const satisfies Record<Exclude<keyof WrittenPrices, 'currency' | 'markup' | 'perRequest'>, readonly Capability[]>

/** Refuses a price that would never be charged: it was meant for another model, or for another key. */
export function checkUses(prices: WrittenPrices, capabilities: readonly Capability[], path: Path): void {
  for (const [key, uses] of Object.entries<readonly Capability[]>(usesOf)) {
    if (!(key in prices) || uses.some((use) => capabilities.includes(use))) continue
    const does = [...new Set(capabilities)].join(', ')
    throw new CatalogueError([...path, key], `a price for ${uses.join(', ')}, but this model does ${does}`)
  }
}
