import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { openMedia } from '../media/testing.ts'
import { type ErrorBody, errorOf, jsonOf } from '../testing.ts'

const { sandbox, post, bill, clearBill } = openMedia()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const client = new OpenAI({ apiKey: 'vendor-key', baseURL: sandbox.baseUrl('openai'), maxRetries: 0 })
const model = 'text-embedding-3-small'

type Answer = {
  id?: string
  data: { index: number; embedding: number[] }[]
  usage?: { prompt_tokens: number; total_tokens: number }
}

const embed = (body: object, path = '/openai/v1/embeddings') => post(path, { model, ...body })
const vectors = async (body: object, path?: string): Promise<number[][]> =>
  (await jsonOf<Answer>(embed(body, path))).data.map(({ embedding }) => embedding)

const dot = (a: readonly number[] = [], b: readonly number[] = []): number =>
  a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0)

describe('the vectors', () => {
  test('a vector has unit length, and similar texts have near vectors', async () => {
    const [fox, sameFox, ship] = await vectors({
      input: ['The quick brown fox jumps', 'a brown fox jumps quickly', 'Ships sail over wide seas'],
    })
    for (const vector of [fox, sameFox, ship]) expect(dot(vector, vector)).toBeCloseTo(1, 5)
    expect(dot(fox, sameFox)).toBeGreaterThan(0.5)
    expect(Math.abs(dot(fox, ship))).toBeLessThan(0.2)
  })

  test('the official client decodes the same vectors from base64', async () => {
    const { data, usage } = await client.embeddings.create({ model, input: ['hello world', 'again'] })
    expect(data.map(({ index }) => index)).toEqual([0, 1])
    expect(data.map(({ embedding }) => [...embedding])).toEqual(await vectors({ input: ['hello world', 'again'] }))
    expect(usage).toEqual({ prompt_tokens: 3, total_tokens: 3 })
  })

  test('a shorter vector is the normalised beginning of the long one', async () => {
    const [long = []] = await vectors({ input: 'hello world' })
    const [short = []] = await vectors({ input: 'hello world', dimensions: 64 })
    expect([long.length, short.length]).toEqual([1536, 64])
    expect(dot(short, short)).toBeCloseTo(1, 5)
    expect(dot(long.slice(0, 64), short)).toBeCloseTo(Math.sqrt(dot(long.slice(0, 64), long.slice(0, 64))), 5)
  })

  test('a list of tokens is one input, and several lists are several inputs', async () => {
    expect((await vectors({ input: [1, 2, 3] })).length).toBe(1)
    expect((await vectors({ input: [[1, 2], [3]] })).length).toBe(2)
    expect((await bill()).map(({ units }) => units.input)).toEqual([3, 3])
  })
})

describe('refusals of OpenAI', () => {
  test.each([
    ['no input', {}, 'missing_required_parameter'],
    ['an empty list', { input: [] }, 'missing_required_parameter'],
    ['an empty text', { input: ['a', ''] }, 'invalid_value'],
    ['an input that is not text', { input: [true] }, 'invalid_type'],
    ['2,049 inputs', { input: Array.from({ length: 2049 }, () => 'a') }, 'array_above_max_length'],
    ['too long an input', { input: 'ab '.repeat(8193) }, null],
    [
      'too many tokens in total',
      { input: Array.from({ length: 40 }, () => 'ab '.repeat(8000)) },
      'max_tokens_per_request',
    ],
    ['too many dimensions', { input: 'a', dimensions: 1537 }, 'integer_above_max_value'],
    ['an unknown encoding', { input: 'a', encoding_format: 'int8' }, 'invalid_value'],
    [
      'dimensions for an older model',
      { model: 'text-embedding-ada-002', input: 'a', dimensions: 8 },
      'unsupported_parameter',
    ],
    ['a model that does not embed', { model: 'plain', input: 'a' }, 'invalid_value'],
  ])('a request is refused with a 400 and costs nothing: %s', async (_, body, code) => {
    expect(await errorOf(embed(body))).toMatchObject({ status: 400, type: expect.any(String), code })
    expect(await bill()).toMatchObject([{ status: 400, cost: '0' }])
  })

  test('an unknown model is a 404', async () => {
    expect(await errorOf(embed({ model: 'none', input: 'a' }))).toMatchObject({ status: 404, code: 'model_not_found' })
  })
})

