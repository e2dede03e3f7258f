import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { FreeSize } from '../capabilities/limits.ts'
import { nearestSize, readSize, whyNotFree } from './image-sizes.ts'

const fixed = { sizes: ['1664x928', '1472x1104', '1328x1328', '1104x1472', '928x1664'] }
const three = { sizes: ['auto', '1024x1024', '1536x1024', '1024x1536'] }
const stepped: FreeSize = { step: 16, sideMax: 3840, ratioMax: 3 }
const pixels: FreeSize = { step: 1, ratioMax: 16, pixelsMin: 3_686_400, pixelsMax: 16_777_216 }

const size = (text: string) => readSize(text) ?? { width: 0, height: 0 }

test.each([
  ['1024x768', 'x', { width: 1024, height: 768 }],
  ['1024*768', '*', { width: 1024, height: 768 }],
  ['1024*768', 'x', undefined],
  ['0x768', 'x', undefined],
  ['-1x768', 'x', undefined],
  ['1024x', 'x', undefined],
  ['1024x768x3', 'x', undefined],
  ['999999x1', 'x', undefined],
  ['1e3x768', 'x', undefined],
] as const)('the size %s with the sign %s is read as %p', (text, sign, expected) =>
  expect(readSize(text, sign)).toEqual(expected),
)

describe('a model with free sizes', () => {
  test.each(['16x16', '3840x1280', '1280x3840', '3840x3840', '1024x1024'])('the size %s is accepted', (text) => {
    expect(whyNotFree(size(text), stepped)).toBeUndefined()
  })
  test.each([
    ['1000x1024', 'multiples of 16'],
    ['1024x1000', 'multiples of 16'],
    ['3856x3856', 'at most 3840'],
    ['3840x1264', '3 times'],
    ['1264x3840', '3 times'],
  ])('the size %s is refused: %s', (text, why) => expect(whyNotFree(size(text), stepped)).toContain(why))
})

describe('the nearest size that a model has', () => {
  test.each([
    ['1472x1140', fixed, '1472x1104'],
    ['1140x1472', fixed, '1104x1472'],
    ['1024x1024', fixed, '1328x1328'],
    ['1280x720', fixed, '1664x928'],
    ['1664x928', three, '1536x1024'],
    ['928x1664', three, '1024x1536'],
    ['1024x1024', three, '1024x1024'],
    ['1472x1140', { sizes: [], free: stepped }, '1472x1136'],
    ['1024x1024', { sizes: [], free: pixels }, '1920x1920'],
    ['1024x1024', { sizes: [] }, '1024x1024'],
    ['1536x1024', { sizes: ['1024x1024'] }, '1024x1024'],
    ['1664x928', { sizes: ['256x256', '512x512', '1024x1024'] }, '1024x1024'],
    ['720x1280', { sizes: ['256x256', '512x512', '1024x1024'] }, '1024x1024'],
    ['480x320', { sizes: ['1024x1024', '512x512', '256x256'] }, '512x512'],
    ['2000x1000', { sizes: ['512x256', '1024x512', '1536x1024'] }, '1024x512'],
  ])('a wish for %s gets the nearest size', (wished, limits, nearest) =>
    expect(nearestSize(size(wished), limits)).toBe(nearest),
  )

  test('the nearest free size follows the rules of the model and keeps the orientation', () => {
    const side = fc.integer({ min: 256, max: 4096 })
    fc.assert(
      fc.property(side, side, (width, height) => {
        fc.pre(Math.max(width, height) <= 3 * Math.min(width, height))
        for (const free of [stepped, pixels]) {
          const nearest = size(nearestSize({ width, height }, { sizes: [], free }))
          expect([nearest, whyNotFree(nearest, { ...free, ratioMax: 4 })]).toEqual([nearest, undefined])
          if (Math.abs(width - height) > 32) {
            expect(Math.sign(nearest.width - nearest.height)).toBe(Math.sign(width - height))
          }
        }
      }),
    )
  })
})
