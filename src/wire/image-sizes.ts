import type { FreeSize, ImageLimits } from '../capabilities/limits.ts'

export type Size = { readonly width: number; readonly height: number }

const sizePatterns = { x: /^([1-9]\d{0,4})x([1-9]\d{0,4})$/, '*': /^([1-9]\d{0,4})\*([1-9]\d{0,4})$/ } as const

/** `1024x768`, or `1024*768` as the native form writes it. */
export function readSize(text: string, sign: keyof typeof sizePatterns = 'x'): Size | undefined {
  const found = sizePatterns[sign].exec(text)
  return found === null ? undefined : { width: Number(found[1]), height: Number(found[2]) }
}

export function writeSize({ width, height }: Size, sign = 'x'): string {
  return `${width}${sign}${height}`
}

/** Whether the vendor takes a size at all: Google takes a ratio instead, and one editing model takes neither. */
export function takesSize({ sizes, free }: Pick<ImageLimits, 'sizes' | 'free'>): boolean {
  return sizes.length > 0 || free !== undefined
}

/** Why a model with free sizes refuses this size, or undefined where it takes it. */
export function whyNotFree({ width, height }: Size, free: FreeSize): string | undefined {
  const [short, long] = width < height ? [width, height] : [height, width]
  const { step, sideMin = 1, sideMax = Number.POSITIVE_INFINITY, ratioMax = Number.POSITIVE_INFINITY } = free
  const { pixelsMin = 1, pixelsMax = Number.POSITIVE_INFINITY } = free
  if (width % step !== 0 || height % step !== 0) return `width and height must be multiples of ${step}`
  if (short < sideMin) return `width and height must be at least ${sideMin}`
  if (long > sideMax) return `width and height must be at most ${sideMax}`
  if (long > short * ratioMax) return `the long side must be at most ${ratioMax} times the short side`
  if (width * height < pixelsMin) return `it must have at least ${pixelsMin} pixels`
  if (width * height > pixelsMax) return `it must have at most ${pixelsMax} pixels`
  return undefined
}

/** The rules of a model with free sizes, in words. */
export function rulesOf({ step, sideMin, sideMax, ratioMax, pixelsMin, pixelsMax }: FreeSize): string {
  const rules = [
    ...(step > 1 ? [`multiples of ${step}`] : []),
    ...(sideMin === undefined ? [] : [`sides of at least ${sideMin}`]),
    ...(sideMax === undefined ? [] : [`sides of at most ${sideMax}`]),
    ...(ratioMax === undefined ? [] : [`the long one at most ${ratioMax} times the short one`]),
    ...(pixelsMin === undefined ? [] : [`at least ${pixelsMin} pixels`]),
    ...(pixelsMax === undefined ? [] : [`at most ${pixelsMax} pixels`]),
  ]
  return rules.join(', ')
}

/** The model's size nearest to the wished one: the same orientation first, then the nearest shape, then the area. */
export function nearestSize(wished: Size, limits: Pick<ImageLimits, 'sizes' | 'free'>): string {
  const { sizes, free } = limits
  const text = writeSize(wished)
  if (sizes.includes(text) || !takesSize(limits)) return text
  if (free !== undefined) return writeSize(nearestFree(wished, free))
  const known = sizes.flatMap((size) => readSize(size) ?? [])
  const sameWay = known.filter((size) => orientation(size) === orientation(wished))
  const bent = (size: Size) => Math.abs(Math.log(shape(size) / shape(wished)))
  const scaled = (size: Size) => Math.abs(Math.log(area(size) / area(wished)))
  const [nearest] = (sameWay.length > 0 ? sameWay : known).toSorted(
    (a, b) => bent(a) - bent(b) || scaled(a) - scaled(b),
  )
  return nearest === undefined ? text : writeSize(nearest)
}

/** Keeps the shape and changes the size only as far as the vendor's bounds require. */
function nearestFree(wished: Size, free: FreeSize): Size {
  if (whyNotFree(wished, free) === undefined) return wished
  const { step, sideMin = step, sideMax = Number.POSITIVE_INFINITY } = free
  const { pixelsMin = 0, pixelsMax = Number.POSITIVE_INFINITY } = free
  const [short, long] = [Math.min(wished.width, wished.height), Math.max(wished.width, wished.height)]
  const grown = Math.max(1, sideMin / short, Math.sqrt(pixelsMin / (short * long)))
  const shrunk = Math.min(1, sideMax / long, Math.sqrt(pixelsMax / (short * long)))
  const inward = shrunk < 1 ? Math.floor : Math.round
  const round = grown > 1 ? Math.ceil : inward
  const side = (length: number) => Math.max(step, round((length * grown * shrunk) / step) * step)
  return { width: side(wished.width), height: side(wished.height) }
}

function orientation({ width, height }: Size): number {
  return Math.sign(width - height)
}

function area({ width, height }: Size): number {
  return width * height
}

export function shape({ width, height }: Size): number {
  return width / height
}