describe('Alibaba embeddings', () => {
  const path = '/dashscope/compatible-mode/v1/embeddings'
  const v4 = { model: 'text-embedding-v4' }

  test('an answer has an id, and ten inputs are billed by their tokens', async () => {
    const answer = await jsonOf<Answer>(embed({ ...v4, input: Array.from({ length: 10 }, () => 'ab') }, path))
    expect(answer).toMatchObject({ id: expect.any(String), usage: { prompt_tokens: 10, total_tokens: 10 } })
    expect(answer.data[0]?.embedding.length).toBe(1024)
    expect(await bill()).toMatchObject([{ units: { input: 10 }, cost: '0.00000002' }])
  })

  test.each([
    ['eleven inputs', { input: Array.from({ length: 11 }, () => 'ab') }, /should not be larger than 10/],
    ['an input of tokens', { input: [1, 2] }, /neither str nor list of str/],
    ['base64 encoding', { input: 'a', encoding_format: 'base64' }, /Supported values are: 'float'/],
    ['dimensions that are not on the list', { input: 'a', dimensions: 100 }, /'64'/],
  ])('an Alibaba request is refused with a 400: %s', async (_, body, message) => {
    const response = await embed({ ...v4, ...body }, path)
    const { error } = await jsonOf<ErrorBody>(response)
    expect([response.status, error.code]).toEqual([400, 'invalid_parameter_error'])
    expect(error.message).toMatch(message)
  })

  test('the native protocol has its own request and response format', async () => {
    const native = '/dashscope/api/v1/services/embeddings/text-embedding/text-embedding'
    const body = { ...v4, input: { texts: ['one', 'two'] }, parameters: { dimension: 64 } }
    type Native = { output: { embeddings: { text_index: number; embedding: number[] }[] }; usage: unknown }
    const { output, usage } = await jsonOf<Native>(post(native, body))
    expect(output.embeddings.map(({ text_index: index, embedding }) => [index, embedding.length])).toEqual([
      [0, 64],
      [1, 64],
    ])
    expect(usage).toEqual({ total_tokens: 2 })
    const refused = await post(native, { ...body, parameters: { dimension: 65 } })
    expect([refused.status, await refused.json()]).toMatchObject([400, { code: 'InvalidParameter' }])
  })
})

test('an answer of ByteDance has an id and a creation time', async () => {
  const body = { model: 'doubao-embedding-large-text-250515', input: ['a'], dimensions: 256, encoding_format: 'base64' }
  const answer = await jsonOf<{ id: string; created: number; data: { embedding: string }[] }>(
    embed(body, '/ark/api/v3/embeddings'),
  )
  expect([typeof answer.id, typeof answer.created]).toEqual(['string', 'number'])
  expect(Buffer.from(answer.data[0]?.embedding ?? '', 'base64').length).toBe(256 * 4)
})

const sendVoyage = (body: object) => post('/voyage/v1/embeddings', { model: 'voyage-3.5', ...body })

describe('Voyage embeddings', () => {
  test('Voyage has its own field names and reports only total tokens', async () => {
    const body = { input: ['a b', 'c'], input_type: 'query', output_dimension: 256, encoding_format: 'base64' }
    const answer = await jsonOf<{ data: { embedding: string }[]; usage: unknown }>(sendVoyage(body))
    expect(answer.usage).toEqual({ total_tokens: 3 })
    expect(Buffer.from(answer.data[1]?.embedding ?? '', 'base64').length).toBe(1024)
  })

  test('an invalid input_type is repeated in the error, whatever its JSON type', async () => {
    for (const kind of ['Query', { toString: 1 }, ['query'], 7]) {
      const shown = typeof kind === 'string' ? kind : JSON.stringify(kind)
      const response = await sendVoyage({ input: 'a', input_type: kind })
      expect([response.status, await response.text()]).toEqual([
        400,
        JSON.stringify({
          detail: `Value '${shown}' provided for argument 'input_type' is not one of: null, 'query', 'document'.`,
        }),
      ])
    }
  })

  test('a long text is truncated unless truncation is off', async () => {
    const input = 'ab '.repeat(40_000)
    expect(await jsonOf(sendVoyage({ input }))).toMatchObject({ usage: { total_tokens: 32_000 } })
    expect((await sendVoyage({ input, truncation: false })).status).toBe(400)
  })

  test.each([
    ['the field name of the common protocol', { input: 'a', dimensions: 256 }],
    ['the encoding float by name', { input: 'a', encoding_format: 'float' }],
    ['unsupported dimensions', { input: 'a', output_dimension: 300 }],
    ['1,001 texts', { input: Array.from({ length: 1001 }, () => 'a') }],
    ['too many tokens in total', { input: Array.from({ length: 20 }, () => 'ab '.repeat(20_000)) }],
  ])('a Voyage request is refused with a 400: %s', async (_, body) => {
    const response = await sendVoyage(body)
    expect([response.status, await response.json()]).toEqual([400, { detail: expect.any(String) }])
  })
})

const sendCohere = (body: object) => post('/cohere/v2/embed', { model: 'embed-v4.0', ...body })

describe('Cohere embeddings', () => {
  test('the answer has vectors by type and the billed tokens', async () => {
    const answer = await jsonOf(sendCohere({ texts: ['a b'], input_type: 'search_query', output_dimension: 256 }))
    expect(answer).toMatchObject({
      response_type: 'embeddings_by_type',
      texts: ['a b'],
      embeddings: { float: [expect.arrayContaining([expect.any(Number)])] },
      meta: { billed_units: { input_tokens: 2 } },
    })
  })

  test.each([
    ['no input type', { texts: ['a'] }],
    ['97 texts', { texts: Array.from({ length: 97 }, () => 'a'), input_type: 'search_query' }],
  ])('a Cohere request with %s is refused', async (_, body) => {
    const response = await sendCohere(body)
    expect([response.status, await response.json()]).toMatchObject([400, { message: expect.any(String) }])
  })
})
