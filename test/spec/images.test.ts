import { describe, expect, test } from 'bun:test'
import { formatDollars } from '../../src/base/money.ts'
import { readImageHead } from '../../src/base/image-head.ts'
import { gatewayForTests } from '../support/gateway.ts'
import { setLimits } from '../support/limits.ts'
import { jsonClient } from '../support/operator.ts'
import { recordOf } from '../support/records.ts'
import { refusedForFree } from '../support/refused.ts'

// `POST /v1/images/generations`, row by row of the specification and of the decisions where it is silent.

const gateway = gatewayForTests()

const path = '/v1/images/generations'
const textToImage = ['x-image-2.0', 'x-image-2.0-pro', 'x-image-max']
const editing = ['x-image-edit', 'x-image-edit-plus', 'x-image-edit-max']
const reference = { image: 'https://example.com/cat.png' }
const text = { text: 'A cat on a roof' }

type Made = {
  request_id: string
  output: { choices: { finish_reason: string; message: { role: string; content: { image: string }[] } }[] }
  usage: { image_count: number; width: number; height: number }
}

function native(model: string, content: unknown = [text], parameters?: unknown): Promise<Response> {
  return gateway.post(path, {
    model,
    input: { messages: [{ role: 'user', content }] },
    ...(parameters !== undefined && { parameters }),
  })
}

async function made(response: Response): Promise<Made> {
  expect(response.status).toBe(200)
  return (await response.json()) as Made
}

/** The last thing that a simulated vendor was sent. */
async function lastSent() {
  const sent = (await gateway.calls()).at(-1)
  if (sent === undefined) throw new Error('no vendor was asked')
  return sent
}

const shapeA = (response: Response, message: unknown = expect.any(String), code = 'InvalidParameter') => ({
  code,
  message,
  request_id: response.headers.get('x-request-id'),
})

/** 400 with Shape A and nothing beside it, for free. */
async function isInvalid(send: () => Promise<Response>, message?: unknown): Promise<void> {
  const response = await refusedForFree(gateway, send)
  expect([response.status, await response.json()]).toEqual([400, shapeA(response, message)])
}

describe('model', () => {
  test.each(textToImage)('%s makes an image from text', async (model) => {
    const answer = await made(await native(model))
    expect(answer).toEqual({
      request_id: expect.stringMatching(/^req_/),
      output: {
        choices: [
          {
            finish_reason: 'stop',
            message: { role: 'assistant', content: [{ image: expect.stringMatching(/^http/) }] },
          },
        ],
      },
      usage: { image_count: 1, width: expect.any(Number), height: expect.any(Number) },
    })
  })

  test.each(editing)('%s needs 1 to 3 reference images', async (model) => {
    for (const count of [1, 2, 3]) {
      await made(await native(model, [...Array.from({ length: count }, () => reference), text]))
    }
    await isInvalid(() => native(model, [text]), expect.stringContaining('1 to 3 reference images'))
    await isInvalid(() => native(model, [reference, reference, reference, reference, text]))
  })

  test('a text-to-image model without reference support refuses a reference image', async () => {
    await isInvalid(() => native('x-image-max', [reference, text]))
  })

  test('an unknown model and a model of another capability are refused', async () => {
    await isInvalid(() => native('x-image-9'), expect.stringContaining('x-image-9'))
    await isInvalid(() => native('gpt-4o-mini'))
  })

  test('a model out of the key’s scope gets the same error as an unknown model', async () => {
    const { key } = await gateway.account({ models: ['x-image-2.0'] })
    const ask = (model: string) =>
      gateway.post(
        path,
        { model, input: { messages: [{ role: 'user', content: [text] }] } },
        { authorization: `Bearer ${key}` },
      )
    const [forbidden, unknown] = await Promise.all([ask('x-image-max'), ask('x-image-maz')])
    expect(forbidden.status).toBe(400)
    const [a, b] = [await forbidden.text(), await unknown.text()].map((body) => body.replace(/req_\w+/, ''))
    expect(a).toBe(b?.replace('maz', 'max') ?? '')
  })

  test('a missing model is refused', () => isInvalid(() => gateway.post(path, { input: { messages: [] } })))
})

