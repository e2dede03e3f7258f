import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { errorOf } from '../../../test/support/thrown.ts'
import { GatewayError } from '../../base/errors.ts'
import { passAnswer, readUsage } from './chat-answer.ts'
import { plainAsk } from './testing.ts'

const ask = { ...plainAsk, model: 'ours' }
const read = (text: string) => passAnswer(ask, Buffer.from(text))

describe('a whole answer', () => {
  test('an answer that already has our model id is forwarded byte for byte', () => {
    const body = Buffer.from('{ "model" : "ours",\n "choices": [ {"message":{"content":"日本"}} ], "odd": 1e2 }')
    expect(passAnswer(ask, body).body).toBe(body)
  })

  test('only the model id of an answer is changed', () => {
    const text = '{"id":"x","model":"ours-2026","choices":[{"message":{"content":"\\"model\\":\\"ours-2026\\""}}]}'
    expect(Buffer.from(read(text).body).toString()).toBe(text.replace('"model":"ours-2026"', '"model":"ours"'))
  })

  test.each(['', '<html>', '[]', 'null', '"x"', '{}', '{"choices":{}}', '{"error":{"message":"no"}}', '{"choices":['])(
    'the body %j is refused as an answer',
    (text) => {
      expect(() => read(text)).toThrow(GatewayError)
    },
  )

  test('an error in place of an answer carries the vendor’s message or a default', () => {
    expect(() => read('{"error":{"message":"on fire"},"choices":[]}')).toThrow('on fire')
    expect(() => read('{"error":"on fire"}')).toThrow('on fire')
    for (const said of ['{"error":{"code":5}}', '{"error":{"message":""}}', '{"error":{}}']) {
      expect(() => read(said)).toThrow("The model's vendor reported an error.")
    }
  })

  // From this status the vendor's adapter tells whose fault it is, and what only the operator should see.
  test.each([
    [{ code: 'rate_limit_exceeded', type: 'tokens' }, 429],
    [{ type: 'rate_limit_error' }, 429],
    [{ code: 429 }, 429],
    [{ code: 'insufficient_quota', type: 'insufficient_quota' }, 429],
    [{ code: 'billing_hard_limit_reached' }, 429],
    [{ code: 'Arrearage' }, 429],
    [{ type: 'billing_not_active' }, 429],
    [{ type: 'access_terminated' }, 429],
    [{ code: '1113' }, 429],
    [{ code: 'invalid_api_key' }, 401],
    [{ type: 'authentication_error' }, 401],
    [{ code: 402 }, 402],
    [{ code: 'server_is_overloaded' }, 503],
    [{ code: 504 }, 504],
    [{ code: 'server_error' }, 500],
    [{ code: 'context_length_exceeded', type: 'invalid_request_error' }, 400],
    [{ code: 'tool_use_failed', type: 'invalid_request_error' }, 400],
    [{ code: 'moderation_blocked', type: 'image_generation_user_error' }, 400],
    [{ code: 'moderation_blocked', type: 'image_generation_server_error' }, 500],
    [{ code: 'data_inspection_failed', type: 'data_inspection_failed' }, 400],
    [{ code: 'OutputTextSensitiveContentDetected', type: 'BadRequest' }, 400],
    [{ code: 'content_filter' }, 400],
    [{ code: 200 }, undefined],
    [{ code: 'unheard_of' }, undefined],
  ])('an error with %j is judged as status %p', (error, status) => {
    const failure = errorOf(() => read(JSON.stringify({ error: { message: 'So it is.', ...error } })))
    expect(failure).toMatchObject({ kind: 'upstream-failed', message: 'So it is.' })
    expect(failure.details.inside?.status).toBe(status)
  })

  test.each([
    '{"error":{"message":"Trying to keep the first 9000 tokens, but the model is loaded with context length of only 4096."}}',
    '{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}',
  ])("a conversation that is too long is the request's fault where its words alone tell so: %s", (said) => {
    expect(errorOf(() => read(said)).details.inside?.status).toBe(400)
  })

  test('an answer without usage is estimated at one output token or more', () => {
    expect(read('{"choices":[{}]}').usage).toBeUndefined()
    expect(read('{"choices":[{}]}').estimateOutput()).toBe(1)
    const long = read(JSON.stringify({ choices: [{ message: { content: 'word '.repeat(100) } }] }))
    expect(long.estimateOutput()).toBeWithin(80, 200)
  })
})

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
    [
      { prompt_tokens: 5, prompt_tokens_details: { cached_tokens: 9 } },
      { input: 0, cachedInput: 9 },
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
    // An input that was left out, cached input outside the prompt's count, and audio in Mistral's seconds are not output.
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

test('an error object at the top of an answer, as hosts of vLLM send it with a 200, is judged by its code', () => {
  const error = { object: 'error', message: 'The prompt is too long.', type: 'BadRequestError', param: null, code: 400 }
  const inside = { status: 400, body: JSON.stringify({ error }) }
  expect(() => read(JSON.stringify(error))).toThrow(
    expect.objectContaining({ message: error.message, details: { inside } }),
  )
})
