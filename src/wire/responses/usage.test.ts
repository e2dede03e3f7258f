import { expect, test } from 'bun:test'
import { readUsage, writeUsage } from './usage.ts'

test('usage without any numbers is undefined, not zero', () => {
  for (const usage of [undefined, null, {}, { input_tokens: '5' }]) {
    expect(readUsage(usage === undefined ? {} : { usage })).toBeUndefined()
  }
  expect(readUsage({ usage: { input_tokens: 0 } })).not.toHaveProperty('output')
  expect(readUsage({ usage: { output_tokens: 3 } })).not.toHaveProperty('input')
})

test.each([
  [9, 0],
  [5, 5],
])('of %d tokens of input beside 7 cached and 2 written ones, %d are neither', (input_tokens, input) => {
  const usage = { input_tokens, input_tokens_details: { cached_tokens: 7, cache_write_tokens: 2 } }
  expect(readUsage({ usage })).toMatchObject({ input, cachedInput: 7, cacheWrite: 2 })
})

test('input_tokens and output_tokens include every kind of token', () => {
  const read = { input: 1, cachedInput: 2, cacheWrite: 4, cacheWriteHour: 8, imageInput: 16, audioInput: 32 }
  const shown = writeUsage({ ...read, output: 100, audioOutput: 200, imageOutput: 400, reasoning: 50 })
  expect(shown).toEqual({
    input_tokens: 63,
    input_tokens_details: { cached_tokens: 2, cache_write_tokens: 12 },
    output_tokens: 700,
    output_tokens_details: { reasoning_tokens: 50 },
    total_tokens: 763,
  })
})
