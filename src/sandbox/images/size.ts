import { badRequest, quotedList } from '../chat/errors.ts'
import { type Fields, textIn } from '../fields.ts'
import { parseSize, type Size } from '../files/image.ts'
import type { Family } from './families.ts'

const sideMax = 3840
const sideStep = 16
const ratioMax = 3

/** The size of the images. `auto` means the listed size whose shape is nearest to the edited image. */
export function readSize(body: Fields, { sizes, isFreeSize }: Family, edited: Size | undefined): Size {
  const asked = textIn(body.size) || sizes[0]
  if (asked === 'auto') return nearest(sizes, edited ?? { width: 1, height: 1 })
  const size = parseSize(asked)
  if (size && sizes.includes(asked)) return size
  if (size && isFreeSize) return checkFreeSize(asked, size)
  const message = `Invalid value: '${asked}'. Supported values are: ${quotedList(sizes)}.`
  throw badRequest(message, 'size', 'invalid_value')
}

function checkFreeSize(asked: string, size: Size): Size {
  const { width, height } = size
  const refuse = (why: string) => badRequest(`Invalid size '${asked}'. ${why}`, 'size', 'invalid_value')
  if (width % sideStep !== 0 || height % sideStep !== 0 || width === 0 || height === 0) {
    throw refuse(`Width and height must both be divisible by ${sideStep}.`)
  }
  const long = Math.max(width, height)
  if (long > sideMax) throw refuse(`The longest edge must be at most ${sideMax} pixels.`)
  if (long > ratioMax * Math.min(width, height)) throw refuse(`The aspect ratio must be at most ${ratioMax}:1.`)
  return size
}

function nearest(sizes: readonly string[], wanted: Size): Size {
  const distance = ({ width, height }: Size): number =>
    Math.abs(Math.log((width / height / wanted.width) * wanted.height))
  const listed = sizes.flatMap((size) => parseSize(size) ?? [])
  return listed.toSorted((a, b) => distance(a) - distance(b))[0] ?? { width: 1024, height: 1024 }
}
