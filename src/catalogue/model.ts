import type { Capability } from '../capabilities/capability.ts'
import type { EmbeddingLimits, ImageLimits, SpeechLimits, VideoLimits } from '../capabilities/limits.ts'
import type { PriceList } from '../capabilities/usage.ts'

/** Where a model can be had: at every channel of a vendor, or at one channel. Exactly one of the two is set. */
export type Offer = { readonly vendor?: string; readonly channel?: string; readonly upstreamModel: string }

/** Whether it can be had at this channel of this vendor. */
export function isHadAt({ channel, vendor }: Offer, channelId: string, vendorId: string): boolean {
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
  /** Nobody wrote it down: it is only what holds reckon with. */
  readonly contextAssumed?: true
  readonly outputTokensMax: number
  /** `n` at most. */
  readonly choicesMax: number
  /** The reasoning class, whose sampling fields have no effect; not every model that thinks. */
  readonly reasoning: boolean
  /** Values of `reasoning_effort`. Empty: it takes none, or nothing is known and the vendor judges. */
  readonly efforts: readonly string[]
  /** It does not reason, and its vendor refuses the field whatever it says: the file lists no effort, and says so. */
  readonly refusesEffort?: true
  /** What the customer pays: exchange and markup applied. */
  readonly prices: PriceList
  /** What the vendor charges: exchange applied, no markup. */
  readonly costs: PriceList
  readonly confidence: Confidence
  readonly source: string
  /** The id this one stands for. An answer still shows the id that the client asked by. */
  readonly aliasOf?: string
  /** Values that an alias sets where the client does not, and that a client cannot change. */
  readonly pinned?: { readonly dimensions: number }
  readonly images?: ImageLimits
  readonly embeddings?: EmbeddingLimits
  readonly speech?: SpeechLimits
  readonly video?: VideoLimits
}

/** A model that the files know and nobody can buy, with the reason, for the operator's list. */
export type Unsold = { readonly id: string; readonly why: string }

const noPrice = 'no price: '

export function unpriced(id: string, lacking: string): Unsold {
  return { id, why: noPrice + lacking }
}

/** What can be had, by id. It also knows what only waits for the operator to price it, so that a refusal can say so. */
export type ModelsOnOffer = ReadonlyMap<string, Model> & { readonly unpriced?: ReadonlySet<string> }

export function onOffer(models: Map<string, Model>, unsold: readonly Unsold[]): ModelsOnOffer {
  const waiting = unsold.filter(({ why }) => why.startsWith(noPrice))
  return Object.assign(models, { unpriced: new Set(waiting.map(({ id }) => id)) })
}

const usualExample = 'gpt-4o-mini'

/** The example of every guide where it is on offer, else the first model that can chat. */
export function exampleOf(models: ModelsOnOffer): string | undefined {
  if (models.has(usualExample)) return usualExample
  for (const [id, model] of models) if (model.capabilities.includes('chat')) return id
  return undefined
}

/** One immutable snapshot. Aliases are entries of their own. */
export type Catalogue = {
  readonly models: ReadonlyMap<string, Model>
  readonly unsold: readonly Unsold[]
}
