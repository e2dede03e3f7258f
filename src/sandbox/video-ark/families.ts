/** Seedance's generations, recognised within the id, whatever its prefix and suffix. */
export type Generation = '1.0' | '1.5' | '2.0' | '2.5'

export type Family = {
  readonly generation: Generation
  readonly resolutions: readonly string[]
  readonly seconds: readonly [least: number, most: number]
  /** How many images, videos and audio files a request may refer to; absent if it may not refer to any. */
  readonly references?: { readonly images: number; readonly videos: number; readonly audios: number }
  readonly hasAudio: boolean
  readonly isFlexible: boolean
  readonly makesDrafts: boolean
}

const upTo1080 = ['480p', '720p', '1080p'] as const

const families = {
  '1.0': { resolutions: upTo1080, seconds: [2, 12], hasAudio: false, isFlexible: true, makesDrafts: false },
  '1.5': { resolutions: upTo1080, seconds: [4, 12], hasAudio: true, isFlexible: true, makesDrafts: true },
  '2.0': {
    resolutions: [...upTo1080, '4k'],
    seconds: [4, 15],
    references: { images: 9, videos: 3, audios: 3 },
    hasAudio: true,
    isFlexible: false,
    makesDrafts: false,
  },
  '2.5': {
    resolutions: upTo1080,
    seconds: [4, 30],
    references: { images: 30, videos: 10, audios: 10 },
    hasAudio: true,
    isFlexible: false,
    makesDrafts: true,
  },
} as const satisfies Record<Generation, Omit<Family, 'generation'>>

export function familyOf(model: string): Family | undefined {
  const [, major, minor, kind] = /seedance-(\d)-(\d)(-fast|-mini)?/.exec(model) ?? []
  const generation = (['1.0', '1.5', '2.0', '2.5'] as const).find((known) => known === `${major}.${minor}`)
  if (generation === undefined) return undefined
  const family: Family = { generation, ...families[generation] }
  return kind !== undefined && generation === '2.0' ? { ...family, resolutions: ['480p', '720p'] } : family
}

export const ratios = ['16:9', '4:3', '1:1', '3:4', '9:16', '21:9', 'adaptive'] as const

type Size = readonly [width: number, height: number]

const sizes: Readonly<Record<string, Readonly<Record<string, Size>>>> = {
  '480p': { '16:9': [864, 496], '4:3': [752, 560], '1:1': [640, 640], '21:9': [992, 432] },
  '720p': { '16:9': [1280, 720], '4:3': [1112, 834], '1:1': [960, 960], '21:9': [1470, 630] },
  '1080p': { '16:9': [1920, 1080], '4:3': [1664, 1248], '1:1': [1440, 1440], '21:9': [2206, 946] },
  '4k': { '16:9': [3840, 2160], '4:3': [3326, 2494], '1:1': [2880, 2880], '21:9': [4398, 1886] },
}

/** Portrait sizes are landscape sizes with their sides swapped. */
export function sizeOf({ generation }: Family, resolution: string, ratio: string): Size {
  if (generation === '2.5' && resolution === '480p' && ratio === '16:9') return [854, 480]
  if (generation === '2.5' && resolution === '480p' && ratio === '9:16') return [480, 854]
  const table = sizes[resolution] ?? {}
  const turned = ratio === '9:16' ? '16:9' : ratio === '3:4' ? '4:3' : undefined
  const [width, height] = table[turned ?? ratio] ?? [1280, 720]
  return turned === undefined ? [width, height] : [height, width]
}
