import type { Pico } from '../base/money.ts'

/** Tokens that a model reads or writes, whatever their price. */
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
 * What can be counted and priced. The units never overlap: cached and cache-written input are not part of `input`, and
 * codecs take a vendor's overlapping numbers apart. Reasoning is part of `output`, as every vendor bills it.
 */
export const units = [...tokenUnits, 'character', 'videoToken', 'webSearch', 'request'] as const
export type Unit = (typeof units)[number]

export type Counts = { readonly [U in Unit]?: number }

/** Images of one size and quality, priced by the image. */
export type ImagesUsed = { readonly count: number; readonly size?: string; readonly quality?: string }

/** A video, priced by the second, as a whole, or by its tokens or credits, whose number is in `videoToken`. */
export type VideoUsed = {
  /** Seconds as billed, perhaps with a fraction: the client's own videos count where the vendor charges for them. */
  readonly seconds: number
  readonly resolution: string
  readonly sound?: boolean
  /** The client gave videos of its own, which changes the price of a token. */
  readonly hasInputVideo?: boolean
  /** `videoToken` counts the vendor's credits. */
  readonly inCredits?: true
}

/** What one answer used. `reasoning` is part of `output` and has no price itself, but may decide that of `output`. */
export type Usage = Counts & {
  readonly reasoning?: number
  readonly images?: ImagesUsed
  readonly video?: VideoUsed
}

/** All tokens of a usage, for the limit on a key's tokens. */
export function tokensOf(usage: Usage): number {
  return tokenUnits.reduce((sum, unit) => sum + (usage[unit] ?? 0), 0)
}

/** A chat's usage in which both sides are counted. */
export type WholeUsage = Usage & { readonly input: number; readonly output: number }

/** Whether a vendor counted both what a chat model read and what it wrote; a broken server may leave out either. */
export function isWhole(usage: Usage | undefined): usage is WholeUsage {
  return usage?.input !== undefined && usage.output !== undefined
}

/**
 * What an answer has used so far, after its vendor has counted once more. The counts are totals: one of zeros after
 * another that was not, with which some relays end a stream, is no count.
 */
export function recounted(known: Usage | undefined, counted: Usage): Usage {
  return known !== undefined && tokensOf(known) > 0 && tokensOf(counted) === 0 ? known : counted
}

/** Where the numbers of a charge come from. */
export type Basis = 'vendor' | 'estimated'

/** What one call used, and whether the vendor counted it. */
export type Counted = {
  readonly usage: Usage
  readonly basis: Basis
  /** Set where the vendor counts differently from what customers are charged: a Han character as two, for example. */
  readonly vendorUsage?: Usage
}

/** Sums what several calls for one request used; images and videos are left out, because one call makes them. */
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

/** What may have a rate: every unit, and output after reasoning, for vendors that charge more for it. */
export const rated = [...units, 'thinkingOutput'] as const
export type Rated = (typeof rated)[number]

/** Pico-dollars per unit. A unit without a rate cannot be sold. */
export type Rates = { readonly [R in Rated]?: Pico }

/** The whole request is charged at the tier that its input length reaches, not marginally. */
export type Tier = { readonly aboveInputTokens: number; readonly rates: Rates }

/** One price list of one model, immutable and versioned by its content, so that a hold can pin it. */
export type PriceList = {
  readonly version: string
  readonly rates: Rates
  /** Ascending by `aboveInputTokens`. */
  readonly tiers: readonly Tier[]
  /** Pico-dollars per image: by `size/quality`, `size`, or `default`. */
  readonly perImage: Readonly<Record<string, Pico>>
  /** Pico-dollars per second of video: by `resolution/sound`, `resolution/silent`, `resolution`, or `default`. */
  readonly perSecond: Readonly<Record<string, Pico>>
  /** Pico-dollars per whole video, where the vendor sells those: by `resolution/10s`. Other lengths have no price. */
  readonly perVideo: Readonly<Record<string, Pico>>
  /** Pico-dollars per video token, where the vendor counts those: keys as in `perSecond`, each also with `/input`. */
  readonly perVideoToken: Readonly<Record<string, Pico>>
}
