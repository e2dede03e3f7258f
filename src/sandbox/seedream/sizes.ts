import { badRequest, type VendorError } from '../chat/errors.ts'
import { isGiven, textIn } from '../fields.ts'
import { parseSize, type Size } from '../files/image.ts'
import { byPattern } from '../model.ts'

type SizeRules = { readonly tiers: readonly string[]; readonly pixels: readonly [least: number, most: number] }

const rulesFor = byPattern<SizeRules>(
  [
    [/seedream-5-0/, { tiers: ['2K', '3K'], pixels: [3_686_400, 10_404_496] }],
    [/seedream-4-5/, { tiers: ['2K', '4K'], pixels: [3_686_400, 16_777_216] }],
  ],
  { tiers: ['1K', '2K', '4K'], pixels: [921_600, 16_777_216] },
)

const tierSides: Readonly<Record<string, number>> = { '1K': 1024, '2K': 2048, '3K': 3072, '4K': 4096 }
const ratioMax = 16

/** The size is either a tier, which leaves the shape to the model (squares here), or a width and height. */
export function readSize(asked: unknown, model: string): Size {
  if (!isGiven(asked)) return { width: 2048, height: 2048 }
  const rules = rulesFor(model)
  const text = textIn(asked)
  const side = rules.tiers.includes(text) ? tierSides[text] : undefined
  if (side !== undefined) return { width: side, height: side }
  const size = parseSize(text)
  if (!size) throw refuse(`must be one of ${rules.tiers.join(', ')}, or WIDTHxHEIGHT`)
  const [least, most] = rules.pixels
  const pixels = size.width * size.height
  if (pixels < least) throw refuse(`image size must be at least ${least} pixels`)
  if (pixels > most) throw refuse(`image size must be at most ${most} pixels`)
  if (Math.max(size.width / size.height, size.height / size.width) > ratioMax) {
    throw refuse(`aspect ratio must be between 1/${ratioMax} and ${ratioMax}`)
  }
  return size
}

const refuse = (why: string): VendorError =>
  badRequest(`The parameter \`size\` specified in the request is not valid: ${why}.`, 'size')
