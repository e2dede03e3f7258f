import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { leastMs } from '../../test/support/least-ms.ts'
import { allows } from './scope.ts'

test.each([
  ['gpt-4o', 'gpt-4o', true],
  ['gpt-4o', 'gpt-4o-mini', false],
  ['gpt-4o*', 'gpt-4o', true],
  ['gpt-4o*', 'gpt-4o-mini', true],
  ['*', 'anything', true],
  ['*', '', true],
  ['*-mini', 'gpt-4o-mini', true],
  ['*-mini', 'gpt-4o-mini-2', false],
  ['gpt-*-mini', 'gpt-4o-mini', true],
  ['gpt-*-mini', 'gpt-mini', false],
  ['a*b*c', 'abc', true],
  ['a*b*c', 'axxbyyc', true],
  ['a*b*c', 'acb', false],
  ['aa*aa', 'aaa', false],
  ['aa*aa', 'aaaa', true],
  ['a**b', 'ab', true],
  ['', '', true],
  ['', 'a', false],
  ['gpt.4o', 'gpt-4o', false],
  ['GPT-4o', 'gpt-4o', false],
  ['gpt-[45]', 'gpt-4', false],
])('the pattern %j allows the model %j: %p', (pattern, model, allowed) => {
  expect(allows([pattern], model)).toBe(allowed)
})

test('a missing scope allows every model, and an empty one none', () => {
  expect(allows(null, 'gpt-4o')).toBe(true)
  expect(allows([], 'gpt-4o')).toBe(false)
})

test('one matching pattern of several is enough', () => {
  expect(allows(['a', 'b*'], 'bc')).toBe(true)
  expect(allows(['a', 'b*'], 'c')).toBe(false)
})

test('a glob matches as a regular expression of the same meaning does', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 8 })
  fc.assert(
    fc.property(letters, fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 10 }), (pattern, text) => {
      expect(allows([pattern], text)).toBe(new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(text))
    }),
    { numRuns: 2_000 },
  )
})

test('a pattern of thousands of wildcards is matched quickly', () => {
  const [pieces, text] = ['a*'.repeat(5_000), 'a'.repeat(100_000)]
  const match = () => {
    expect(allows([`${pieces}b`], text)).toBe(false)
    expect(allows([`${pieces}b`], `${text}cb`)).toBe(true)
    expect(allows([`${pieces}d*b`], `${text}cb`)).toBe(false)
  }
  expect(leastMs(match, 500)).toBeLessThan(500)
})
