import type { Capability } from '../capabilities/capability.ts'
import type { EmbeddingLimits, ImageLimits, SpeechLimits, VideoLimits } from '../capabilities/limits.ts'
import type { ModelRule } from '../capabilities/model-rules.ts'
import type { PriceList } from '../capabilities/usage.ts'
import type { PriceSpan } from './dated-prices.ts'

/** Where a model can be had: on every channel of a vendor, or on one channel. */
export type Offer = { readonly upstreamModel: string } & (
  | { readonly vendor: string; readonly channel?: never }
  | { readonly channel: string; readonly vendor?: never }
)

/** Whether an offer includes this channel, which is one of this vendor. */
export function isOfferedAt({ channel, vendor }: Offer, channelId: string, vendorId: string): boolean {
  return channel === channelId || vendor === vendorId
}

/** How far a price can be trusted: in a named price list, quoted by others, or from general knowledge. */
export const confidences = ['listed', 'quoted', 'unverified'] as const
export type Confidence = (typeof confidences)[number]

export type Model = {
  readonly id: string
  readonly capabilities: readonly Capability[]
  /** Whose model it is, shown as `owned_by`. */
  readonly vendor: string
  /** Unix seconds: the release where known, else the price list's date. */
  readonly created: number
  readonly offers: readonly Offer[]
  readonly contextTokens: number
  /** `contextTokens` is a default that only serves to work out holds, so it is not shown. */
  readonly contextAssumed?: true
  readonly outputTokensMax: number
  /** The largest `n`. */
  readonly choicesMax: number
  /** Whether it is of the reasoning class, whose sampling fields have no effect. Not every model that thinks is. */
  readonly reasoning: boolean
  /** The values of `reasoning_effort`. Empty: the model takes none, or they are not known and the vendor decides. */
  readonly efforts: readonly string[]
  /** Set where the file has an empty list of efforts: the model does not reason, and its vendor refuses any value. */
  readonly refusesEffort?: true
  /** What it refuses although its protocol allows it. */
  readonly rules: readonly ModelRule[]
  /** What the customer pays: exchange and markup applied. */
  readonly prices: PriceList
  /** What the vendor charges: exchange applied, no markup. */
  readonly costs: PriceList
  readonly confidence: Confidence
  readonly source: string
  /** Set where its vendor has announced that it ends: the first day without it, and who says so. It stays on sale. */
  readonly end?: { readonly date: string; readonly source: string }
  /** The id of the model behind an alias. An answer still shows the id that the client asked for. */
  readonly aliasOf?: string
  /** Values that an alias sets for the client, and that the client cannot change. */
  readonly pinned?: { readonly dimensions: number }
  readonly images?: ImageLimits
  readonly embeddings?: EmbeddingLimits
  readonly speech?: SpeechLimits
  readonly video?: VideoLimits
}

/** A model in the files that is not for sale, with the reason, for the operator's list. */
export type Unsold = { readonly id: string; readonly why: string }

/** The models for sale, by id, and the ids of models that only lack a price, so that a refusal can say so. */
export type ModelsOnOffer = ReadonlyMap<string, Model> & { readonly unpriced?: ReadonlySet<string> }

const usualExample = 'gpt-4o-mini'

/** The model of every guide's examples if it is on offer, otherwise the first model that can chat. */
export function exampleOf(models: ModelsOnOffer): string | undefined {
  if (models.has(usualExample)) return usualExample
  for (const [id, model] of models) if (model.capabilities.includes('chat')) return id
  return undefined
}

/** One immutable snapshot. Aliases are entries of their own. */
export type Catalogue = {
  readonly models: ReadonlyMap<string, Model>
  readonly unsold: readonly Unsold[]
  /** The ids of those among the unsold that only lack a price. */
  readonly unpriced: readonly string[]
  /** Before and after it, other prices apply, and the snapshot is out of date. */
  readonly priceSpan: PriceSpan
}
