import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { nearest, slipsBetween } from './slips.ts'

test.each([
  ['gpt-4o-mini', 'gpt-4o-mini', 0],
  ['gpt4o-mini', 'gpt-4o-mini', 1],
  ['gpt-4oo-mini', 'gpt-4o-mini', 1],
  ['gpt-4o_mini', 'gpt-4o-mini', 1],
  ['gpt-4o-mnii', 'gpt-4o-mini', 1],
  ['gtp-4o-mnii', 'gpt-4o-mini', 2],
  ['gpt4omini', 'gpt-4o-mini', 2],
  ['pt4omini', 'gpt-4o-mini', Infinity],
  ['gpt-4o-mini-tts', 'gpt-4o-mini', Infinity],
  // Short names take fewer.
  ['o1', 'o3', Infinity],
  ['docs', 'doc', Infinity],
  ['doc', 'docs', 1],
  ['dc', 'docs', Infinity],
  ['', 'docs', Infinity],
  ['docs', '', Infinity],
])('from %p it takes %p as many slips: %p', (given, known, slips) => {
  expect(slipsBetween(given, known)).toBe(slips)
})

const name = fc.string({ unit: fc.constantFrom('a', 'b', '-'), minLength: 8, maxLength: 12 })

test('each slip that is made counts once at most', () => {
  const slip = fc.record({ place: fc.nat(), sign: fc.constantFrom('', 'a', 'b', 'x'), without: fc.nat({ max: 1 }) })
  fc.assert(
    fc.property(name, fc.array(slip, { maxLength: 2 }), (known, slips) => {
      let given = known
      for (const { place, sign, without } of slips) {
        const at = place % (given.length + 1)
        given = given.slice(0, at) + sign + given.slice(at + without)
      }
      expect(slipsBetween(given, known)).toBeLessThanOrEqual(slips.length)
    }),
  )
})

const nearestTo = (given: string) => nearest(['qwen-max', 'qwen-mix', 'qwen-maxi'], (one) => slipsBetween(given, one))

test('the nearest is the one with the fewest slips, and the first among equals', () => {
  expect(nearestTo('qwen-maxi')).toBe('qwen-maxi')
  expect(nearestTo('qwen-mux')).toBe('qwen-max')
  expect(nearestTo('qwen-turbo')).toBeUndefined()
})
