import { describe, expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { batchesOf, tokensMaxOf } from './embeddings.ts'

const limits = { dimensions: [], dimensionsDefault: 1, inputTokensMax: 1_000, batchMax: 3 }

describe('batches of inputs', () => {
  test('inputs are split by the number that a batch may have', () => {
    expect(batchesOf(['a', 'b', 'c', 'd', 'e'], limits)).toEqual([
      ['a', 'b', 'c'],
      ['d', 'e'],
    ])
  })

  test('inputs are split by the most tokens that they can have', () => {
    expect(tokensMaxOf('née')).toBe(4 + 2)
    expect(tokensMaxOf([1, 2, 3])).toBe(3 + 2)
    expect(batchesOf(['aaa', 'bbb', 'c'], { ...limits, batchTokensMax: 10 })).toEqual([['aaa', 'bbb'], ['c']])
  })

  test('an input longer than a batch has one of its own, and counts for at most what the model reads', () => {
    const long = 'x'.repeat(5_000)
    expect(batchesOf([long, 'a', 'b'], { ...limits, batchTokensMax: 500 })).toEqual([[long], ['a', 'b']])
    expect(batchesOf([long, 'a'], { ...limits, batchTokensMax: 1_003 })).toEqual([[long, 'a']])
  })

  test('batches have all inputs in their order and stay within the limits', () => {
    const input = fc.oneof(
      fc.string({ minLength: 1, maxLength: 30 }),
      fc.array(fc.nat(), { minLength: 1, maxLength: 9 }),
    )
    fc.assert(
      fc.property(
        fc.array(input, { minLength: 1, maxLength: 50 }),
        fc.integer({ min: 40, max: 90 }),
        (inputs, most) => {
          const batches = batchesOf(inputs, { ...limits, batchTokensMax: most })
          expect(batches.flat()).toEqual(inputs)
          for (const batch of batches) {
            expect(batch.length).toBeWithin(1, limits.batchMax + 1)
            const tokens = batch.reduce((sum, each) => sum + tokensMaxOf(each), 0)
            expect(batch.length === 1 || tokens <= most).toBe(true)
          }
        },
      ),
    )
  })
})