describe('input.messages', () => {
  const message = { role: 'user', content: [text] }

  test.each<{ name: string; input: unknown }>([
    { name: 'an input that is not an object', input: 'a cat' },
    { name: 'an input without messages', input: {} },
    { name: 'an empty list of messages', input: { messages: [] } },
    { name: 'a second message', input: { messages: [message, message] } },
    { name: 'a role other than user', input: { messages: [{ ...message, role: 'system' }] } },
    { name: 'a message without a role', input: { messages: [{ content: [text] }] } },
    { name: 'content that is not an array', input: { messages: [{ role: 'user', content: 'a cat' }] } },
    { name: 'a message without content', input: { messages: [{ role: 'user' }] } },
    {
      name: 'a block with both text and image',
      input: { messages: [{ ...message, content: [{ ...text, ...reference }] }] },
    },
    { name: 'a block with neither text nor image', input: { messages: [{ ...message, content: [text, {}] }] } },
    { name: 'content without text', input: { messages: [{ ...message, content: [reference] }] } },
    { name: 'an empty text', input: { messages: [{ ...message, content: [{ text: '' }] }] } },
    { name: 'a field that names another upstream', input: { messages: [message], endpoint: 'https://evil.example' } },
  ])('$name is refused', ({ input }) => isInvalid(() => gateway.post(path, { model: 'x-image-2.0', input })))

  test('several texts are joined with newlines, since the vendor takes one', async () => {
    await made(await native('x-image-2.0', [text, reference, { text: 'at night' }]))
    expect((await lastSent()).body).toMatchObject({
      input: { messages: [{ role: 'user', content: [reference, { text: 'A cat on a roof\nat night' }] }] },
    })
  })

  test.each([
    'http://example.com/cat.png',
    'data:image/png;base64,iVBORw0KGgo=',
    'https://127.0.0.1/cat.png',
    'https://localhost/cat.png',
    'https://intranet/cat.png',
    'https://printer.local/cat.png',
    'https://metadata.google.internal/cat.png',
    'https://[::1]/cat.png',
    'https://169.254.169.254/latest/meta-data',
    'https://2130706433/cat.png',
    'https://user:password@example.com/cat.png',
    'ftp://example.com/cat.png',
    'cat.png',
  ])('an image that is not a public https URL is refused: %s', (image) =>
    isInvalid(() => native('x-image-edit', [{ image }, text])),
  )
})

const sizes = {
  '1024*1024': '1328*1328',
  '1664*928': '1664*928',
  '1472*1140': '1472*1104',
  '1328*1328': '1328*1328',
  '1140*1472': '1104*1472',
  '928*1664': '928*1664',
  '1280*720': '1664*928',
  '720*1280': '928*1664',
}

function withParameters(parameters: unknown, model = 'x-image-2.0'): Promise<Response> {
  return native(model, [text], parameters)
}

