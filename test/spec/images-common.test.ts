import { describe, expect, test } from 'bun:test'
import { readBase64Head, readImageHead } from '../../src/base/image-head.ts'
import { nano } from '../../src/base/money.ts'
import { drawImage } from '../../src/sandbox/files/image.ts'
import { gatewayForTests } from '../support/gateway.ts'
import { attemptsOf, booked, recordOf } from '../support/records.ts'
import { refusedForFree } from '../support/refused.ts'
import { errorOf } from '../support/streams.ts'

// The common form of `POST /v1/images/generations`, which the specification leaves open and the decisions settle.

const gateway = gatewayForTests()

const path = '/v1/images/generations'

type Made = {
  created: number
  data: { url?: string; b64_json?: string; revised_prompt?: string }[]
  usage: { input_tokens: number; output_tokens: number; total_tokens: number; width?: number; height?: number }
}

function ask(model: string, more: object = {}): Promise<Response> {
  return gateway.post(path, { model, prompt: 'A cat on a roof', ...more })
}

async function made(response: Response): Promise<Made> {
  expect(response.status).toBe(200)
  return (await response.json()) as Made
}

async function lastSent() {
  const sent = (await gateway.calls()).at(-1)
  if (sent === undefined) throw new Error('no vendor was asked')
  return sent
}

/** 400 with Shape B and nothing beside it, for free. */
async function isInvalid(send: () => Promise<Response>, param: string | null, code?: string): Promise<void> {
  const response = await refusedForFree(gateway, send)
  expect([response.status, await response.json()]).toEqual([
    400,
    { error: { message: expect.any(String), type: 'invalid_request_error', param, code: code ?? expect.any(String) } },
  ])
}

const everyFamily = [
  'gpt-image-2',
  'gpt-image-1-mini',
  'dall-e-2',
  'dall-e-3',
  'qwen-image-2.0',
  'qwen-image-max',
  'doubao-seedream-4-0',
  'doubao-seedream-4-5',
  'doubao-seedream-5-0-lite',
  'imagen-4.0-fast-generate-001',
  'gemini-2.5-flash-image',
  'gemini-3-pro-image',
]

describe('every family of image models', () => {
  test.each(everyFamily)('%s returns a link to an image', async (model) => {
    const { created, data, usage } = await made(await ask(model, { response_format: 'url' }))
    expect(created).toBeGreaterThan(1_700_000_000)
    expect(data).toHaveLength(1)
    const link = await fetch(data[0]?.url ?? '')
    expect(readImageHead(new Uint8Array(await link.arrayBuffer()))).toMatchObject({ width: expect.any(Number) })
    expect(usage.total_tokens).toBe(usage.input_tokens + usage.output_tokens)
  })

  test.each(everyFamily)('%s returns an image as base64', async (model) => {
    const { data } = await made(await ask(model, { response_format: 'b64_json' }))
    expect(Object.keys(data[0] ?? {})).toContain('b64_json')
    expect(readBase64Head(data[0]?.b64_json ?? '')).toMatchObject({ width: expect.any(Number) })
  })

  test('the default response_format is url, except on gpt-image-2', async () => {
    expect((await made(await ask('qwen-image-max'))).data[0]).toHaveProperty('url')
    expect((await made(await ask('imagen-4.0-generate-001'))).data[0]).toHaveProperty('url')
    expect((await made(await ask('gpt-image-2'))).data[0]).toHaveProperty('b64_json')
  })

  test('an unknown model is a 404, and a model of another capability a 400', async () => {
    const unknown = await refusedForFree(gateway, () => ask('gpt-image-0'))
    expect([unknown.status, await unknown.json()]).toMatchObject([404, { error: { code: 'model_not_found' } }])
    await isInvalid(() => ask('gpt-4o-mini'), 'model', 'endpoint_model_mismatch')
  })
})

