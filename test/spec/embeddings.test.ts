import { describe, expect, test } from 'bun:test'
import { formatDollars, nano } from '../../src/base/money.ts'
import { gatewayForTests } from '../support/gateway.ts'
import { attemptsOf, booked, recordOf } from '../support/records.ts'
import { refusedForFree } from '../support/refused.ts'
import { errorOf } from '../support/streams.ts'

// `POST /v1/embeddings`, row by row of the specification.

const gateway = gatewayForTests({
  yaml: 'models: [{ id: wide, from: text-embedding-3-large, embeddings: { dimensionsDefault: 4096 } }]',
})

type Result = {
  object: string
  model: string
  data: { object: string; index: number; embedding: number[] | string }[]
  usage: { prompt_tokens: number; total_tokens: number }
}

const path = '/v1/embeddings'
const embed = (body: Record<string, unknown>) =>
  gateway.post(path, { model: 'text-embedding-v4', input: 'Hi', ...body })

async function made(body: Record<string, unknown>): Promise<Result & { response: Response }> {
  const response = await embed(body)
  expect(response.status).toBe(200)
  return { ...((await response.json()) as Result), response }
}

const refused = (body: Record<string, unknown>) =>
  refusedForFree(gateway, async () => {
    const response = await embed(body)
    expect(response.headers.get('x-request-id')).toStartWith('req_')
    return errorOf(response)
  })

/** What the simulators charged for the calls of one request. */
async function billedFor(response: Response) {
  const refs = new Set((await attemptsOf(gateway, response)).map(({ id }) => id))
  return (await gateway.bill()).filter(({ ref }) => refs.has(ref))
}

const lengthOf = (vector: readonly number[]) => Math.hypot(...vector)

function numbersIn(embedding: number[] | string | undefined): number[] {
  if (typeof embedding !== 'string') return embedding ?? []
  const bytes = Buffer.from(embedding, 'base64')
  return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4))
}

const last = async () => (await gateway.calls()).at(-1)

/** Three batches, of which the second has the word. */
const three = (word: string) => [
  ...Array.from({ length: 10 }, (_, at) => `first ${at}`),
  `second ${word}`,
  ...Array.from({ length: 9 }, (_, at) => `second ${at}`),
  'third',
]

describe('model', () => {
  const models: readonly (readonly [id: string, dimensions: number])[] = [
    ['text-embedding-v4', 1024],
    ['text-embedding-004', 768],
    ['gemini-embedding-001', 3072],
    ['gemini-embedding-2', 3072],
    ['text-embedding-3-small', 1536],
    ['text-embedding-3-large', 3072],
    ['voyage-3-large', 1024],
    ['voyage-3.5', 1024],
    ['voyage-3.5-lite', 1024],
    ['voyage-code-3', 1024],
    ['doubao-embedding-large-text-250515', 2048],
    ['embed-v4.0', 1536],
    ['mistral-embed', 1024],
  ]

  test.each(models)('%s has %d dimensions', async (model, dimensions) => {
    const result = await made({ model, input: ['first', 'second'] })
    expect(result).toMatchObject({ object: 'list', model, usage: { prompt_tokens: 2, total_tokens: 2 } })
    expect(result.data.map(({ object, index }) => [object, index])).toEqual([
      ['embedding', 0],
      ['embedding', 1],
    ])
    for (const { embedding } of result.data) {
      expect(embedding).toHaveLength(dimensions)
      expect(lengthOf(numbersIn(embedding))).toBeCloseTo(1, 4)
    }
    expect(result.response.headers.get('x-turnpike-cost')).toMatch(/^0\.0/)
  })

  test.each([
    [{ model: undefined }, 400, 'missing_required_parameter'],
    [{ model: null }, 400, 'missing_required_parameter'],
    [{ model: 4 }, 400, 'invalid_type'],
    [{ model: 'no-such-model' }, 404, 'model_not_found'],
    [{ model: 'gpt-4o-mini' }, 400, 'endpoint_model_mismatch'],
    [{ model: 'tts-1' }, 400, 'endpoint_model_mismatch'],
  ])('%j is refused', async (body, status, code) => {
    expect(await refused(body)).toMatchObject({ status, code, param: 'model', type: 'invalid_request_error' })
  })

  test('a model out of the key’s scope gets the same error as an unknown model', async () => {
    const { key } = await gateway.account({ models: ['gpt-*'] })
    const as = (model: string) => gateway.post(path, { model, input: 'Hi' }, { authorization: `Bearer ${key}` })
    const [forbidden, unknown] = await Promise.all([as('text-embedding-v4'), as('text-embedding-v9')])
    expect([forbidden.status, unknown.status]).toEqual([404, 404])
    expect((await forbidden.text()).replace('-v4', '-v9')).toBe(await unknown.text())
  })
})