describe('parameters', () => {
  test.each(Object.entries(sizes))('size %s is sent unchanged, and to x-image-max as %s', async (size, nearest) => {
    await made(await withParameters({ size }))
    expect((await lastSent()).body).toMatchObject({ parameters: { size } })
    const { usage } = await made(await withParameters({ size }, 'x-image-max'))
    expect((await lastSent()).body).toMatchObject({ parameters: { size: nearest } })
    expect(`${usage.width}*${usage.height}`).toBe(nearest)
  })

  test('the default size is 1024*1024', async () => {
    await made(await withParameters(undefined))
    expect((await lastSent()).body).toMatchObject({ parameters: { size: '1024*1024' } })
  })

  test('size and prompt_extend are not sent to a model that takes neither', async () => {
    await made(await native('x-image-edit', [reference, text], { size: '1664*928', prompt_extend: false }))
    expect((await lastSent()).body).toMatchObject({ parameters: { n: 1 } })
    expect((await lastSent()).body['parameters']).not.toContainAnyKeys(['size', 'prompt_extend'])
  })

  test.each(['1024x1024', '2048*2048', '1472*1104', '512*512', 'auto', 1024, ''])('size %p is refused', (size) =>
    isInvalid(() => withParameters({ size })),
  )

  test('n of 1 is accepted, and any other n is refused', async () => {
    await made(await withParameters({ n: 1 }))
    for (const n of [0, 2, -1, 1.5, '1', true]) await isInvalid(() => withParameters({ n }))
  })

  test('seed, watermark, negative_prompt and prompt_extend are passed on to the vendor', async () => {
    const parameters = { seed: 7, watermark: true, negative_prompt: 'dogs', prompt_extend: false }
    await made(await withParameters(parameters))
    expect((await lastSent()).body).toMatchObject({ parameters })
  })

  test.each([
    { seed: 'seven' },
    { seed: 1.5 },
    { watermark: 'yes' },
    { negative_prompt: 5 },
    { prompt_extend: 'true' },
    { steps: 4 },
  ])('the parameters %p are refused', (parameters) => isInvalid(() => withParameters(parameters)))
})

describe('the answer', () => {
  test('the link leads to an image of the size in usage', async () => {
    const { output, usage } = await made(await native('x-image-2.0', [text], { size: '1280*720' }))
    const link = output.choices[0]?.message.content[0]?.image ?? ''
    const head = readImageHead(new Uint8Array(await (await fetch(link)).arrayBuffer()))
    expect(head).toEqual({ mediaType: 'image/png', width: usage.width, height: usage.height })
  })

  test('the charge is the price of the one image that was made', async () => {
    const response = await native('x-image-max')
    const record = await recordOf(gateway, response)
    expect(record).toMatchObject({ status: 200, basis: 'vendor', capability: 'images', model: 'x-image-max' })
    expect(record.usage).toEqual({ images: { count: 1, size: '1328x1328' } })
    expect(response.headers.get('x-turnpike-cost')).toBe('0.075')
    expect(formatDollars(record.cost)).toBe('0.075')
    const customer = jsonClient(gateway.url, gateway.key)
    const shown = await customer.all<{ id: string; cost: string; usage: object }>('/v1/usage?records=true')
    // Found by its id, because requests of the same millisecond are listed in any order.
    expect(shown.find(({ id }) => id === response.headers.get('x-request-id'))).toMatchObject({
      cost: '0.075',
      usage: { images: 1, image_size: '1328x1328' },
    })
  })

  test.each([
    'gpt-image-2',
    'gpt-image-1.5',
    'dall-e-2',
    'doubao-seedream-4-5',
    'imagen-4.0-generate-001',
    'gemini-3-pro-image',
  ])('%s answers in the native form with a working link', async (model) => {
    const { output, usage } = await made(await native(model, [text], { size: '1280*720', negative_prompt: 'dogs' }))
    const link = output.choices[0]?.message.content[0]?.image ?? ''
    const head = readImageHead(new Uint8Array(await (await fetch(link)).arrayBuffer()))
    expect(head).toMatchObject({ width: usage.width, height: usage.height })
    if (model === 'dall-e-2') expect([usage.width, usage.height]).toEqual([1024, 1024])
    else expect(usage.width).toBeGreaterThan(usage.height)
  })
})

const bothShapes = (response: Response, code: string, error: object) => ({
  ...shapeA(response, expect.any(String), code),
  error: { message: expect.any(String), type: 'invalid_request_error', param: null, ...error },
})

