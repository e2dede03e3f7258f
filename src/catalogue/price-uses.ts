import type { Capability } from '../capabilities/capability.ts'
import { CatalogueError, type Path } from './error.ts'
import type { PriceLayer } from './prices.ts'
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

type Sold = { readonly capabilities: readonly Capability[]; readonly layers: readonly PriceLayer[] }

/** Refuses a price that would never be charged. It is enough if one of the models that it is written for has a use. */
export function checkPrices(prices: WrittenPrices, models: readonly Sold[], path: Path): void {
  checkUses(
    prices,
    models.flatMap(({ capabilities }) => capabilities),
    path,
  )
  checkCharged(prices, models, path)
}

/** Refuses a price that was meant for another model, or for another key. */
function checkUses(prices: WrittenPrices, capabilities: readonly Capability[], path: Path): void {
  for (const [key, uses] of Object.entries<readonly Capability[]>(usesOf)) {
    if (!(key in prices) || uses.some((use) => capabilities.includes(use))) continue
    const does = [...new Set(capabilities)].join(', ')
    throw new CatalogueError([...path, key], `a price for ${uses.join(', ')}, but this model does ${does}`)
  }
}

type Key = keyof typeof usesOf
type Way = { readonly of: readonly Capability[]; readonly by: Key; readonly never: readonly Key[] }

/** What is charged for a model that has prices of several kinds: once it has `by`, it is never one of `never`. */
const ways: readonly Way[] = [
  { of: ['images', 'edits'], by: 'imageOutputPerMillion', never: ['perImage'] },
  { of: ['video'], by: 'perMillionVideoTokens', never: ['perSecond', 'perVideo'] },
  {
    of: ['speech'],
    by: 'perMillionCharacters',
    never: ['inputPerMillion', 'outputPerMillion', 'audioOutputPerMillion'],
  },
]

/** Refuses a price beside which another is charged. */
function checkCharged(prices: WrittenPrices, models: readonly Sold[], path: Path): void {
  for (const { of, by, never } of ways) {
    const key = never.find((name) => prices[name] !== undefined)
    if (key === undefined) continue
    const uses: readonly Capability[] = usesOf[key]
    const isCharged = ({ capabilities, layers }: Sold) =>
      capabilities.some((capability) => uses.includes(capability) && !of.includes(capability)) ||
      layers.every(({ written }) => written[by] === undefined)
    const concerned = models.filter(({ capabilities }) => capabilities.some((capability) => uses.includes(capability)))
    if (concerned.some(isCharged)) continue
    throw new CatalogueError([...path, key], `would never be charged: this model is sold by ${by}`)
  }
}
