import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { toFile, type APIError, type OpenAI } from 'openai'
import { readBase64Head, readImageHead } from '../../src/base/image-head.ts'
import { drawImage } from '../../src/sandbox/files/image.ts'
import { openaiClient } from '../support/clients.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { lastRequestOf } from '../support/records.ts'

// Images as the official client asks for them.

let gateway: TestGateway
let client: OpenAI

beforeAll(async () => {
  gateway = await startTestGateway({ mode: 'leased' })
  client = openaiClient(gateway)
})
afterEach(() => gateway.assertBooks())
afterAll(() => gateway.close())

const model = 'gpt-image-1.5'
const prompt = 'A cat on a roof'
const png = (isTransparent: boolean) =>
  toFile(drawImage({ width: 256, height: 256, format: 'png', seed: 1, isTransparent }), 'cat.png', {
    type: 'image/png',
  })

async function failure(asked: Promise<unknown>): Promise<APIError> {
  return asked.then(
    () => {
      throw new Error('it was not refused')
    },
    (thrown: APIError) => thrown,
  )
}

describe('generated images', () => {
  test('an image comes as bytes, with its size and usage', async () => {
    const { data, usage, size } = await client.images.generate({ model, prompt, size: '1536x1024', quality: 'low' })
    expect(readBase64Head(data?.[0]?.b64_json ?? '')).toEqual({ mediaType: 'image/png', width: 1536, height: 1024 })
    expect(size).toBe('1536x1024')
    expect(usage).toMatchObject({ output_tokens: 408, input_tokens_details: { image_tokens: 0 } })
  })

  test.each(['dall-e-2', 'qwen-image-max', 'doubao-seedream-4-0', 'imagen-4.0-generate-001'])(
    'links to images of %s can be fetched',
    async (model) => {
      const { data } = await client.images.generate({ model, prompt, response_format: 'url' })
      const body = await (await fetch(data?.[0]?.url ?? '')).arrayBuffer()
      expect(readImageHead(new Uint8Array(body))).toMatchObject({ width: expect.any(Number) })
    },
  )

  test('several images come in one answer', async () => {
    const { data } = await client.images.generate({ model, prompt, n: 3, quality: 'low' })
    expect(new Set(data?.map(({ b64_json }) => b64_json)).size).toBe(3)
  })
})

describe('edited images', () => {
  test('an image can be edited with a mask', async () => {
    const image = await png(false)
    const { data, usage } = await client.images.edit({ model, prompt, image, mask: await png(true), n: 2 })
    expect(data).toHaveLength(2)
    expect(usage?.input_tokens_details.image_tokens).toBeGreaterThan(0)
  })

  test('several images can be edited together', async () => {
    const { data } = await client.images.edit({ model, prompt, image: [await png(false), await png(false)] })
    expect(data).toHaveLength(1)
  })

  test('an edit can be streamed with a partial image', async () => {
    const stream = await client.images.edit({ model, prompt, image: await png(false), stream: true, partial_images: 1 })
    const types: string[] = []
    for await (const { type } of stream) types.push(type)
    expect(types).toEqual(['image_edit.partial_image', 'image_edit.completed'])
  })
})

async function eventsOf(model: string, prompt: string, partial_images: number, n = 1) {
  const stream = await client.images.generate({ model, prompt, stream: true, partial_images, n })
  const seen: OpenAI.ImageGenStreamEvent[] = []
  for await (const event of stream) seen.push(event)
  return seen
}