describe('input', () => {
  test('a string is one input', async () => {
    const { data, usage } = await made({ input: 'one two' })
    expect(data).toHaveLength(1)
    expect(usage).toEqual({ prompt_tokens: 2, total_tokens: 2 })
  })

  test('an array is sent in batches, and its results keep the order of the inputs', async () => {
    const input = Array.from({ length: 25 }, (_, at) => `text number ${at}`)
    const { data, usage, response } = await made({ input })
    expect(data.map(({ index }) => index)).toEqual(input.map((_, at) => at))
    const alone = await made({ input: input[17] })
    expect(data[17]?.embedding).toEqual(alone.data[0]?.embedding ?? [])

    const bill = await billedFor(response)
    expect(bill.map(({ units }) => units['input'])).toEqual([30, 30, 15])
    expect(usage.total_tokens).toBe(75)
    expect(await recordOf(gateway, response)).toMatchObject({
      basis: 'vendor',
      usage: { input: 75 },
      capability: 'embeddings',
    })
  })

  test.each([
    ['text-embedding-v4', 25, 3],
    ['text-embedding-3-small', 2_048, 4],
    ['gemini-embedding-2', 150, 2],
    ['voyage-3.5', 1_001, 2],
    ['embed-v4.0', 100, 2],
    ['doubao-embedding-large-text-250515', 40, 2],
  ])('%s: %d texts are split into %d calls, and the charge is the sum of the bill', async (model, count, calls) => {
    const { data, response } = await made({
      model,
      input: Array.from({ length: count }, (_, at) => `t${at}`),
      encoding_format: 'base64',
    })
    expect(data).toHaveLength(count)
    const bill = await billedFor(response)
    expect(bill).toHaveLength(calls)
    const { cost, basis } = await recordOf(gateway, response)
    expect(basis).toBe('vendor')
    const nanos = bill.reduce((sum, line) => sum + BigInt(Math.round(Number(line.cost) * 1e9)), 0n)
    // Each line of the bill is rounded, the charge once.
    expect(Number(cost) - Number(nanos)).toBeWithin(-calls, calls + 1)
    expect(response.headers.get('x-turnpike-cost')).toBe(formatDollars(cost))
  })

  test('a thousand texts in calls of ten come back in their order, with exact usage', async () => {
    const input = Array.from({ length: 1_000 }, (_, at) => `text ${at} ${'word '.repeat(at % 7)}`.trim())
    const words = input.reduce((sum, text) => sum + text.split(' ').length, 0)
    const { data, usage, response } = await made({ input, dimensions: 64 })
    expect(data.map(({ index }) => index)).toEqual(input.map((_, at) => at))
    expect(new Set(data.map(({ embedding }) => String(embedding))).size).toBe(1_000)
    for (const at of [0, 9, 10, 499, 990, 999]) {
      const alone = await made({ input: input[at], dimensions: 64 })
      expect(data[at]?.embedding).toEqual(alone.data[0]?.embedding ?? [])
    }
    const bill = await billedFor(response)
    expect(bill).toHaveLength(100)
    expect(bill.reduce((sum, { units }) => sum + (units['input'] ?? 0), 0)).toBe(words)
    expect(usage).toEqual({ prompt_tokens: words, total_tokens: words })
    expect(await recordOf(gateway, response)).toMatchObject({ basis: 'vendor', usage: { input: words } })
  })

  test('a batch is also split by its tokens', async () => {
    const { data, response } = await made({
      model: 'mistral-embed',
      input: Array.from({ length: 8 }, () => 'word '.repeat(1_000)),
    })
    expect(data).toHaveLength(8)
    expect((await billedFor(response)).length).toBeGreaterThan(1)
    expect((await billedFor(response)).every(({ status }) => status === 200)).toBe(true)
  })

  test('a list of token ids is one input, and is refused where the vendor takes none', async () => {
    const model = 'text-embedding-3-small'
    expect((await made({ model, input: [1, 2, 3] })).data).toHaveLength(1)
    const several = await made({ model, input: [[1, 2], [3]] })
    expect([several.data.length, several.usage.total_tokens]).toEqual([2, 3])
    for (const other of ['text-embedding-v4', 'voyage-3.5', 'text-embedding-004']) {
      expect(await refused({ model: other, input: [1, 2, 3] })).toMatchObject({ status: 400, param: 'input' })
    }
  })

  test.each([
    [undefined, 'input', 'missing_required_parameter'],
    [null, 'input', 'missing_required_parameter'],
    ['', 'input', 'invalid_value'],
    [[], 'input', 'invalid_value'],
    [['fine', ''], 'input[1]', 'invalid_value'],
    [['fine', 7], 'input[1]', 'invalid_type'],
    [[1.5], 'input[0]', 'invalid_type'],
    [[-1], 'input[0]', 'invalid_value'],
    [{}, 'input', 'invalid_type'],
    [['fine', [7]], 'input[1]', 'invalid_type'],
    [[[1], 'text'], 'input[1]', 'invalid_type'],
    [[[1], []], 'input[1]', 'invalid_value'],
    [[[1], [2, '3']], 'input[1][1]', 'invalid_type'],
    [[2 ** 53], 'input[0]', 'invalid_value'],
    [Array.from({ length: 8_192 }, () => 1), 'input', 'invalid_value'],
    [[[1], Array.from({ length: 8_192 }, () => 1)], 'input[1]', 'invalid_value'],
    [Array.from({ length: 2_049 }, () => 'x'), 'input', 'array_above_max_length'],
    [Array.from({ length: 1_000_001 }, () => 1), 'input', 'array_above_max_length'],
    [Array.from({ length: 3 }, () => Array.from({ length: 400_000 }, () => 1)), 'input', 'array_above_max_length'],
  ])('invalid input %# is refused', async (input, param, code) => {
    expect(await refused({ model: 'text-embedding-3-small', input })).toMatchObject({ status: 400, param, code })
  })

  test('a token id beyond the safe integers is refused by its index, with the limit', async () => {
    const body = '{"model":"text-embedding-3-small","input":[1,9007199254740993]}'
    const error = await refusedForFree(gateway, async () => errorOf(await gateway.post(path, body)))
    expect(error).toMatchObject({ status: 400, param: 'input[1]', code: 'invalid_value' })
    expect(error.message).toContain('at most 9007199254740991')
  })

  test('inputs whose embeddings would exceed the size of one answer are refused', async () => {
    const input = Array.from({ length: 2_048 }, () => 'x')
    const error = await refused({ model: 'wide', input })
    expect(error).toMatchObject({ status: 400, param: 'input', code: 'array_above_max_length' })
    expect(error.message).toContain('at most 1536 inputs')
  })

  test('text beyond the model’s limit is refused with the vendor’s message', async () => {
    const response = await embed({ model: 'text-embedding-3-small', input: 'a '.repeat(9_000) })
    expect(await errorOf(response)).toMatchObject({
      status: 400,
      message: expect.stringContaining('maximum input length'),
    })
    expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n, status: 400 })
  })
})

