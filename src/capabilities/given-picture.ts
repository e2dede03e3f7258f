/** How large a picture is, as its head says. */
export type PictureSize = { readonly width: number; readonly height: number }

/** A small file can hold a picture that takes a gigabyte to decode; nobody works from one of more than this. */
const pixelsMax = 4096 * 4096
/** A panorama of half that height; few decoders and no model look at more. */
const sideMax = 8192
/** Vendors look at tiles, as many as the long side has of the short one: a line of pixels would have millions. */
export const ratioMax = 16

/** Why a picture that a client gives is not sent to anybody; undefined where it may be. */
export function whyNotGiven({ width, height }: PictureSize): string | undefined {
  if (width * height > pixelsMax) return `an image has at most ${pixelsMax} pixels`
  const [short, long] = width < height ? [width, height] : [height, width]
  if (long > sideMax) return `a side of an image has at most ${sideMax} pixels`
  if (long > ratioMax * short) return `the long side of an image is at most ${ratioMax} times the short side`
  return undefined
}
