import type { Size } from '../files/image.ts'
import { byPattern } from '../model.ts'

/** What an image model accepts, according to the vendor. */
export type ImageRules = {
  /** How many input images it takes. */
  readonly images: readonly [least: number, most: number]
  readonly countMax: number
  readonly sizes:
    | { readonly kind: 'none' }
    | { readonly kind: 'listed'; readonly list: readonly [string, ...string[]] }
    | { readonly kind: 'pixels'; readonly least: number; readonly most: number }
    | { readonly kind: 'sides'; readonly least: number; readonly most: number }
}

const fixedSizes = {
  kind: 'listed',
  list: ['1664*928', '1472*1104', '1328*1328', '1104*1472', '928*1664'],
} as const

export const imageRulesFor = byPattern<ImageRules>(
  [
    [/^qwen-image-2/, { images: [0, 3], countMax: 6, sizes: { kind: 'pixels', least: 512 * 512, most: 2048 * 2048 } }],
    [/^qwen-image-edit-(plus|max)/, { images: [1, 3], countMax: 6, sizes: { kind: 'sides', least: 512, most: 2048 } }],
    [/^qwen-image-edit/, { images: [1, 3], countMax: 1, sizes: { kind: 'none' } }],
    [/^qwen-image/, { images: [0, 0], countMax: 1, sizes: fixedSizes }],
  ],
  // Wan's images: 1280*1280 to 1440*1440 pixels in any shape.
  { images: [0, 4], countMax: 4, sizes: { kind: 'pixels', least: 1280 * 1280, most: 1440 * 1440 } },
)

/** Sides are rounded to multiples of 16. Halfway rounds down, so that 1033*1032 makes 1040*1024. */
const roundSide = (side: number): number => Math.max(16, Math.ceil(side / 16 - 0.5) * 16)

export const roundSize = ({ width, height }: Size): Size => ({ width: roundSide(width), height: roundSide(height) })

/** About as many pixels as a square of that side, in the shape of the given image. */
export function alike({ width, height }: Size, side: number): Size {
  const scale = side / Math.sqrt(width * height)
  return { width: width * scale, height: height * scale }
}