describe('errors', () => {
  const body = { model: 'x-image-2.0', input: { messages: [{ role: 'user', content: [text] }] } }
  test('errors before the form is known have both shapes', async () => {
    const bad = await gateway.post(path, body, { authorization: 'Bearer sk-nobody' })
    expect([bad.status, await bad.json()]).toEqual([401, bothShapes(bad, 'InvalidApiKey', { code: 'invalid_api_key' })])
    const got = await fetch(gateway.url + path)
    expect([got.status, got.headers.get('allow')]).toEqual([405, 'POST'])
    expect(await got.json()).toEqual(bothShapes(got, 'InvalidParameter', { code: 'method_not_supported' }))
    for (const malformed of ['{', 'nul', '', '[]']) {
      const response = await refusedForFree(gateway, () => gateway.post(path, malformed))
      expect([response.status, await response.json()]).toEqual([
        400,
        bothShapes(response, 'InvalidParameter', { code: expect.any(String) }),
      ])
    }
    const neither = await refusedForFree(gateway, () => gateway.post(path, { model: 'x-image-2.0' }))
    expect([neither.status, await neither.json()]).toEqual([
      400,
      bothShapes(neither, 'InvalidParameter', { code: 'missing_required_parameter', param: 'prompt' }),
    ])
  })

  test('a body with both forms is read as the native one', async () => {
    const answer = await made(await gateway.post(path, { ...body, prompt: 'a dog', n: 7 }))
    expect(answer.output.choices).toHaveLength(1)
    expect((await lastSent()).text).not.toContain('dog')
  })

  test('a key over its rate limit gets a 429 Throttling.RateQuota in both shapes', async () => {
    const { key, keyId } = await gateway.account()
    await setLimits(gateway, keyId, { requestsPerMinute: 1 })
    const send = () => gateway.post(path, body, { authorization: `Bearer ${key}` })
    await made(await send())
    const response = await refusedForFree(gateway, send)
    expect([response.status, await response.json()]).toEqual([
      429,
      bothShapes(response, 'Throttling.RateQuota', { type: 'rate_limit_error', code: 'rate_limit_exceeded' }),
    ])
    expect(response.headers.get('retry-after')).not.toBeNull()
  })

  test('a rate limit at the vendor is a 429 Throttling.RateQuota with retry-after', async () => {
    const response = await native('x-image-2.0', [{ text: 'sandbox:status=429' }])
    expect([response.status, await response.json()]).toEqual([
      429,
      shapeA(response, expect.any(String), 'Throttling.RateQuota'),
    ])
    expect(response.headers.get('retry-after')).not.toBeNull()
  })

  test('an insufficient balance is a 402 Arrearage', async () => {
    const { key } = await gateway.account({ dollars: '0.001' })
    const response = await refusedForFree(gateway, () => gateway.post(path, body, { authorization: `Bearer ${key}` }))
    expect([response.status, await response.json()]).toEqual([402, shapeA(response, expect.any(String), 'Arrearage')])
  })

  test('a vendor’s refusal is passed on with its code and message', async () => {
    const response = await native('x-image-2.0', [{ text: 'sandbox:fail=DataInspectionFailed' }])
    expect([response.status, await response.json()]).toEqual([
      400,
      {
        code: 'DataInspectionFailed',
        message: 'Input or output data may contain inappropriate content.',
        request_id: expect.any(String),
      },
    ])
  })

  test.each([
    { word: 'fail=InvalidApiKey', status: 502, code: 'InternalError' },
    { word: 'fail=Arrearage', status: 502, code: 'InternalError' },
    { word: 'fail=ModelNotFound', status: 502, code: 'InternalError' },
    { word: 'status=500', status: 502, code: 'InternalError' },
    { word: 'error200', status: 502, code: 'InternalError' },
    { word: 'fail-image=1', status: 400, code: 'InvalidParameter' },
  ])('the simulated failure $word is a $status and costs nothing', async ({ word, status, code }) => {
    const { posted } = await gateway.balance()
    const response = await native('x-image-2.0', [{ text: `sandbox:${word}` }])
    expect([response.status, await response.json()]).toEqual([status, shapeA(response, expect.any(String), code)])
    expect((await gateway.balance()).posted).toBe(posted)
  })
})
