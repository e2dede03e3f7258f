import type { Capability } from '../capabilities/capability.ts'
import type { PriceList } from '../capabilities/usage.ts'

/** Where a model can be had: at every channel of a vendor, or at one channel. Exactly one of the two is set. */
export type Offer = { readonly vendor?: string; readonly channel?: string; readonly upstreamModel: string }

/** How far a price can be trusted: in a named price list, quoted by others, or from general knowledge. */
export const confidences = ['listed', 'quoted', 'unverified'] as const
export type Confidence = (typeof confidences)[number]

export type Span = { readonly min: number; readonly max: number }

/** A model that takes any size within these bounds, not only those of a list. */
export type FreeSize = {
  /** Both sides are multiples of this. */
  readonly step: number
  readonly sideMin?: number
  readonly sideMax?: number
  /** Long side to short side at most this. */
  readonly ratioMax?: number
  readonly pixelsMin?: number
  readonly pixelsMax?: number
}

/** Sizes are spelled `WxH` here, whatever the client's form and the vendor spell. */
export type ImageLimits = {
  /** Empty and no `free`: the vendor takes no size. */
  readonly sizes: readonly string[]
  readonly sizeDefault?: string
  readonly free?: FreeSize
  /** Empty: the vendor has no such choice. */
  readonly qualities: readonly string[]
  readonly countMax: number
  /** Reference images beside the prompt, on the generations path. */
  readonly references: Span
  /** Set on models with the capability `edits`: what the edits path takes. */
  readonly edits?: { readonly sizes: readonly string[]; readonly references: Span; readonly mask: boolean }
}

export type EmbeddingLimits = {
  /** The dimensions to name to a client that asks for others; empty: it has one and takes no choice. */
  readonly dimensions: readonly number[]
  /** The vendor also takes every number in between. */
  readonly dimensionsSpan?: Span
  readonly dimensionsDefault: number
  /** Tokens of one input. */
  readonly inputTokensMax: number
  /** Inputs of one upstream call; more are split. */
  readonly batchMax: number
  /** Tokens of one upstream call, all inputs together. */
  readonly batchTokensMax?: number
}

export type SpeechLimits = {
  /** Empty: not known here, the vendor judges. */
  readonly voices: readonly string[]
  readonly voiceDefault?: string
  /** What the vendor itself can make. The gateway makes mp3 from wav. */
  readonly formats: readonly string[]
  readonly instructions: boolean
  /** Characters of one upstream call; longer texts are split. */
  readonly charactersMax: number
}

export type VideoKind = 't2v' | 'i2v' | 'r2v'

export type VideoLimits = {
  /** Some models do several: text, a first image, references. */
  readonly kinds: readonly VideoKind[]
  /** Those that have a price. */
  readonly resolutions: readonly string[]
  readonly resolutionDefault: string
  /** Whole seconds, each one that may be asked. */
  readonly durations: readonly number[]
  readonly durationDefault: number
  /** `-1`, the model chooses the length up to the longest. */
  readonly durationFree: boolean
  readonly ratios: readonly string[]
  /** Reference images at most. */
  readonly referencesMax: number
  /** Reference videos at most; 0 also where their price is unknown. */
  readonly referenceVideosMax: number
  /** Seconds of reference videos are charged beside those made, so a hold has to cover both. */
  readonly inputSecondsBilled: boolean
  /** `optional` where sound can be asked for or not and both have a price. */
  readonly sound: 'always' | 'never' | 'optional'
  /** After so many seconds the task is failed with `timeout`. */
  readonly deadlineSeconds: number
}

export type Model = {
  readonly id: string
  readonly capabilities: readonly Capability[]
  /** Whose model it is, shown as `owned_by`. */
  readonly vendor: string
  /** Unix seconds: the release where known, else the price list's date. */
  readonly created: number
  readonly offers: readonly Offer[]
  readonly contextTokens: number
  readonly outputTokensMax: number
  /** `n` at most. */
  readonly choicesMax: number
  /** The reasoning class, whose sampling fields have no effect; not every model that thinks. */
  readonly reasoning: boolean
  /** Values of `reasoning_effort`. Empty: it takes none or nothing is known, so the vendor judges. */
  readonly efforts: readonly string[]
  /** What the customer pays: exchange and markup applied. */
  readonly prices: PriceList
  /** What the vendor charges: exchange applied, no markup. */
  readonly costs: PriceList
  readonly confidence: Confidence
  readonly source: string
  /** No longer at its vendor; in the catalogue in sandbox mode only. */
  readonly retired: boolean
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

/** One immutable snapshot. Aliases are entries of their own. */
export type Catalogue = {
  readonly version: string
  readonly models: ReadonlyMap<string, Model>
  readonly unsold: readonly Unsold[]
}
