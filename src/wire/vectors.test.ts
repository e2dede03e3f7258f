import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { withDimensions, normalised, toBase64, vectorIn } from './vectors.ts'

const vector = (...numbers: number[]) => Float32Array.from(numbers)

test('base64 is float32 with the lowest byte first', () => {
  // 1.0 is 3f800000 and -2.5 is c0200000.
  expect(Buffer.from(toBase64(vector(1, -2.5)), 'base64').toString('hex')).toBe('0000803f000020c0')
})

test('numbers and base64 give the same vector, and float32 values survive the round trip', () => {
  const numbers = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 50 })
  fc.assert(
    fc.property(numbers, (list) => {
      expect(vectorIn(list)).toEqual(vector(...list))
      expect(vectorIn(toBase64(vector(...list)))).toEqual(vector(...list))
    }),
  )
})

test('a double is rounded to a float32', () => {
  expect([...(vectorIn([0.1]) ?? [])]).toEqual([Math.fround(0.1)])
})

test.each([[null], [{}], [[1, '2']], [[1, null]], [[1e300]], [toBase64(vector(1, NaN))], [toBase64(vector(Infinity))]])(
  '%j is not a vector',
  (value) => {
    expect(vectorIn(value)).toBeUndefined()
  },
)

test('a vector is shortened to the dimensions asked for and normalised again', () => {
  expect(withDimensions(vector(3, 4, 12), 2)).toEqual(vector(0.6, 0.8))
  expect(withDimensions(vector(3, 4), 2)).toEqual(vector(3, 4))
  expect(withDimensions(vector(3, 4), undefined)).toEqual(vector(3, 4))
  expect(withDimensions(vector(3, 4), 3)).toBeUndefined()
  expect(withDimensions(vector(), undefined)).toBeUndefined()
  expect(normalised(vector(0, 0))).toEqual(vector(0, 0))
})