describe('sizes', () => {
  test.each(['1024x1024', '1536x1024', '2048x2048', '3840x2160', '3840x1280', '16x16', 'auto'])(
    'gpt-image-2 accepts size %s',
    async (size) => {
      await made(await ask('gpt-image-2', { size, quality: 'low' }))
      expect((await lastSent()).body).toMatchObject({ size })
    },
  )

  test.each(['1000x1000', '1472x1140', '3856x1600', '3840x1024', '1024x3840', '0x1024', '1024*1024', 'big'])(
    'gpt-image-2 refuses size %s: multiples of 16, at most 3840, at most 3:1',
    (size) => isInvalid(() => ask('gpt-image-2', { size }), 'size'),
  )

  test('a model that takes any shape refuses a word that is not a size', () =>
    isInvalid(() => ask('gemini-2.5-flash-image', { size: 'constructor' }), 'size'))

  test.each(['2048x2048', '512x512', '1792x1024'])('a model with three sizes refuses %s', (size) =>
    isInvalid(() => ask('gpt-image-1.5', { size }), 'size', 'unsupported_value'),
  )

  test.each([
    { model: 'qwen-image-max', size: '1024x1024', sent: { parameters: { size: '1328*1328' } }, real: [1328, 1328] },
    { model: 'qwen-image-max', size: '1536x1024', sent: { parameters: { size: '1472*1104' } }, real: [1472, 1104] },
    { model: 'dall-e-2', size: '1536x1024', sent: { size: '1024x1024' }, real: [1024, 1024] },
    { model: 'qwen-image-2.0', size: '2048x2048', sent: { parameters: { size: '2048*2048' } }, real: [2048, 2048] },
    { model: 'doubao-seedream-4-5', size: '1024x1024', sent: { size: '1920x1920' }, real: [1920, 1920] },
    { model: 'doubao-seedream-4-0', size: '2K', sent: { size: '2048x2048' }, real: [2048, 2048] },
    {
      model: 'imagen-4.0-generate-001',
      size: '1536x1024',
      sent: { parameters: { aspectRatio: '4:3' } },
      real: [1280, 896],
    },
    {
      model: 'gemini-3-pro-image',
      size: '2560x1440',
      sent: { generationConfig: { imageConfig: { aspectRatio: '16:9', imageSize: '2K' } } },
      real: [2688, 1536],
    },
  ])('$size on $model becomes the nearest size the model has', async ({ model, size, sent, real }) => {
    const { usage } = await made(await ask(model, { size }))
    expect((await lastSent()).body).toMatchObject(sent)
    expect([usage.width, usage.height]).toEqual([...real])
  })
})

test.each(['qwen-image-max', 'qwen-image-plus'])('without a size, %s uses its vendor’s default', async (model) => {
  expect((await made(await ask(model))).usage).toMatchObject({ width: 1664, height: 928 })
})

