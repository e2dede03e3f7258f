import { describe, expect, test } from 'bun:test'
import { errorOf } from '../../../test/support/thrown.ts'
import { GatewayError } from '../../base/errors.ts'
import { passAnswer } from './chat-answer.ts'
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

test('an error object at the top of an answer, as hosts of vLLM send it with a 200, is judged by its code', () => {
  const error = { object: 'error', message: 'The prompt is too long.', type: 'BadRequestError', param: null, code: 400 }
  const inside = { status: 400, body: JSON.stringify({ error }) }
  expect(() => read(JSON.stringify(error))).toThrow(
    expect.objectContaining({ message: error.message, details: { inside } }),
  )
})
