import { describe, expect, test } from 'bun:test'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { APICallError, embed, embedMany, generateImage } from 'ai'
import { readImageHead } from '../../src/base/image-head.ts'
import { drawImage } from '../../src/sandbox/files/image.ts'
import { thrownBy } from '../support/clients.ts'
import { gatewayForTests } from '../support/gateway.ts'
import { lastRequestOf } from '../support/records.ts'

// Embeddings and images through the unmodified AI SDK.

// The SDK follows no links to private addresses but the gateway's own, so the gateway keeps the simulators' images.
const gateway = gatewayForTests({ mode: 'leased', yaml: 'artifacts: { keep: true }' })

const provider = (apiKey = gateway.key) =>
  createOpenAICompatible({ name: 'turnpike', apiKey, baseURL: `${gateway.url}/v1` })

describe.each(['text-embedding-3-small', 'text-embedding-v4', 'gemini-embedding-001', 'voyage-3.5', 'embed-v4.0'])(
  'embeddings of %s',
  (id) => {
    test('embedMany keeps the order of the values and reports the usage', async () => {
      const values = Array.from({ length: 25 }, (_, at) => `text number ${at}`)
      const { embeddings, usage } = await embedMany({ model: provider().embeddingModel(id), values, maxRetries: 0 })
      expect(embeddings).toHaveLength(25)
      expect(new Set(embeddings.map(String)).size).toBe(25)
      const { embedding } = await embed({ model: provider().embeddingModel(id), value: 'text number 17' })
      expect(embeddings[17]).toEqual(embedding)
      expect(usage.tokens).toBe(75)
    })

    test('embed returns as many dimensions as asked for', async () => {
      const { embedding } = await embed({
        model: provider().embeddingModel(id),
        value: 'text',
        providerOptions: { turnpike: { dimensions: 512 } },
      })
      expect(embedding).toHaveLength(512)
    })
  },
)

test('embedMany embeds a thousand values at a vendor that takes ten at a time', async () => {
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
  ])('%s returns an image of the media type that it states', async (id) => {
    const { image, images } = await generateImage({ model: provider().imageModel(id), prompt, maxRetries: 0 })
    expect(images).toHaveLength(1)
    expect(readImageHead(image.uint8Array)).toMatchObject({ mediaType: image.mediaType as 'image/png' })
  })

  test('several images come in the size asked for', async () => {
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

  test('several images can be edited with a mask', async () => {
    const { images } = await generateImage({
      model: provider().imageModel('gpt-image-1.5'),
      prompt: { text: prompt, images: [picture(), picture()], mask: picture(true) },
      maxRetries: 0,
    })
    expect(images).toHaveLength(1)
    expect(await lastRequestOf(gateway, gateway.accountId)).toMatchObject({ capability: 'edits', basis: 'vendor' })
  })

  test('errors carry the status and the message, and are marked as not retryable', async () => {
    const unknown = await thrownBy(draw('gpt-image-0'), APICallError)
    expect(unknown).toMatchObject({ statusCode: 404, isRetryable: false })
    expect(unknown.message).toBe('The model `gpt-image-0` does not exist or you do not have access to it.')
    const stranger = await thrownBy(draw('gpt-image-1.5', 'sk-nobody'), APICallError)
    expect(stranger).toMatchObject({ statusCode: 401, isRetryable: false })
    expect(stranger.message).toStartWith('Incorrect API key provided, ')
  })
})