describe('streamed images', () => {
  test("partial images come before the final image, and all are charged by the vendor's usage", async () => {
    const seen = await eventsOf(model, prompt, 2)
    expect(seen.map(({ type }) => type)).toEqual([
      'image_generation.partial_image',
      'image_generation.partial_image',
      'image_generation.completed',
    ])
    for (const { b64_json } of seen) expect(readBase64Head(b64_json)).toMatchObject({ mediaType: 'image/png' })
    const last = seen.at(-1)
    expect(last?.type === 'image_generation.completed' && last.usage.output_tokens).toBe(1056 + 200)
    const record = await lastRequestOf(gateway, gateway.accountId)
    expect(record).toMatchObject({ basis: 'vendor', streamed: true, usage: { imageOutput: 1256 } })
  })

  test('each of several images has its own end event', async () => {
    const seen = await eventsOf(model, prompt, 1, 2)
    expect(seen.filter(({ type }) => type === 'image_generation.completed')).toHaveLength(2)
    expect(await lastRequestOf(gateway, gateway.accountId)).toMatchObject({
      basis: 'vendor',
      usage: { imageOutput: 2 * (1056 + 100) },
    })
  })

  test.each(['qwen-image-max', 'doubao-seedream-4-5', 'gemini-3-pro-image', 'dall-e-2'])(
    '%s, which cannot stream, gives one complete image',
    async (model) => {
      const seen = await eventsOf(model, prompt, 2)
      expect(seen.map(({ type }) => type)).toEqual(['image_generation.completed'])
      expect(readBase64Head(seen[0]?.b64_json ?? '')).toMatchObject({ width: expect.any(Number) })
    },
  )

  test('an error midway is thrown, and what was shown is charged as an estimate', async () => {
    const error = await failure(eventsOf(model, `${prompt} sandbox:midstream-error`, 3, 2))
    expect(error.message).toBeTruthy()
    expect(await lastRequestOf(gateway, gateway.accountId)).toMatchObject({ basis: 'estimated', status: 502 })
  })

  test('a stream that is cut off is an error and not an end', async () => {
    await failure(eventsOf(model, `${prompt} sandbox:cut=1`, 2))
    expect(await lastRequestOf(gateway, gateway.accountId)).toMatchObject({ basis: 'estimated', status: 502 })
  })

  test('a failure before the first image is an ordinary error and free', async () => {
    const { posted } = await gateway.balance()
    expect(await failure(eventsOf(model, `${prompt} sandbox:status=500`, 2))).toMatchObject({ status: 502 })
    expect((await gateway.balance()).posted).toBe(posted)
  })

  test('a client that leaves after the first preview pays for what was shown', async () => {
    const { id, key } = await gateway.account({ dollars: '1' })
    const stream = await openaiClient(gateway, { apiKey: key }).images.generate({
      model,
      prompt: `${prompt} sandbox:pace=200`,
      stream: true,
      partial_images: 3,
    })
    for await (const event of stream) if (event.type === 'image_generation.partial_image') break
    await until(async () => (await lastRequestOf(gateway, id)) !== undefined)
    const record = await lastRequestOf(gateway, id)
    expect(record).toMatchObject({ basis: 'estimated', status: 499 })
    expect(record?.cost).toBeGreaterThan(0n)
  })

  test.each(['qwen-image-max', 'doubao-seedream-4-5', 'gemini-3-pro-image', 'dall-e-2'])(
    'an image of %s, which cannot stream, is described by the fields that every event has',
    async (model) => {
      const [made] = await eventsOf(model, prompt, 2)
      expect(made).toMatchObject({ background: 'opaque', quality: 'medium' })
      const [width, height] = made?.size.split('x').map(Number) ?? []
      const mediaType = `image/${made?.output_format}`
      expect(readBase64Head(made?.b64_json ?? '')).toMatchObject({ mediaType, width, height })
    },
  )
})

describe('errors', () => {
  test("the gateway's own errors carry status, code and field", async () => {
    expect(await failure(client.images.generate({ model: 'gpt-image-0', prompt }))).toMatchObject({
      status: 404,
      code: 'model_not_found',
    })
    const badSize = client.images.generate({ model, prompt, size: '512x512' })
    expect(await failure(badSize)).toMatchObject({ status: 400, param: 'size', code: 'unsupported_value' })
    const badKey = openaiClient(gateway, { apiKey: 'sk-nobody' }).images.generate({ model, prompt })
    expect(await failure(badKey)).toMatchObject({ status: 401, code: 'invalid_api_key' })
    const opaqueMask = client.images.edit({ model, prompt, image: await png(false), mask: await png(false) })
    expect(await failure(opaqueMask)).toMatchObject({ status: 400, param: 'mask', code: 'invalid_mask' })
  })

  test("a vendor's error keeps its status and code", async () => {
    const error = await failure(client.images.generate({ model, prompt: 'sandbox:fail=moderation_blocked' }))
    expect(error).toMatchObject({ status: 400, code: 'moderation_blocked' })
  })

  test('an edit that the balance does not cover is a 402', async () => {
    const { key } = await gateway.account({ dollars: '0.001' })
    const error = await failure(
      openaiClient(gateway, { apiKey: key }).images.edit({ model, prompt, image: await png(false) }),
    )
    expect(error.status).toBe(402)
    expect(error.message).toContain('Insufficient balance')
  })
})
