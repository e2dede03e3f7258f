import type { Pico } from '../base/money.ts'

/** Tokens which a model reads or writes, at whatever price. */
const tokenUnits = [
  'input',
  'cachedInput',
  'cacheWrite',
  'cacheWriteHour',
  'imageInput',
  'audioInput',
  'output',
  'imageOutput',
  'audioOutput',
] as const

/**
 * What can be counted and priced. The parts never overlap: cached and written input are not inside `input`, and
 * whoever reads a vendor's overlapping numbers takes them apart. Reasoning is inside `output`, as every vendor bills it.
 */
export const units = [...tokenUnits, 'character', 'videoToken', 'webSearch', 'request'] as const
export type Unit = (typeof units)[number]

export type Counts = { readonly [U in Unit]?: number }

/** Pictures of one size and quality, priced by the piece. */
export type ImagesUsed = { readonly count: number; readonly size?: string; readonly quality?: string }

/** Moving pictures, priced by the second, as a whole, or by the tokens or credits that stand beside them in `videoToken`. */
export type VideoUsed = {
  /** As billed: seconds of films that were brought count where the vendor charges them. */
  readonly seconds: number
  readonly resolution: string
  readonly sound?: boolean
  /** The client brought films of its own, which changes the price of a token. */
  readonly hasInputVideo?: boolean
  /** What `videoToken` counts are the vendor's credits. */
  readonly inCredits?: true
}

/** What one answer used. `reasoning` is part of `output` and has no price; it may decide which one that has. */
export type Usage = Counts & {
  readonly reasoning?: number
  readonly images?: ImagesUsed
  readonly video?: VideoUsed
}

/** All tokens of a usage, for limits on them. */
export function tokensOf(usage: Usage): number {
  return tokenUnits.reduce((sum, unit) => sum + (usage[unit] ?? 0), 0)
}

/** Where the numbers of a charge come from. */
export type Basis = 'vendor' | 'estimated'

/** What one call used, and who counted it. */
export type Counted = {
  readonly usage: Usage
  readonly basis: Basis
  /** Where the vendor counts otherwise than customers are charged: a Han character as two, say. */
  readonly vendorUsage?: Usage
}

/** What several calls for one request used together; pictures and films are never made by several. */
export function sumOf(parts: readonly Usage[]): Usage {
  const [first] = parts
  if (first !== undefined && parts.length === 1) return first
  const sum: { [U in Unit | 'reasoning']?: number } = {}
  for (const part of parts) {
    for (const unit of [...units, 'reasoning'] as const) {
      const quantity = part[unit]
      if (quantity !== undefined) sum[unit] = (sum[unit] ?? 0) + quantity
    }
  }
  return sum
}

/** What may have a rate: every unit, and output that was thought over, where its vendor sells that dearer. */
export const rated = [...units, 'thinkingOutput'] as const
export type Rated = (typeof rated)[number]

/** Pico-dollars for one of each. A unit without a rate cannot be sold. */
export type Rates = { readonly [R in Rated]?: Pico }

/** The whole request is charged at the tier that its input length reaches, not marginally. */
export type Tier = { readonly aboveInputTokens: number; readonly rates: Rates }

/** One price list of one model, immutable and named by its content, so that a hold can pin it. */
export type PriceList = {
  readonly version: string
  readonly rates: Rates
  /** Ascending by `aboveInputTokens`. */
  readonly tiers: readonly Tier[]
  /** Pico-dollars an image: by `size/quality`, `size`, or `default`. */
  readonly perImage: Readonly<Record<string, Pico>>
  /** Pico-dollars a second of video: by `resolution/sound`, `resolution/silent`, `resolution`, or `default`. */
  readonly perSecond: Readonly<Record<string, Pico>>
  /** Pico-dollars a whole film, where the vendor sells those: by `resolution/10s`. A length that is not here has no price. */
  readonly perVideo: Readonly<Record<string, Pico>>
  /** Pico-dollars a token of video, where the vendor counts those: the same keys, each also with `/input` behind it. */
  readonly perVideoToken: Readonly<Record<string, Pico>>
}
