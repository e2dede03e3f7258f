import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { fitted, lengthOf, normalised, toBase64, toNumbers } from './vectors.ts'

test('base64 is float32 with the lowest byte first', () => {
  // 1.0 is 3f800000 and -2.5 is c0200000.
  expect(Buffer.from(toBase64([1, -2.5]), 'base64').toString('hex')).toBe('0000803f000020c0')
})

test('what was a float32 comes back the same', () => {
  fc.assert(
    fc.property(fc.array(fc.float({ noNaN: true }), { minLength: 1, maxLength: 50 }), (numbers) => {
      const base64 = toBase64(numbers)
      expect(lengthOf(base64)).toBe(numbers.length)
      expect(toNumbers(base64)).toEqual(numbers)
    }),
  )
})

test('a vector is made as short as it was asked for, and unit again', () => {
  expect(fitted([3, 4, 12], 2)).toEqual([0.6, 0.8])
  expect(fitted(toBase64([3, 4, 12]), 2)).toEqual([0.6, 0.8])
  expect(fitted([3, 4], 2)).toEqual([3, 4])
  expect(fitted([3, 4], undefined)).toEqual([3, 4])
  expect(fitted([3, 4], 3)).toBeUndefined()
  expect(fitted([], undefined)).toBeUndefined()
  expect(normalised([0, 0])).toEqual([0, 0])
})
