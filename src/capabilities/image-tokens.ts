import type { Bound } from './ask.ts'
import { ratioMax, type ImageSize } from './given-image.ts'
import type { Looks, ImageAskBase } from './images.ts'
import type { ImageLimits } from './limits.ts'
import type { Counted, ImagesUsed, Usage } from './usage.ts'

/** Tokens of a 1024x1024 image by OpenAI's list; other sizes cost in proportion to pixels. The last two are guesses. */
const squareTokens: Readonly<Record<string, number>> = { low: 272, medium: 1056, high: 4160, xhigh: 8320, max: 16_640 }
const squareSize = '1024x1024'
const squarePixels = 1024 * 1024
/** Tokens of each preview, charged beside its image, by the same list. */
const partialImageTokens = 100
/** For models without a choice of quality: most of Google's have at most 2,000 tokens in their largest image. */
const plainTokens = 2_000
/** Nano Banana 2.1 has 3,768 in an image of 4K; besides, these models reason and write some text. */
const plainTokensMax = 6_144
/** The vendors' lists are rounded and change, and a hold that falls short is our loss. */
const margin = 1.25
/** The estimate for a reference image where the vendor did not count it: two of OpenAI's tiles. */
const referenceTokens = 323

type Wish = Pick<ImageAskBase, 'count' | 'size' | 'quality' | 'partialImages' | 'limits'>

/** Output tokens of one image without its previews; what is unknown about it counts as the most expensive. */
function imageTokens(
  { size, quality = '' }: { readonly size?: string | undefined; readonly quality?: string | undefined },
  limits: ImageLimits,
): number {
  if (limits.qualities.length === 0) return plainTokens
  const square = squareTokens[quality] ?? Math.max(...limits.qualities.map((grade) => squareTokens[grade] ?? 0))
  const pixels = pixelsOf(size) ?? Math.max(squarePixels, ...limits.sizes.map((each) => pixelsOf(each) ?? 0))
  return Math.ceil((square * pixels) / squarePixels)
}

function pixelsOf(size = ''): number | undefined {
  const [width = 0, height = 0] = size.split('x').map(Number)
  return width * height > 0 ? width * height : undefined
}

/** The size of a reference image; undefined for a linked one, whose size is unknown. */
export type Reference = ImageSize | undefined

/**
 * The most input tokens that a vendor counts for a reference image. OpenAI: 65, plus 129 for each tile of 512 once the
 * short side is scaled to 512, plus up to 6,240 for high input fidelity to faces; the margin leaves room for a second
 * row of tiles where a side is rounded up. Google: 258 for each tile, whose side is two thirds of the short side.
 */
export function referenceTokensMax(reference: Reference): number {
  const { width, height } = reference ?? { width: ratioMax, height: 1 }
  const ratio = Math.max(width, height) / Math.min(width, height)
  const openai = (65 + 129 * Math.ceil(ratio) + 6_240) * margin
  const google = 258 * 2 * Math.ceil(1.5 * ratio)
  return Math.ceil(Math.max(openai, google))
}

/** The most that images can use. `promptBytes` bounds the prompt's tokens, because no token is shorter than a byte. */
export function boundOf(
  wish: Wish & Pick<ImageAskBase, 'sold'>,
  { promptBytes, references }: { promptBytes: number; references: readonly Reference[] },
): Bound {
  if (wish.sold === 'pieces') return { images: piecesOf(wish, wish.count) }
  const { count, partialImages, limits } = wish
  // A small image may cost as much as the 1024 square: no vendor states that it costs less.
  const made = Math.max(imageTokens(wish, limits), imageTokens({ ...wish, size: squareSize }, limits))
  const dearest = Math.ceil((made + partialImages * partialImageTokens) * margin)
  const each = limits.qualities.length === 0 ? plainTokensMax : dearest
  const looked = references.reduce((sum: number, reference) => sum + referenceTokensMax(reference), 0)
  return { input: promptBytes + looked, output: count * each }
}

function piecesOf({ size, quality }: Pick<Wish, 'size' | 'quality'>, count: number): ImagesUsed {
  return { count, ...(size !== undefined && { size }), ...(quality !== undefined && { quality }) }
}

type Made = {
  readonly made: number
  /** How many images the vendor says that it charges, where it says so. */
  readonly billed?: number
  /** How many previews were shown. */
  readonly previews?: number
  /** How many reference images the client gave. */
  readonly references: number
  /** The vendor's own count, where it gave one. */
  readonly tokens?: Usage | undefined
  /** For when the vendor did not count: how the images turned out, or one image's tokens by the vendor's list. */
  readonly looks?: Looks
  readonly tokensEach?: number | undefined
}

/** What was used, counted as the model is sold; estimated where it is sold by tokens and the vendor reported none. */
export function countImages(ask: ImageAskBase, images: Made): Counted {
  const { made, billed = made, previews = 0, references, tokens, looks = {}, tokensEach } = images
  if (ask.sold === 'pieces') {
    const vendorUsage = { images: piecesOf(ask, billed) }
    // Images that the vendor charges but did not deliver are our cost, not the customer's.
    return billed <= made
      ? { usage: vendorUsage, basis: 'vendor' }
      : { usage: { images: piecesOf(ask, made) }, vendorUsage, basis: 'vendor' }
  }
  if (tokens !== undefined) return { usage: tokens, basis: 'vendor' }
  // What the vendor says of the images counts before what the client asked, which may have been left to the model.
  const size = pixelsOf(looks.size) === undefined ? ask.size : looks.size
  const quality = Object.hasOwn(squareTokens, looks.quality ?? '') ? looks.quality : ask.quality
  const each = tokensEach ?? imageTokens({ size, quality }, ask.limits)
  const imageOutput = made * each + previews * partialImageTokens
  const usage = { input: ask.textTokens, imageInput: references * referenceTokens, imageOutput }
  return { usage, basis: 'estimated' }
}
