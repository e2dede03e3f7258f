import { expect, test } from 'bun:test'
import { estimateTokens } from './estimate-tokens.ts'

const sentence = 'The quick brown fox jumps over the lazy dog, and 1234 people saw it. '

test('short texts are counted one by one', () => {
  expect(estimateTokens([sentence, sentence])).toBe(2 * estimateTokens([sentence]))
  expect(estimateTokens([])).toBe(0)
})

test.each([
  ['one long text', [sentence.repeat(20_000)]],
  ['many short texts', Array.from({ length: 20_000 }, () => sentence)],
  ['a text of two scripts', [`${sentence}ሰላም ሰላም ሰላም `.repeat(5_000)]],
])('the estimate for %s is near that for its parts', (_name, texts) => {
  const parts = texts.flatMap((text) => text.match(/.{1,1000}/gsu) ?? [])
  const counted = parts.reduce((sum, part) => sum + estimateTokens([part]), 0)
  expect(estimateTokens(texts)).toBeWithin(counted * 0.9, counted * 1.1)
})
