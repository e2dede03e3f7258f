import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { APICallError, embed, embedMany, generateImage } from 'ai'
import { readImageHead } from '../../src/base/image-head.ts'
import { drawImage } from '../../src/sandbox/files/image.ts'
import { thrownBy } from '../support/clients.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { lastRequestOf } from '../support/records.ts'

// Vectors and pictures through the AI SDK, as it is.

let gateway: TestGateway
beforeAll(async () => {
  // It follows links to no private address but the gateway's own, and the simulators have no other: ours are kept.
  gateway = await startTestGateway({ mode: 'leased', yaml: 'artifacts: { keep: true }' })
})
afterEach(() => gateway.assertBooks())
afterAll(() => gateway.close())

const provider = (apiKey = gateway.key) =>
  createOpenAICompatible({ name: 'turnpike', apiKey, baseURL: `${gateway.url}/v1` })

describe.each(['text-embedding-3-small', 'text-embedding-v4', 'gemini-embedding-001', 'voyage-3.5', 'embed-v4.0'])(
  'embeddings of %s',
  (id) => {
    test('embedMany: in their order, with the usage that is charged', async () => {
      const values = Array.from({ length: 25 }, (_, at) => `text number ${at}`)
      const { embeddings, usage } = await embedMany({ model: provider().embeddingModel(id), values, maxRetries: 0 })
      expect(embeddings).toHaveLength(25)
      expect(new Set(embeddings.map(String)).size).toBe(25)
      const { embedding } = await embed({ model: provider().embeddingModel(id), value: 'text number 17' })
      expect(embeddings[17]).toEqual(embedding)
      expect(usage.tokens).toBe(75)
    })

    test('with dimensions', async () => {
      const { embedding } = await embed({
        model: provider().embeddingModel(id),
        value: 'text',
        providerOptions: { turnpike: { dimensions: 512 } },
      })
      expect(embedding).toHaveLength(512)
    })
  },
)

test('embedMany of a thousand on a vendor that takes ten', async () => {
  const values = Array.from({ length: 1_000 }, (_, at) => `text ${at}`)
  const { embeddings, usage } = await embedMany({ model: provider().embeddingModel('text-embedding-v4'), values })
  expect(new Set(embeddings.map(String)).size).toBe(1_000)
  expect(usage.tokens).toBe(2_000)
  expect(await lastRequestOf(gateway, gateway.accountId)).toMatchObject({ basis: 'vendor', usage: { input: 2_000 } })
})

const prompt = 'A cat on a roof'
const picture = (isTransparent = false) =>
  new Uint8Array(drawImage({ width: 256, height: 256, format: 'png', seed: 1, isTransparent }))

const draw = (id: string, key?: string) => generateImage({ model: provider(key).imageModel(id), prompt })

describe('generateImage', () => {
  test.each([
    'gpt-image-1.5',
    'qwen-image-max',
    'doubao-seedream-4-0',
    'imagen-4.0-generate-001',
    'gemini-3-pro-image',
  ])('%s: a picture of the type that it says', async (id) => {
    const { image, images } = await generateImage({ model: provider().imageModel(id), prompt, maxRetries: 0 })
    expect(images).toHaveLength(1)
    expect(readImageHead(image.uint8Array)).toMatchObject({ mediaType: image.mediaType as 'image/png' })
  })

  test('several, in the size asked for', async () => {
    const { images } = await generateImage({
      model: provider().imageModel('gpt-image-1.5'),
      prompt,
      n: 3,
      size: '1536x1024',
      maxRetries: 0,
    })
    expect(new Set(images.map(({ base64 }) => base64)).size).toBe(3)
    for (const { uint8Array } of images) expect(readImageHead(uint8Array)).toMatchObject({ width: 1536, height: 1024 })
  })

  test('an edit of several pictures with a mask', async () => {
    const { images } = await generateImage({
      model: provider().imageModel('gpt-image-1.5'),
      prompt: { text: prompt, images: [picture(), picture()], mask: picture(true) },
      maxRetries: 0,
    })
    expect(images).toHaveLength(1)
    expect(await lastRequestOf(gateway, gateway.accountId)).toMatchObject({ capability: 'edits', basis: 'vendor' })
  })

  test('errors carry status and message, and are not tried again in vain', async () => {
    expect(await thrownBy(draw('gpt-image-0'), APICallError)).toMatchObject({ statusCode: 404, isRetryable: false })
    const stranger = await thrownBy(draw('gpt-image-1.5', 'sk-nobody'), APICallError)
    expect(stranger).toMatchObject({ statusCode: 401, isRetryable: false })
  })
})
