import type { EmbeddingLimits, ImageLimits, SpeechLimits, VideoLimits } from '../capabilities/limits.ts'
import type { FamilyModel } from './schema.ts'

type Written<Group extends 'images' | 'embeddings' | 'speech' | 'video'> = NonNullable<FamilyModel[Group]>

/** Standard clients ask for up to ten images; models with a lower limit have it in their file. */
const imagesMax = 10
/** Batches beyond a vendor's limit are split, so a small number is only slower; 2048 would be the largest in use. */
const batchMax = 32
/** A task that has not ended after a day is lost: vendors forget their tasks after 24 hours. */
const deadlineSeconds = 86_400

/** The defaults of the edits path: the specification's sizes, and as many files as the common protocol takes. */
const editSizes = ['1024x1024', '1024x1536', '1536x1024', '256x256', '512x512']
const editReferences = { min: 1, max: 16 }

export function imageLimits(written: Written<'images'>, doesEdits: boolean): ImageLimits {
  const { sizes = [], qualities = [], countMax = imagesMax, references = { min: 0, max: 0 } } = written
  const { alwaysBytes = false } = written
  const edits = { sizes: sizes.length > 0 ? sizes : editSizes, references: editReferences, mask: true }
  return { ...(doesEdits && { edits }), ...written, sizes, qualities, countMax, references, alwaysBytes }
}

/** The pinned dimensions of an alias are the only ones it has. */
export function embeddingLimits(
  written: Written<'embeddings'>,
  contextTokens: number,
  pinned: number | undefined,
): EmbeddingLimits {
  const limits = {
    ...written,
    dimensions: written.dimensions ?? [],
    dimensionsDefault: written.dimensionsDefault ?? written.dimensions?.[0] ?? 1024,
    inputTokensMax: written.inputTokensMax ?? contextTokens,
    batchMax: written.batchMax ?? batchMax,
  }
  if (pinned === undefined) return limits
  const { dimensionsSpan: _, ...rest } = limits
  return { ...rest, dimensions: [pinned], dimensionsDefault: pinned }
}

export function speechLimits(written: Written<'speech'>): SpeechLimits {
  // 4096 characters and wav are what the common protocol and nearly every vendor take.
  const { voices = [], formats = ['wav'], instructions = false, charactersMax = 4096 } = written
  return { ...written, voices, formats, instructions, charactersMax }
}

/** The defaults are the specification's: 5 seconds of 720p at 16:9. */
export function videoLimits(written: Written<'video'>): VideoLimits {
  const durations = readDurations(written.durations ?? [5])
  const resolutions = written.resolutions ?? ['720p']
  return {
    form: written.form ?? 'media',
    kinds: written.kinds ?? ['t2v'],
    resolutions,
    resolutionDefault: written.resolutionDefault ?? preferred(resolutions, '720p'),
    durations,
    durationDefault: written.durationDefault ?? preferred(durations, 5),
    durationFree: written.durationFree ?? false,
    ratios: written.ratios ?? ['16:9'],
    referencesMax: written.referencesMax ?? 0,
    referenceVideosMax: written.referenceVideosMax ?? 0,
    referenceAudiosMax: written.referenceAudiosMax ?? 0,
    inputSecondsBilled: written.inputSecondsBilled ?? false,
    ...(written.inputSecondsMax !== undefined && { inputSecondsMax: written.inputSecondsMax }),
    ...(written.creditsPerSecond !== undefined && { creditsPerSecond: written.creditsPerSecond }),
    drafts: written.drafts ?? false,
    sound: written.sound ?? 'never',
    deadlineSeconds: written.deadlineSeconds ?? deadlineSeconds,
  }
}

function readDurations(written: string | readonly number[]): readonly number[] {
  if (typeof written !== 'string') return written
  const [from = 0, to = 0] = written.split('..').map(Number)
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, step) => from + step)
}

function preferred<T>(choices: readonly T[], wish: T): T {
  return choices.includes(wish) ? wish : (choices[0] ?? wish)
}