describe('the number of images', () => {
  test.each([
    { model: 'gpt-image-1.5', n: 10 },
    { model: 'imagen-4.0-generate-001', n: 4 },
    { model: 'qwen-image-2.0', n: 6 },
    { model: 'dall-e-2', n: 2 },
  ])('$model makes $n images in one request and charges for each', async ({ model, n }) => {
    const one = await ask(model, { quality: 'low' })
    const several = await ask(model, { quality: 'low', n })
    expect((await made(several)).data).toHaveLength(n)
    expect(Number(several.headers.get('x-turnpike-cost'))).toBeGreaterThan(
      (n - 1) * Number(one.headers.get('x-turnpike-cost')),
    )
  })

  test.each([0, 11, -1, 1.5, '2', true])('n of %p is refused', (n) => isInvalid(() => ask('gpt-image-2', { n }), 'n'))

  test('n above the model’s maximum is refused', async () => {
    await isInvalid(() => ask('qwen-image-max', { n: 2 }), 'n', 'unsupported_value')
    await isInvalid(() => ask('imagen-4.0-generate-001', { n: 5 }), 'n', 'unsupported_value')
  })

  test('images that the vendor holds back are not charged', async () => {
    const response = await gateway.post(path, {
      model: 'imagen-4.0-generate-001',
      prompt: 'a cat sandbox:fail-image=2',
      n: 3,
    })
    expect((await made(response)).data).toHaveLength(2)
    expect(response.headers.get('x-turnpike-cost')).toBe('0.08')
  })

  test.each(['doubao-seedream-4-0', 'imagen-4.0-generate-001', 'qwen-image-2.0'])(
    'when %s makes no image, the refusal reaches the client and nothing is charged',
    async (model) => {
      const { posted } = await gateway.balance()
      const response = await gateway.post(path, { model, prompt: 'a cat sandbox:fail-image=1' })
      expect([response.status, await response.json()]).toMatchObject([
        400,
        { error: { code: 'content_policy_violation' } },
      ])
      expect((await gateway.balance()).posted).toBe(posted)
    },
  )

  test('a vendor’s charge for an image that it held back is our loss', async () => {
    const [{ posted }, lossBefore] = [await gateway.balance(), await booked(gateway, 'platform:loss')]
    const response = await gateway.post(path, { model: 'gemini-3-pro-image', prompt: 'a cat sandbox:refusal' })
    expect([response.status, await response.json()]).toMatchObject([400, { error: { message: expect.any(String) } }])
    expect((await gateway.balance()).posted).toBe(posted)
    const [attempt] = await attemptsOf(gateway, response)
    const line = (await gateway.bill()).find(({ ref }) => ref === attempt?.id)
    expect(Number(line?.cost)).toBeGreaterThan(0)
    expect(await booked(gateway, 'platform:loss')).not.toBe(lossBefore)
  })
})

describe('quality, background and format', () => {
  test.each(['auto', 'low', 'medium', 'high'])('quality %s is sent to the vendor', async (quality) => {
    await made(await ask('gpt-image-2', { quality }))
    expect((await lastSent()).body).toMatchObject({ quality })
  })

  test.each([
    ['standard', 'medium'],
    ['hd', 'high'],
  ])('quality %s is sent as %s', async (quality, meant) => {
    await made(await ask('gpt-image-2', { quality }))
    expect((await lastSent()).body).toMatchObject({ quality: meant })
  })

  test('a quality without a price and an unknown quality are refused', async () => {
    await isInvalid(() => ask('dall-e-3', { quality: 'hd' }), 'quality', 'unsupported_value')
    await isInvalid(() => ask('gpt-image-2', { quality: 'best' }), 'quality')
  })

  test('a transparent background needs png or webp, and a model that supports it', async () => {
    await made(await ask('gpt-image-2', { background: 'transparent' }))
    await made(await ask('gpt-image-2', { background: 'transparent', output_format: 'webp' }))
    await isInvalid(() => ask('gpt-image-2', { background: 'transparent', output_format: 'jpeg' }), 'background')
    await isInvalid(() => ask('qwen-image-max', { background: 'transparent' }), 'background')
  })

  test.each(['png', 'jpeg', 'webp'])('output_format %s gives an image of that type', async (format) => {
    const { data } = await made(await ask('gpt-image-2', { output_format: format, response_format: 'url' }))
    const link = await fetch(data[0]?.url ?? '')
    expect(link.headers.get('content-type')).toBe(`image/${format}`)
  })

  test.each([
    ['qwen-image-max', ['jpeg', 'webp'], ['png']],
    ['qwen-image-edit-plus', ['jpeg', 'webp'], ['png']],
    ['gemini-2.5-flash-image', ['jpeg', 'webp'], ['png']],
    ['imagen-4.0-generate-001', ['webp'], ['png', 'jpeg']],
    ['dall-e-2', ['jpeg', 'webp'], ['png']],
    ['doubao-seedream-4-5', ['png', 'webp'], ['jpeg']],
    ['doubao-seedream-5-0-lite', ['webp'], ['jpeg', 'png']],
  ])('%s refuses the formats %j and lists those it supports', async (model, lacked, written) => {
    for (const output_format of lacked) {
      const response = await refusedForFree(gateway, () => ask(model, { output_format }))
      expect(await errorOf(response)).toMatchObject({
        status: 400,
        param: 'output_format',
        code: 'unsupported_value',
        message: expect.stringContaining(`Supported values are: '${written.join("', '")}'.`),
      })
    }
    const image = model.includes('edit')
      ? { image: inline(drawImage({ width: 64, height: 64, format: 'png', seed: 1 })) }
      : {}
    for (const output_format of written) {
      const { data } = await made(await ask(model, { output_format, response_format: 'b64_json', ...image }))
      expect(readBase64Head(data[0]?.b64_json ?? '')).toMatchObject({ mediaType: `image/${output_format}` })
    }
  })

  test('a vendor of the same protocol gets the body unchanged, except for user', async () => {
    const written = { output_compression: 50, output_format: 'jpeg', moderation: 'low', user: 'ada' }
    await made(await ask('gpt-image-2', { ...written, n: 1 }))
    const { body } = await lastSent()
    const { user, ...rest } = body
    expect(rest).toEqual({
      model: 'gpt-image-2',
      prompt: 'A cat on a roof',
      n: 1,
      output_compression: 50,
      output_format: 'jpeg',
      moderation: 'low',
    })
    // Equal labels of two accounts must not look like one user to the vendor.
    expect(user).toMatch(/^[\w-]{20,}$/)
  })
})

