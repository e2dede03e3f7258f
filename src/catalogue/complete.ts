import type { Capability } from '../capabilities/capability.ts'
import type { PriceList } from '../capabilities/usage.ts'
import type { ImageLimits, VideoLimits } from '../capabilities/limits.ts'
import type { WrittenPrices } from './schema.ts'

type Priced = { readonly images?: ImageLimits; readonly video?: VideoLimits }

type Check = (list: PriceList, limits: Priced) => string | undefined

/** With a price for the tokens of images, a model is sold by the token, whatever other prices it has. */
const images: Check = (list, limits) => {
  const { imageOutput, input } = list.rates
  if (imageOutput === undefined) return unpricedImage(list, limits.images)
  return input === undefined ? 'inputPerMillion' : undefined
}

const checks = {
  chat: ({ rates: { input, output } }) => {
    if (input !== undefined) return output === undefined ? 'outputPerMillion' : undefined
    return output === undefined ? 'inputPerMillion and outputPerMillion' : 'inputPerMillion'
  },
  embeddings: ({ rates: { input } }) => (input === undefined ? 'inputPerMillion' : undefined),
  speech: ({ rates: { character, input, output, audioOutput } }) =>
    character === undefined && (input === undefined || (audioOutput ?? output) === undefined)
      ? 'perMillionCharacters, or token prices'
      : undefined,
  images,
  edits: images,
  video: ({ perSecond, perVideo, perVideoToken }, limits) => {
    if (Object.keys(perVideoToken).length > 0) {
      return unpricedVideo(perVideoToken, 'perMillionVideoTokens', limits.video) ?? unheld(limits.video)
    }
    return Object.keys(perVideo).length > 0
      ? unpricedWholeVideo(perVideo, limits.video)
      : unpricedVideo(perSecond, 'perSecond', limits.video)
  },
} as const satisfies Record<Capability, Check>

/** The prices that a list lacks for this capability to be sold; undefined if every answer could be charged. */
export function missingPrices(capability: Capability, list: PriceList, limits: Priced): string | undefined {
  return checks[capability](list, limits)
}

function unpricedImage({ perImage }: PriceList, limits: ImageLimits | undefined): string | undefined {
  if (perImage['default'] !== undefined) return undefined
  const sizes = [...(limits?.sizes ?? []), ...(limits?.edits?.sizes ?? [])].filter((size) => size !== 'auto')
  if (sizes.length === 0 || limits?.free !== undefined) return 'perImage'
  const qualities = limits?.qualities ?? []
  for (const size of sizes) {
    if (perImage[size] !== undefined) continue
    const missing = qualities.length === 0 ? size : qualities.find((quality) => !(`${size}/${quality}` in perImage))
    if (missing !== undefined) return `perImage for ${size}`
  }
  return undefined
}

type Amounts = PriceList['perSecond']

function unpricedVideo(amounts: Amounts, name: string, limits: VideoLimits | undefined): string | undefined {
  // Either one amount or a pair; of a pair both are there, with audio and without.
  const isPriced = (key: string) => key in amounts || `${key}/sound` in amounts
  if (isPriced('default')) return undefined
  const missing = (limits?.resolutions ?? ['720p']).find((resolution) => !isPriced(resolution))
  return missing === undefined ? undefined : `${name} for ${missing}`
}

/** A hold needs a count in advance: Seedance's tokens follow from the size, but credits need a number per second. */
function unheld(limits: VideoLimits | undefined): string | undefined {
  if (limits === undefined || limits.form === 'seedance') return undefined
  const missing = limits.resolutions.find((resolution) => limits.creditsPerSecond?.[resolution] === undefined)
  return missing === undefined ? undefined : `video.creditsPerSecond for ${missing}`
}

/**
 * Single combinations without a price are refused request by request. But a request may leave out the resolution or the
 * length, so every value must have a price together with the other field's default.
 */
function unpricedWholeVideo(amounts: Amounts, limits: VideoLimits | undefined): string | undefined {
  if (limits === undefined) return undefined
  const { resolutions, resolutionDefault, durations, durationDefault } = limits
  const videos = [
    ...resolutions.map((resolution) => `${resolution}/${durationDefault}s`),
    ...durations.map((seconds) => `${resolutionDefault}/${seconds}s`),
  ]
  const missing = videos.find((video) => amounts[video] === undefined)
  return missing === undefined ? undefined : `perVideo for ${missing}`
}

/**
 * Play-money prices, about the middle of each market, for models without a known price. They are used in sandbox mode
 * only.
 */
export const sandboxPrices = {
  chat: {
    inputPerMillion: '1',
    cachedInputPerMillion: '0.1',
    cacheWritePerMillion: '1.25',
    cacheWriteHourPerMillion: '2',
    outputPerMillion: '4',
    audioInputPerMillion: '1',
    audioOutputPerMillion: '4',
    webSearchPerThousand: '10',
  },
  embeddings: { inputPerMillion: '0.1' },
  images: { perImage: '0.04' },
  edits: { perImage: '0.04' },
  speech: { perMillionCharacters: '15' },
  video: { perSecond: '0.1' },
} as const satisfies Record<Capability, WrittenPrices>