test.each(['text-embedding-3-small', 'mistral-embed'])('%s takes the label of an end user', async (model) => {
  expect((await made({ model, user: 'u' })).data).toHaveLength(1)
})

describe('encoding_format', () => {
  test.each([
    'text-embedding-v4',
    'text-embedding-004',
    'gemini-embedding-001',
    'text-embedding-3-small',
    'voyage-3.5',
    'embed-v4.0',
    'doubao-embedding-large-text-250515',
    'mistral-embed',
  ])('%s gives float and base64, and they are the same to the last bit', async (model) => {
    const float = await made({ model, encoding_format: 'float' })
    const base64 = await made({ model, encoding_format: 'base64' })
    expect(Array.isArray(float.data[0]?.embedding)).toBe(true)
    expect(typeof base64.data[0]?.embedding).toBe('string')
    const decoded = numbersIn(base64.data[0]?.embedding)
    expect(decoded).toEqual(numbersIn(float.data[0]?.embedding))
    expect((await made({ model })).data).toEqual(float.data)
  })

  test.each(['int8', '', 1])('%j is refused', async (encoding_format) => {
    expect(await refused({ encoding_format })).toMatchObject({ status: 400, param: 'encoding_format' })
  })
})

describe('dimensions', () => {
  test.each([
    ['text-embedding-v4', [2048, 1536, 1024, 768, 512, 256, 128, 64]],
    ['voyage-3.5', [256, 512, 1024, 2048]],
    ['text-embedding-3-large', [256, 1024, 3072, 77]],
    ['gemini-embedding-001', [768, 1536, 3072, 128]],
    ['doubao-embedding-large-text-250515', [2048, 1024, 512, 256]],
    ['embed-v4.0', [256, 512, 1024, 1536]],
    ['text-embedding-004', [768]],
    ['mistral-embed', [1024]],
  ])('%s offers %j dimensions, each vector of unit length', async (model, offered) => {
    for (const dimensions of offered) {
      const [first] = (await made({ model, dimensions })).data
      expect(first?.embedding).toHaveLength(dimensions)
      expect(lengthOf(numbersIn(first?.embedding))).toBeCloseTo(1, 4)
    }
  })

  test.each([
    ['text-embedding-v4', 100, '64, 128, 256, 512, 768, 1024, 1536, 2048'],
    ['voyage-3.5', 1536, '256, 512, 1024, 2048'],
    ['text-embedding-004', 512, '768'],
    ['text-embedding-3-small', 1537, '512, 1536'],
    ['mistral-embed', 512, '1024'],
  ])('%s refuses %d dimensions and lists those it offers', async (model, dimensions, list) => {
    const error = await refused({ model, dimensions })
    expect(error).toMatchObject({ status: 400, param: 'dimensions', code: 'unsupported_value' })
    expect(error.message).toContain(list)
  })

  test.each([0, -1, 1.5, '512', 1e20])('dimensions of %j are refused', async (dimensions) => {
    expect(await refused({ dimensions })).toMatchObject({ status: 400, param: 'dimensions' })
  })

  test('null means absent', async () => {
    expect((await made({ dimensions: null, encoding_format: null, user: null })).data[0]?.embedding).toHaveLength(1024)
  })
})

