import type { Unit } from './usage.ts'

export type Span = { readonly min: number; readonly max: number }

/** The bounds of a model that takes any size within them, and not only sizes of a list. */
export type FreeSize = {
  /** Both sides are multiples of this. */
  readonly step: number
  readonly sideMin?: number
  readonly sideMax?: number
  /** The most that long side / short side may be. */
  readonly ratioMax?: number
  readonly pixelsMin?: number
  readonly pixelsMax?: number
}

/** Sizes are spelled `WxH` here, however the client and the vendor spell them. */
export type ImageLimits = {
  /** If this is empty and `free` is absent, the vendor takes no size. */
  readonly sizes: readonly string[]
  readonly sizeDefault?: string
  readonly free?: FreeSize
  /** Empty: the vendor offers no choice of quality. */
  readonly qualities: readonly string[]
  readonly countMax: number
  /** The vendor gives bytes, never links, and refuses a `response_format`; it can stream previews of its images. */
  readonly alwaysBytes: boolean
  /** The file formats of its images. Absent: not known here, so the vendor decides. */
  readonly formats?: readonly string[]
  /** Reference images beside the prompt, on the generations path. */
  readonly references: Span
  /** Set on models with the capability `edits`: what the edits path takes. */
  readonly edits?: { readonly sizes: readonly string[]; readonly references: Span; readonly mask: boolean }
}

export type EmbeddingLimits = {
  /** The dimensions that are named to a client that asks for others. Empty: the model has one and takes no choice. */
  readonly dimensions: readonly number[]
  /** The vendor also takes every number in this span. */
  readonly dimensionsSpan?: Span
  readonly dimensionsDefault: number
  /** The most tokens of one input. */
  readonly inputTokensMax: number
  /** The most inputs of one upstream call; more are split into several calls. */
  readonly batchMax: number
  /** The most tokens of one upstream call, all inputs together. */
  readonly batchTokensMax?: number
}

export type SpeechLimits = {
  /** Empty: not known here, so the vendor decides. */
  readonly voices: readonly string[]
  readonly voiceDefault?: string
  /** The formats that the vendor itself can make. The gateway makes mp3 from wav. */
  readonly formats: readonly string[]
  /** The format that always comes, whatever the client asked for. */
  readonly onlyFormat?: string
  readonly instructions: boolean
  /** The most characters of one upstream call; longer texts are split. */
  readonly charactersMax: number
}

export type VideoKind = 't2v' | 'i2v' | 'r2v'

/**
 * The form of a model's requests: `wan2.5` and `wan2.6` have a separate field for each kind of media, `wan2.7` and
 * later a list of media, Seedance a list of contents. For all others, clients write a prompt and our own list of media.
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
  /** Some models take several kinds: text, a first image, references. */
  readonly kinds: readonly VideoKind[]
  /** The resolutions that have a price. */
  readonly resolutions: readonly string[]
  readonly resolutionDefault: string
  /** Every length that may be asked for, in whole seconds. */
  readonly durations: readonly number[]
  readonly durationDefault: number
  /** Whether `-1` may be asked: the model then chooses the length, up to the longest. */
  readonly durationFree: boolean
  readonly ratios: readonly string[]
  /** The most reference images. */
  readonly referencesMax: number
  /** The most reference videos; 0 also where their price is unknown. */
  readonly referenceVideosMax: number
  /** The most pieces of reference audio. */
  readonly referenceAudiosMax: number
  /** Seconds of reference videos are charged in addition to those made, so a hold has to cover both. */
  readonly inputSecondsBilled: boolean
  /** The most charged seconds of all reference videos of a request together, where the vendor limits their sum. */
  readonly inputSecondsMax?: number
  /** Where the vendor counts credits: the most that a second can cost at each resolution, for the hold. */
  readonly creditsPerSecond?: Readonly<Record<string, number>>
  /** The model makes cheap drafts, and final videos from them. */
  readonly drafts: boolean
  /** `optional`: a video can be asked for with or without audio, and both have a price. */
  readonly sound: 'always' | 'never' | 'optional'
  /** The task fails with `timeout` after this time. */
  readonly deadlineSeconds: number
}

/** What the rules of a request need to know about its model. */
export type ModelTraits = {
  /** The id that the client asked for. */
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
  /** Values that the model's alias fixes and a client cannot change. */
  readonly pinned?: { readonly dimensions: number }
  /** Whether the model has a price for a unit. A unit without one is refused, never sold at another price. */
  sells(unit: Unit): boolean
  /** Whether the model has a price for an image of this size and quality. */
  sellsImage(size: string | undefined, quality: string | undefined): boolean
  /** Whether the model makes a video of this resolution in this length: not every pair of the two is on sale. */
  sellsVideo(resolution: string, seconds: number): boolean
}
