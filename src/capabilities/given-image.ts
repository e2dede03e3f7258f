/** An image's size, as its head states it. */
export type ImageSize = { readonly width: number; readonly height: number }

/** A small file can hold an image that takes a gigabyte to decode; no client needs to give one larger than this. */
const pixelsMax = 4096 * 4096
/** The width of a panorama of `pixelsMax` pixels (8192 x 2048); few decoders and no model handle a longer side. */
const sideMax = 8192
/** Vendors count tiles, whose number grows with long side / short side: a single line of pixels would have millions. */
export const ratioMax = 16

/** Why an image that a client gives is not sent to any vendor; undefined if it may be sent. */
export function whyNotGiven({ width, height }: ImageSize): string | undefined {
  if (width * height > pixelsMax) return `an image has at most ${pixelsMax} pixels`
  const [short, long] = width < height ? [width, height] : [height, width]
  if (long > sideMax) return `a side of an image has at most ${sideMax} pixels`
  if (long > ratioMax * short) return `the long side of an image is at most ${ratioMax} times the short side`
  return undefined
}