describe('fields that only some vendors support', () => {
  const foreign = { negative_prompt: 'dogs', seed: 7, watermark: true, prompt_extend: false }

  test.each(['gpt-image-2', 'dall-e-3'])('only negative_prompt reaches %s, inside the prompt', async (model) => {
    await made(await ask(model, foreign))
    const { body } = await lastSent()
    expect(body).toMatchObject({ prompt: 'A cat on a roof\n\nAvoid: dogs' })
    for (const field of Object.keys(foreign)) expect(body).not.toHaveProperty(field)
  })

  test.each([{ image: null, background: null, input: null }, { image: [] }])('%j counts as absent', async (nothing) => {
    await made(await ask('dall-e-3', nothing))
    for (const field of Object.keys(nothing)) expect((await lastSent()).body).not.toHaveProperty(field)
  })

  test('a vendor that supports the fields receives them', async () => {
    await made(await ask('qwen-image-max', foreign))
    expect((await lastSent()).body).toMatchObject({ parameters: foreign })
  })
})

const inline = (bytes: Uint8Array, type = 'image/png') => `data:${type};base64,${Buffer.from(bytes).toString('base64')}`

describe('reference images', () => {
  const data = `data:image/png;base64,${drawImage({ width: 64, height: 64, format: 'png', seed: 1 }).toString('base64')}`

  test.each([
    { model: 'qwen-image-edit-plus', sent: { input: { messages: [{ content: [{ image: data }, {}] }] } } },
    { model: 'doubao-seedream-4-0', sent: { image: data } },
    {
      model: 'gemini-2.5-flash-image',
      sent: { contents: [{ parts: [{ inlineData: { mimeType: 'image/png' } }, {}] }] },
    },
  ])('an inline image is sent to $model in the vendor’s form', async ({ model, sent }) => {
    await made(await ask(model, { image: data }))
    expect((await lastSent()).body).toMatchObject(sent)
  })

  test('links are passed on, and a wrong number of images is refused', async () => {
    const image = ['https://example.com/a.png', 'http://example.com/b.png']
    await made(await ask('doubao-seedream-4-0', { image }))
    expect((await lastSent()).body).toMatchObject({ image })
    await isInvalid(() => ask('qwen-image-edit'), 'image')
    await isInvalid(() => ask('qwen-image-edit', { image: [data, data, data, data] }), 'image')
    await isInvalid(() => ask('gpt-image-2', { image: data }), 'image')
  })

  test.each(['https://127.0.0.1/a.png', 'http://10.0.0.1/a.png', 'file:///etc/passwd', 'data:text/html;base64,AAAA'])(
    'the URL %s is refused',
    (image) => isInvalid(() => ask('doubao-seedream-4-0', { image }), 'image', 'invalid_url'),
  )

  const long = drawImage({ width: 1_700, height: 100, format: 'png', seed: 1 })
  test.each([
    ['a GIF', inline(Buffer.from('GIF89a\x01\x00\x01\x00', 'latin1'), 'image/gif'), 'invalid_image_format'],
    ['HTML', inline(Buffer.from('<html><script>')), 'invalid_image_format'],
    ['cut off in its header', inline(long.subarray(0, 18)), 'invalid_image'],
    ['too long for its width', inline(long), 'invalid_image'],
  ])('an inline image that is %s is refused', async (_name, image, code) => {
    await isInvalid(() => ask('doubao-seedream-4-0', { image }), 'image', code)
    await isInvalid(() => ask('gemini-2.5-flash-image', { image: [data, image] }), 'image[1]', code)
  })

  test('the type of an inline image is read from its header, not from its data URL', async () => {
    await made(await ask('gemini-2.5-flash-image', { image: data.replace('image/png', 'image/jpeg') }))
    expect((await lastSent()).body).toMatchObject({
      contents: [{ parts: [{ inlineData: { mimeType: 'image/png' } }, {}] }],
    })
  })
})

