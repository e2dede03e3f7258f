import type { Bound } from './ask.ts'
import { ratioMax, type PictureSize } from './given-picture.ts'
import type { Looks, PictureAsk } from './images.ts'
import type { ImageLimits } from './limits.ts'
import type { Counted, ImagesUsed, Usage } from './usage.ts'

/** Tokens of a square of 1024 by OpenAI's list, where other sizes cost by their pixels; the last two are guesses. */
const squareTokens: Readonly<Record<string, number>> = { low: 272, medium: 1056, high: 4160, xhigh: 8320, max: 16_640 }
const squareSize = '1024x1024'
const squarePixels = 1024 * 1024
/** By the same list, for each preview beside its picture. */
const partialImageTokens = 100
/** Where there is no choice of quality: Google's largest picture is 2,000, and it may think and say a little. */
const plainTokens = 2_000
const plainTokensMax = 4_096
/** Lists are rounded and change; a hold that falls short is our loss. */
const margin = 1.25
/** What a picture that is looked at is reckoned at where the vendor did not count: two of OpenAI's tiles. */
const referenceTokens = 323

type Wish = Pick<PictureAsk, 'count' | 'size' | 'quality' | 'partialImages' | 'limits'>

/** Output tokens of one picture without its previews, as far as they can be told; in doubt the dearest it can be. */
function pictureTokens(
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

/** A picture given to work from; undefined for one that is only linked to, of which nothing is known. */
export type Reference = PictureSize | undefined

/**
 * The most that a vendor makes of a picture it looks at. OpenAI: 65, 129 for each tile of 512 once the short side is
 * that long, and up to 6,240 for faithful faces; the margin has room for a second row of tiles, where a side is rounded
 * up. Google: 258 for each tile, whose side is two thirds of the short side.
 */
export function referenceTokensMax(reference: Reference): number {
  const { width, height } = reference ?? { width: ratioMax, height: 1 }
  const ratio = Math.max(width, height) / Math.min(width, height)
  const openai = (65 + 129 * Math.ceil(ratio) + 6_240) * margin
  const google = 258 * 2 * Math.ceil(1.5 * ratio)
  return Math.ceil(Math.max(openai, google))
}

/** The most that pictures can use. `promptBytes` bounds the tokens of the prompt, since no token is less than a byte. */
export function boundOf(
  wish: Wish & Pick<PictureAsk, 'sold'>,
  { promptBytes, references }: { promptBytes: number; references: readonly Reference[] },
): Bound {
  if (wish.sold === 'pieces') return { images: piecesOf(wish, wish.count) }
  const { count, partialImages, limits } = wish
  // A small picture may cost as much as a square: nobody has said that it does not.
  const made = Math.max(pictureTokens(wish, limits), pictureTokens({ ...wish, size: squareSize }, limits))
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
  /** How many of them the vendor says that it charges, where it says so. */
  readonly billed?: number
  /** Shown on the way. */
  readonly previews?: number
  /** Pictures that were given to work from. */
  readonly references: number
  /** The vendor's own count. */
  readonly tokens?: Usage | undefined
  /** What is known of them, for when it did not count: they themselves, or else tokens of one by the vendor's list. */
  readonly looks?: Looks
  readonly tokensEach?: number | undefined
}

/** What was used, counted as the model is sold; estimated where the vendor counts tokens and did not say them. */
export function countPictures(ask: PictureAsk, pictures: Made): Counted {
  const { made, billed = made, previews = 0, references, tokens, looks = {}, tokensEach } = pictures
  if (ask.sold === 'pieces') {
    const vendorUsage = { images: piecesOf(ask, billed) }
    // What nobody got is between us and the vendor.
    return billed <= made
      ? { usage: vendorUsage, basis: 'vendor' }
      : { usage: { images: piecesOf(ask, made) }, vendorUsage, basis: 'vendor' }
  }
  if (tokens !== undefined) return { usage: tokens, basis: 'vendor' }
  // What was said of them counts before what was asked for, which may have been left to the model.
  const size = pixelsOf(looks.size) === undefined ? ask.size : looks.size
  const quality = Object.hasOwn(squareTokens, looks.quality ?? '') ? looks.quality : ask.quality
  const each = tokensEach ?? pictureTokens({ size, quality }, ask.limits)
  const imageOutput = made * each + previews * partialImageTokens
  const usage = { input: ask.textTokens, imageInput: references * referenceTokens, imageOutput }
  return { usage, basis: 'estimated' }
}
