import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { ratioMax, whyNotGiven } from './given-image.ts'
import { boundOf, referenceTokensMax } from './image-tokens.ts'
import type { ImageLimits } from './limits.ts'

type Size = { readonly width: number; readonly height: number }

/** OpenAI's own count, with the short side scaled to 512 (or only down to it), and each side rounded up by a pixel. */
function openaiTokens({ width, height }: Size, isScaledUp: boolean): number {
  const scale = 512 / Math.min(width, height)
  const sides = [width, height].map((side) => Math.ceil(side * (isScaledUp ? scale : Math.min(1, scale)) + 1e-9))
  const tiles = sides.reduce((product, side) => product * Math.ceil(side / 512), 1)
  return 65 + 129 * tiles + (width === height ? 4_160 : 6_240)
}

/** Google's own count: tiles with a side of two thirds of the image's short side. */
function googleTokens({ width, height }: Size): number {
  const side = Math.min(width, height) / 1.5
  return 258 * Math.ceil(width / side) * Math.ceil(height / side)
}

test('no accepted image costs more tokens than are held for it', () => {
  const side = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 8_192 }))
  fc.assert(
    fc.property(side, side, (width, height) => {
      const size = { width, height }
      fc.pre(whyNotGiven(size) === undefined)
      const held = referenceTokensMax(size)
      expect(held).toBeGreaterThanOrEqual(openaiTokens(size, true))
      expect(held).toBeGreaterThanOrEqual(openaiTokens(size, false))
      expect(held).toBeGreaterThanOrEqual(googleTokens(size))
      // The size of a linked image is unknown, so it counts as the longest allowed.
      expect(referenceTokensMax(undefined)).toBeGreaterThanOrEqual(held)
    }),
    { numRuns: 2_000 },
  )
})

test.each([
  [4_096, 4_096, true],
  [8_192, 2_048, true],
  [ratioMax * 100, 100, true],
  [1, 1, true],
  [4_097, 4_096, false],
  [8_193, 1_000, false],
  [ratioMax * 100 + 1, 100, false],
  [16_777_216, 1, false],
  [1, 16_777_216, false],
])('an image of %d by %d is accepted: %p', (width, height, isTaken) => {
  expect(whyNotGiven({ width, height }) === undefined).toBe(isTaken)
})

test('the bound of images sold by tokens covers each of them, its previews and every reference image', () => {
  const limits: ImageLimits = {
    qualities: ['low', 'high'],
    sizes: ['1024x1024'],
    countMax: 10,
    alwaysBytes: true,
    references: { min: 0, max: 16 },
  }
  const wish = { sold: 'tokens', size: '1024x1024', quality: 'high', limits } as const
  const square = { width: 1_024, height: 1_024 }
  // Previews may be charged for every image, and are too many here to disappear in the margin of one.
  const { input = 0, output = 0 } = boundOf(
    { ...wish, count: 3, partialImages: 30 },
    { promptBytes: 10, references: [square, square] },
  )
  expect(input).toBeGreaterThanOrEqual(10 + 2 * openaiTokens(square, true))
  expect(output).toBeGreaterThanOrEqual(3 * (4_160 + 30 * 100))
  // A large image costs more than the square, and a small one may cost as much.
  const oneOf = (size: string) =>
    boundOf({ ...wish, size, count: 1, partialImages: 0 }, { promptBytes: 0, references: [] }).output
  expect(oneOf('2048x1024')).toBeGreaterThanOrEqual(2 * 4_160)
  expect(oneOf('512x512')).toBeGreaterThanOrEqual(4_160)
  // What is left to the model counts as the most expensive that it has.
  const free = {
    sold: 'tokens',
    count: 1,
    partialImages: 0,
    limits: { ...limits, sizes: ['512x512', '1536x1024'] },
  } as const
  expect(boundOf(free, { promptBytes: 0, references: [] }).output).toBeGreaterThanOrEqual(1.5 * 4_160)
})
