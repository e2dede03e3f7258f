import type { Unit } from './usage.ts'

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
  /** The vendor gives bytes, never links, and refuses to be asked for either; it can show pictures while it makes them. */
  readonly alwaysBytes: boolean
  /** What its pictures can be written as; absent: not known here, the vendor judges. */
  readonly formats?: readonly string[]
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
  /** What comes whatever was asked for. */
  readonly onlyFormat?: string
  readonly instructions: boolean
  /** Characters of one upstream call; longer texts are split. */
  readonly charactersMax: number
}

export type VideoKind = 't2v' | 'i2v' | 'r2v'

/**
 * The fields that a model's requests are written in: `wan2.5` and `wan2.6` have a field for each thing they take, `wan2.7`
 * and later have a list of media, Seedance has a list of contents; the rest take a prompt and a list of media from us.
 */
export const videoForms = [
  'wan2.5',
  'wan2.6',
  'wan2.7',
  'wan3.0',
  'seedance',
  'veo',
  'kling',
  'runway',
  'sora',
  'media',
] as const
export type VideoForm = (typeof videoForms)[number]

export type VideoLimits = {
  readonly form: VideoForm
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
  /** Pieces of reference sound at most. */
  readonly referenceAudiosMax: number
  /** Seconds of reference videos are charged beside those made, so a hold has to cover both. */
  readonly inputSecondsBilled: boolean
  /** Of all reference videos of a request together, as they are charged. */
  readonly inputSecondsMax: number
  /** By resolution, where the vendor counts credits: the most that a second can cost, for the hold. */
  readonly creditsPerSecond?: Readonly<Record<string, number>>
  /** It makes cheap drafts, and finals of them. */
  readonly drafts: boolean
  /** `optional` where sound can be asked for or not and both have a price. */
  readonly sound: 'always' | 'never' | 'optional'
  /** After so many seconds the task is failed with `timeout`. */
  readonly deadlineSeconds: number
}

/** What the rules of a request need to know of its model. */
export type ModelTraits = {
  /** As the client asked for it. */
  readonly id: string
  readonly contextTokens: number
  readonly outputTokensMax: number
  readonly choicesMax: number
  readonly reasoning: boolean
  readonly efforts: readonly string[]
  readonly refusesEffort?: true
  readonly images?: ImageLimits
  readonly embeddings?: EmbeddingLimits
  readonly speech?: SpeechLimits
  readonly video?: VideoLimits
  /** Values that a client cannot change. */
  readonly pinned?: { readonly dimensions: number }
  /** Whether the model has a price for a unit: what has none is refused, never sold at another price. */
  sells(unit: Unit): boolean
  /** Whether it has a price for a picture of this size and quality. */
  sellsImage(size: string | undefined, quality: string | undefined): boolean
  /** Whether a film of its resolutions may also have this length of its durations. */
  sellsVideo(resolution: string, seconds: number): boolean
}