describe('what the vendor is sent', () => {
  test('text-embedding-004 is sent as gemini-embedding-001 with 768 dimensions', async () => {
    await made({ model: 'text-embedding-004', input: ['a', 'b'] })
    expect((await last())?.path).toEndWith('/models/gemini-embedding-001:batchEmbedContents')
    expect((await last())?.body).toMatchObject({
      requests: [{ outputDimensionality: 768 }, { outputDimensionality: 768 }],
    })
  })

  test('user is replaced by our label, and unknown fields are passed on in the same protocol', async () => {
    await made({ model: 'text-embedding-3-small', user: 'u-1', new_field: [1] })
    const call = await last()
    expect(call?.body).toMatchObject({ new_field: [1], user: expect.not.stringContaining('u-1') })
  })

  test('half a surrogate pair is sent as a replacement character', async () => {
    await gateway.post(path, '{"model":"text-embedding-v4","input":"a\\ud800b"}')
    expect((await last())?.body).toMatchObject({ input: ['a�b'] })
  })
})

describe('failures', () => {
  test('when one batch keeps failing nothing is charged, and the cost of the others is our loss', async () => {
    const before = await gateway.balance()
    const loss = await booked(gateway, 'platform:loss')
    const response = await embed({ input: three('sandbox:status=500') })
    expect(await errorOf(response)).toMatchObject({ status: 502, code: 'upstream_failed' })
    expect(await gateway.balance()).toEqual(before)

    const attempts = await attemptsOf(gateway, response)
    // Parts 1 and 3 once, part 2 three times.
    expect(attempts.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 200, 500, 500, 500])
    const billed = (await billedFor(response)).reduce((sum, { cost }) => sum + Number(cost), 0)
    expect(billed).toBeGreaterThan(0)
    const lost = nano(loss - (await booked(gateway, 'platform:loss')))
    expect(formatDollars(lost)).toBe(String(Number(billed.toFixed(9))))
  })

  test('a batch refused with a 400 fails the request and is not retried', async () => {
    const response = await embed({ input: three('sandbox:status=400') })
    expect((await errorOf(response)).status).toBe(400)
    expect((await attemptsOf(gateway, response)).filter(({ status }) => status === 400)).toHaveLength(1)
    expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n })
  })

  test.each(['sandbox:html', 'sandbox:error200', 'sandbox:cut=1'])(
    'a vendor answer of %s is a 502 and costs nothing',
    async (word) => {
      const response = await embed({ input: word })
      expect((await errorOf(response)).status).toBe(502)
      expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n, basis: 'policy_zero' })
    },
  )

  // Google never reports usage: our estimate is then all that is charged, also for a text that begins like a data URL.
  test.each(['some words', 'data:some words'])('usage of %p that is not reported is estimated', async (words) => {
    const { response, usage } = await made({ input: `${words} here sandbox:nousage` })
    const { basis, usage: charged } = await recordOf(gateway, response)
    expect([basis, charged?.input]).toEqual(['estimated', usage.prompt_tokens])
    expect(usage.prompt_tokens).toBeGreaterThan(3)
  })

  test('an account without money gets a 402 with all four fields, and the message names both amounts', async () => {
    const { key } = await gateway.account({ dollars: '0' })
    const send = () =>
      gateway.post(path, { model: 'text-embedding-v4', input: 'Hi' }, { authorization: `Bearer ${key}` })
    const { message, ...error } = await errorOf(await refusedForFree(gateway, send))
    expect(error).toEqual({ status: 402, type: 'insufficient_balance', param: null, code: 'insufficient_balance' })
    expect(message).toMatch(/^Insufficient balance: this request needs up to \$0\.0\d+ and \$0 is available\./)
  })

  test('a body beyond 8 MiB is a 413', async () => {
    const response = await refusedForFree(gateway, () => embed({ input: 'x'.repeat(8 * 1024 * 1024) }))
    expect(await errorOf(response)).toMatchObject({ status: 413, code: 'request_too_large' })
  })

  test('the same Idempotency-Key gives the same answer and is charged once', async () => {
    const headers = { 'idempotency-key': 'embed-once' }
    const body = { model: 'text-embedding-v4', input: 'once' }
    const first = await gateway.post(path, body, headers)
    const before = await gateway.balance()
    const second = await gateway.post(path, body, headers)
    expect(await second.text()).toBe(await first.text())
    expect(await gateway.balance()).toEqual(before)
  })
})
