import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import type { APIError, OpenAI } from 'openai'
import { openaiClient } from '../support/clients.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { recordOf } from '../support/records.ts'

// The unmodified official client: by default it asks for base64 and decodes it itself.

let gateway: TestGateway
let client: OpenAI
beforeAll(async () => {
  gateway = await startTestGateway({ mode: 'leased' })
  client = openaiClient(gateway)
})
afterEach(() => gateway.assertBooks())
afterAll(() => gateway.close())

const failure = async (made: Promise<unknown>): Promise<APIError> =>
  made.then(
    () => Promise.reject(new Error('it was answered')),
    (error: unknown) => error as APIError,
  )

const speak = (body: { model: string; input: string; voice: string }) => failure(client.audio.speech.create(body))

describe('embeddings', () => {
  test.each(['text-embedding-3-small', 'text-embedding-v4', 'text-embedding-004', 'voyage-3.5', 'embed-v4.0'])(
    '%s gives the same vectors by default and as floats',
    async (model) => {
      const input = ['a calm sea', 'a full tide', 'a fair moon']
      const { data: made, response } = await client.embeddings.create({ model, input }).withResponse()
      expect(made.data.map(({ index }) => index)).toEqual([0, 1, 2])
      const plain = await client.embeddings.create({ model, input, encoding_format: 'float' })
      for (const [at, { embedding }] of made.data.entries()) {
        expect(typeof embedding[0]).toBe('number')
        expect(embedding.length).toBe(plain.data[at]?.embedding.length ?? 0)
        expect(Math.hypot(...embedding)).toBeCloseTo(1, 4)
        expect(new Float32Array(embedding)).toEqual(new Float32Array(plain.data[at]?.embedding ?? []))
      }
      expect(made.model).toBe(model)
      const { usage } = await recordOf(gateway, response)
      expect(made.usage.total_tokens).toBe(usage?.input ?? -1)
    },
  )

  test('a thousand inputs at once keep their order', async () => {
    const input = Array.from({ length: 1_000 }, (_, at) => `text ${at % 3}`)
    const { data } = await client.embeddings.create({ model: 'text-embedding-v4', input, dimensions: 64 })
    expect(data).toHaveLength(1_000)
    for (const [at, { embedding }] of data.entries()) {
      expect([...embedding]).toEqual([...(data[at % 3]?.embedding ?? [])])
    }
  })

  test('an error has its status, code and field', async () => {
    const error = await failure(client.embeddings.create({ model: 'voyage-3.5', input: 'x', dimensions: 3 }))
    expect(error).toMatchObject({ status: 400, code: 'unsupported_value', param: 'dimensions' })
    expect(await failure(client.embeddings.create({ model: 'none', input: 'x' }))).toMatchObject({ status: 404 })
  })
})

describe('speech', () => {
  test.each(['qwen3-tts-flash', 'tts-1', 'gpt-4o-mini-tts', 'gemini-2.5-flash-preview-tts'])(
    '%s speaks mp3 by default and wav on request',
    async (model) => {
      const mp3 = await client.audio.speech.create({ model, input: 'The sea is calm tonight.', voice: 'alloy' })
      expect(mp3.headers.get('content-type')).toBe('audio/mpeg')
      const audio = Buffer.from(await mp3.arrayBuffer())
      expect([audio[0], (audio[1] ?? 0) & 0xe0]).toEqual([0xff, 0xe0])
      const wav = await client.audio.speech.create({
        model,
        input: 'The sea is calm tonight.',
        voice: 'alloy',
        response_format: 'wav',
      })
      expect(Buffer.from(await wav.arrayBuffer()).toString('latin1', 0, 4)).toBe('RIFF')
    },
  )

  test('audio can be read while it is produced', async () => {
    const response = await client.audio.speech.create({
      model: 'qwen3-tts-flash',
      input: `${'The tide is full. '.repeat(6)}sandbox:pace=100`,
      voice: 'Cherry',
    })
    let pieces = 0
    for await (const _ of response.body ?? []) pieces++
    expect(pieces).toBeGreaterThan(3)
    expect(await recordOf(gateway, response)).toMatchObject({ status: 200, streamed: true })
  })

  test('an error has its status and code', async () => {
    expect(await speak({ model: 'gpt-4o', input: 'x', voice: 'alloy' })).toMatchObject({
      status: 400,
      code: 'endpoint_model_mismatch',
    })
    expect(await speak({ model: 'tts-1', input: 'x', voice: 'nobody' })).toMatchObject({ status: 400, param: 'voice' })
    expect(await speak({ model: 'tts-1', input: '', voice: 'alloy' })).toMatchObject({ status: 400, param: 'input' })
  })
})
