import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { readUsage, writeUsage } from './usage.ts'

describe('usage', () => {
  test('cached, cache-write and audio tokens are counted apart from the rest', () => {
    expect(
      readUsage({
        prompt_tokens: 100,
        completion_tokens: 50,
        prompt_tokens_details: { cached_tokens: 30, cache_write_tokens: 20, audio_tokens: 10 },
        completion_tokens_details: { audio_tokens: 5, reasoning_tokens: 15 },
      }),
    ).toEqual({ input: 40, cachedInput: 30, cacheWrite: 20, audioInput: 10, output: 45, audioOutput: 5, reasoning: 15 })
  })

  test.each([
    [
      { prompt_tokens: 10, prompt_cache_hit_tokens: 4 },
      { input: 6, cachedInput: 4 },
    ],
    [
      { prompt_tokens: 10, cached_tokens: 4 },
      { input: 6, cachedInput: 4 },
    ],
    [
      { prompt_tokens: 10, prompt_tokens_details: { cache_creation_input_tokens: 4 } },
      { input: 6, cacheWrite: 4 },
    ],
    [{ prompt_tokens: 10, prompt_tokens_details: null }, { input: 10 }],
    // A prompt that is shorter than what the cache had of it was counted without that.
    [
      { prompt_tokens: 5, prompt_tokens_details: { cached_tokens: 9 } },
      { input: 5, cachedInput: 9 },
    ],
    [
      { prompt_tokens: 5, prompt_tokens_details: { cached_tokens: 3, cache_creation_tokens: 4 } },
      { input: 5, cachedInput: 3, cacheWrite: 4 },
    ],
    [
      { prompt_tokens: 9, prompt_tokens_details: { cached_tokens: 9 } },
      { input: 0, cachedInput: 9 },
    ],
    // The total has the cached tokens beside the prompt, and the written ones do not fit into it either.
    [
      {
        prompt_tokens: 5,
        completion_tokens: 2,
        total_tokens: 97,
        prompt_tokens_details: { cached_tokens: 90, cache_creation_tokens: 10 },
      },
      { input: 5, cachedInput: 90, cacheWrite: 10, output: 2 },
    ],
    // LiteLLM's and New API's names for what Anthropic wrote to its cache, for five minutes and for an hour.
    [
      {
        prompt_tokens: 130,
        prompt_tokens_details: {
          cached_tokens: 20,
          cache_creation_tokens: 10,
          cache_creation_token_details: { ephemeral_5m_input_tokens: 7, ephemeral_1h_input_tokens: 3 },
        },
        cache_creation_input_tokens: 10,
        cache_read_input_tokens: 20,
      },
      { input: 100, cachedInput: 20, cacheWrite: 7, cacheWriteHour: 3 },
    ],
    [
      { prompt_tokens: 5, prompt_tokens_details: { cached_tokens: 0, cached_creation_tokens: 90 } },
      { input: 5, cacheWrite: 90 },
    ],
    [
      {
        prompt_tokens: 5,
        prompt_tokens_details: { cached_tokens: 30, cached_creation_tokens: 90 },
        claude_cache_creation_5_m_tokens: 20,
        claude_cache_creation_1_h_tokens: 70,
      },
      { input: 5, cachedInput: 30, cacheWrite: 20, cacheWriteHour: 70 },
    ],
    [
      { prompt_tokens: 100, claude_cache_creation_5_m_tokens: 20, claude_cache_creation_1_h_tokens: 70 },
      { input: 10, cacheWrite: 20, cacheWriteHour: 70 },
    ],
    [
      { prompt_tokens: -5, completion_tokens: 2.9 },
      { input: 0, output: 2 },
    ],
    // xAI counts reasoning beside the completion tokens; every other vendor includes it in them.
    [
      {
        prompt_tokens: 10,
        completion_tokens: 15,
        total_tokens: 53,
        completion_tokens_details: { reasoning_tokens: 28 },
      },
      { input: 10, output: 43, reasoning: 28 },
    ],
    [
      {
        prompt_tokens: 10,
        completion_tokens: 43,
        total_tokens: 53,
        completion_tokens_details: { reasoning_tokens: 28 },
      },
      { input: 10, output: 43, reasoning: 28 },
    ],
    // Relays repeat one count under several names, and leave some of them at 0.
    [
      { prompt_tokens: 10, prompt_cache_hit_tokens: 4, prompt_tokens_details: { cached_tokens: 0 } },
      { input: 6, cachedInput: 4 },
    ],
    [
      { prompt_tokens: 10, prompt_tokens_details: { cached_tokens: 3, cache_creation_tokens: 4 } },
      { input: 3, cachedInput: 3, cacheWrite: 4 },
    ],
    [
      { prompt_tokens: 10, completion_tokens: 40, completion_tokens_details: { image_tokens: 30 } },
      { input: 10, output: 10, imageOutput: 30 },
    ],
    // Audio may be cached too, and then counts as cached input alone.
    [
      { prompt_tokens: 110, prompt_tokens_details: { cached_tokens: 80, audio_tokens: 100 } },
      { input: 0, cachedInput: 80, audioInput: 30 },
    ],
    [
      {
        prompt_tokens: 110,
        prompt_tokens_details: { cached_tokens: 80, audio_tokens: 100, cached_tokens_details: { audio_tokens: 80 } },
      },
      { input: 10, cachedInput: 80, audioInput: 20 },
    ],
    // Google's endpoint in this protocol counts thinking in the total alone.
    [
      { prompt_tokens: 10, completion_tokens: 15, total_tokens: 53 },
      { input: 10, output: 43, reasoning: 28 },
    ],
    // An input that was left out, cached input outside the prompt's count, and audio in Mistral's seconds are not
    // output.
    [
      { prompt_tokens: 10, completion_tokens: 15, total_tokens: 53, prompt_tokens_details: { cached_tokens: 28 } },
      { input: 10, cachedInput: 28, output: 15, reasoning: 0 },
    ],
    [
      {
        prompt_tokens: 10,
        completion_tokens: 15,
        total_tokens: 53,
        prompt_tokens_details: { cached_tokens: 20 },
        cache_read_input_tokens: 20,
        cache_creation_input_tokens: 8,
      },
      { input: 10, cachedInput: 20, cacheWrite: 8, output: 15, reasoning: 0 },
    ],
    [
      { completion_tokens: 15, total_tokens: 53 },
      { output: 15, reasoning: 0 },
    ],
    [
      { prompt_tokens: 10, completion_tokens: 15, total_tokens: 53, prompt_audio_seconds: 2 },
      { input: 10, output: 15, reasoning: 0 },
    ],
  ])('the usage %j is read into our counts', (given, counts) => {
    expect(readUsage(given)).toMatchObject(counts)
  })

  test('usage without any numbers is undefined', () => {
    const none = [undefined, null, 5, 'x', [], {}, { prompt_tokens: '5', completion_tokens: null }]
    expect(none.map(readUsage)).toEqual([undefined, undefined, undefined, undefined, undefined, undefined, undefined])
  })

  test('any usage that a vendor sends is read as non-negative whole numbers', () => {
    const wild = fc.oneof(fc.double(), fc.integer(), fc.string(), fc.constant(null), fc.constant(Number.MAX_VALUE))
    fc.assert(
      fc.property(wild, wild, wild, wild, (a, b, c, d) => {
        const usage = readUsage({
          prompt_tokens: a,
          completion_tokens: b,
          prompt_tokens_details: { cached_tokens: c, audio_tokens: d },
          completion_tokens_details: { reasoning_tokens: a, audio_tokens: c },
        })
        for (const count of Object.values(usage ?? {})) {
          expect(Number.isSafeInteger(count)).toBe(true)
          expect(count).toBeGreaterThanOrEqual(0)
          // The sums of a day or of a report must be exact integers too.
          expect(Number(count) * 1_000_000).toBeLessThanOrEqual(Number.MAX_SAFE_INTEGER)
        }
      }),
    )
  })
})

test('usage is written with all input and output in its totals, and with what was written to the cache', () => {
  const input = { input: 10, cachedInput: 5, cacheWrite: 3, cacheWriteHour: 2, imageInput: 4, audioInput: 6 }
  expect(writeUsage({ ...input, output: 7, audioOutput: 2, imageOutput: 8, reasoning: 1 })).toEqual({
    prompt_tokens: 30,
    completion_tokens: 17,
    total_tokens: 47,
    prompt_tokens_details: { cached_tokens: 5, audio_tokens: 6, cache_write_tokens: 5 },
    completion_tokens_details: { reasoning_tokens: 1, audio_tokens: 2 },
  })
})
