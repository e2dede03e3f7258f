import type { Bound } from './ask.ts'
import { ratioMax, type PictureSize } from './given-picture.ts'
import type { PictureAsk } from './images.ts'
import type { Counted, ImagesUsed, Usage } from './usage.ts'

/** Tokens of a square of 1024 by OpenAI's list, where other sizes cost by their pixels; the last two are guesses. */
const squareTokens: Readonly<Record<string, number>> = { low: 272, medium: 1056, high: 4160, xhigh: 8320, max: 16_640 }
const squarePixels = 1024 * 1024
const partialImageTokens = 100
/** Where there is no choice of quality: Google's largest picture is 2,000, and it may think and say a little. */
const plainTokens = 2_000
const plainTokensMax = 4_096
/** Lists are rounded and change; a hold that falls short is our loss. */
const margin = 1.25
/** What a picture that is looked at is reckoned at where the vendor did not count: two of OpenAI's tiles. */
const referenceTokens = 323

type Wish = Pick<PictureAsk, 'count' | 'size' | 'quality' | 'partialImages' | 'limits'>

/** Output tokens of one picture, as far as they can be told before it is made; in doubt the dearest it can be. */
function outputTokens({ size, quality, partialImages, limits }: Wish): number {
  if (limits.qualities.length === 0) return plainTokens
  const grades = quality === undefined || quality === 'auto' ? limits.qualities : [quality]
  const square = Math.max(...grades.map((grade) => squareTokens[grade] ?? 0))
  const sizes = size === undefined || size === 'auto' ? limits.sizes : [size]
  const pixels = Math.max(squarePixels, ...sizes.map(pixelsOf))
  return Math.ceil((square * pixels) / squarePixels) + partialImages * partialImageTokens
}

function pixelsOf(size: string): number {
  const [width = 0, height = 0] = size.split('x').map(Number)
  return Number.isFinite(width * height) ? width * height : 0
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
  const each = wish.limits.qualities.length === 0 ? plainTokensMax : Math.ceil(outputTokens(wish) * margin)
  const looked = references.reduce((sum: number, reference) => sum + referenceTokensMax(reference), 0)
  return { input: promptBytes + looked, output: wish.count * each }
}

function piecesOf({ size, quality }: Pick<Wish, 'size' | 'quality'>, count: number): ImagesUsed {
  return { count, ...(size !== undefined && { size }), ...(quality !== undefined && { quality }) }
}

/** What was used, counted as the model is sold; estimated where the vendor counts tokens and did not say them. */
export function countPictures(
  ask: PictureAsk,
  { made, tokens, references }: { made: number; tokens?: Usage | undefined; references: number },
): Counted {
  if (ask.sold === 'pieces') return { usage: { images: piecesOf(ask, made) }, basis: 'vendor' }
  if (tokens !== undefined) return { usage: tokens, basis: 'vendor' }
  const imageOutput = made * outputTokens(ask)
  const usage = { input: ask.textTokens, imageInput: references * referenceTokens, imageOutput }
  return { usage, basis: 'estimated' }
}