describe('charges', () => {
  test('prompt tokens and image tokens are recorded separately, each at its own price', async () => {
    const record = await recordOf(gateway, await ask('gpt-image-2', { quality: 'low', size: '1024x1024' }))
    // 5 and 30 dollars per million.
    expect(record).toMatchObject({ basis: 'vendor', usage: { input: 5, imageOutput: 272 } })
    expect(record.cost).toBe(nano(5n * 5_000n + 272n * 30_000n))
  })

  test('dall-e-2 is charged per image by its size', async () => {
    for (const [size, cost] of [
      ['1024x1024', '0.02'],
      ['512x512', '0.018'],
      ['256x256', '0.016'],
    ]) {
      expect((await ask('dall-e-2', { size })).headers.get('x-turnpike-cost')).toBe(cost ?? '')
    }
  })

  test('without usage from the vendor the charge is an estimate', async () => {
    const response = await gateway.post(path, { model: 'gpt-image-2', prompt: 'a cat sandbox:nousage' })
    expect(response.status).toBe(200)
    const record = await recordOf(gateway, response)
    expect(record.basis).toBe('estimated')
    expect(record.cost).toBeGreaterThan(0n)
  })

  test('an image that cannot be fetched for the client is free, and its cost is recorded', async () => {
    const { posted } = await gateway.balance()
    const ask = { model: 'qwen-image-2.0', prompt: 'a cat sandbox:expired', response_format: 'b64_json' }
    const response = await gateway.post(path, ask)
    expect([response.status, response.headers.get('x-should-retry')]).toEqual([502, 'false'])
    expect((await gateway.balance()).posted).toBe(posted)
    const [attempt] = await attemptsOf(gateway, response)
    expect(attempt?.vendor_cost).toBe(35_000_000n as never)
  })

  test('an insufficient balance is a 402 in the common form', async () => {
    const { key } = await gateway.account({ dollars: '0.001' })
    const body = { model: 'gpt-image-2', prompt: 'a cat' }
    const response = await refusedForFree(gateway, () => gateway.post(path, body, { authorization: `Bearer ${key}` }))
    expect([response.status, await response.json()]).toMatchObject([
      402,
      { error: { code: 'insufficient_balance', param: null } },
    ])
  })
})
