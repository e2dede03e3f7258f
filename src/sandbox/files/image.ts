import { seeded } from '../seeded.ts'
import { encodeJpeg } from './jpeg.ts'
import { encodePng } from './png.ts'
import { encodeWebp } from './webp.ts'

export type Size = { readonly width: number; readonly height: number }

export type ImageFormat = 'png' | 'jpeg' | 'webp'

/** An image: its size, and a gradient from one colour to another. */
export type GradientImage = Size & {
  readonly from: readonly number[]
  readonly to: readonly number[]
  readonly isTransparent: boolean
}

const encoders = { png: encodePng, jpeg: encodeJpeg, webp: encodeWebp } as const satisfies Record<
  ImageFormat,
  (image: GradientImage) => Uint8Array
>

export const isImageFormat = (name: string): name is ImageFormat => Object.hasOwn(encoders, name)

export type ImageSpec = Size & {
  readonly format: ImageFormat
  /** The same seed gives the same colours. */
  readonly seed: number
  readonly isTransparent?: boolean
}

/** A real file of the given format and size. */
export function drawImage({ width, height, format, seed, isTransparent = false }: ImageSpec): Buffer<ArrayBuffer> {
  const random = seeded(seed)
  const colour = (): number[] => Array.from({ length: 3 }, () => Math.floor(random() * 256))
  return Buffer.from(encoders[format]({ width, height, from: colour(), to: colour(), isTransparent }).buffer)
}

/** Reads `1024x768` or, with the other sign, `1024*768`. */
export function parseSize(text: string, sign: 'x' | '*' = 'x'): Size | undefined {
  const [width = '', height = '', ...more] = text.split(sign)
  if (more.length > 0 || !/^\d{1,5}$/.test(width) || !/^\d{1,5}$/.test(height)) return undefined
  return { width: Number(width), height: Number(height) }
}

export const writeSize = ({ width, height }: Size, sign: 'x' | '*' = 'x'): string => `${width}${sign}${height}`
