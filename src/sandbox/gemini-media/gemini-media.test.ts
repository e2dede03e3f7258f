import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { recordAudio } from '../files/audio.ts'
import { readImageHeader } from '../files/image-header.ts'
import { type Answer as TextAnswer, errorOf, splitEvents } from '../gemini/testing.ts'
import { openMedia } from '../media/testing.ts'
import { jsonOf } from '../testing.ts'

const { sandbox, post, bill, clearBill } = openMedia()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

type InlineData = { mimeType: string; data: string }
type Details = { modality: string; tokenCount: number }[]
type Answer = {
  candidates?: { content?: { parts?: { text?: string; inlineData?: InlineData }[] }; finishReason?: string }[]
  promptFeedback?: unknown
  usageMetadata: TextAnswer['usageMetadata'] & { candidatesTokensDetails?: Details }
}

const call = (model: string, method: string, body: unknown) => post(`/google/v1beta/models/${model}:${method}`, body)
const mediaOf = (answers: readonly Answer[]): InlineData[] =>
  answers
    .flatMap(({ candidates = [] }) => candidates.flatMap(({ content }) => content?.parts ?? []))
    .flatMap(({ inlineData }) => inlineData ?? [])
const dot = (vector: readonly number[] = []): number => vector.reduce((sum, value) => sum + value * value, 0)

describe('Gemini images', () => {
  const model = 'gemini-2.5-flash-image'
  const draw = (config: object = {}, text = 'a red fox', more: { model?: string; method?: string } = {}) =>
    call(more.model ?? model, more.method ?? 'generateContent', {
      contents: [{ parts: [{ text }] }],
      generationConfig: config,
    })

  test('the tokens of an image are reported and billed apart from the text', async () => {
    const answer = await jsonOf<Answer>(draw({ responseModalities: ['TEXT', 'IMAGE'] }))
    const [image] = mediaOf([answer])
    expect(image?.mimeType).toBe('image/png')
    expect(readImageHeader(Buffer.from(image?.data ?? '', 'base64'))).toMatchObject({ width: 1024, height: 1024 })
    const { promptTokenCount: input, candidatesTokenCount: output = 0, candidatesTokensDetails } = answer.usageMetadata
    expect(candidatesTokensDetails).toEqual([{ modality: 'IMAGE', tokenCount: 1290 }])
    expect(await bill()).toMatchObject([{ units: { input, output: output - 1290, imageOutput: 1290 } }])
  })

  test('an image has the requested aspect ratio and size', async () => {
    const config = { responseModalities: ['IMAGE'], imageConfig: { aspectRatio: '16:9', imageSize: '4K' } }
    const answer = await jsonOf<Answer>(draw(config, 'a fox', { model: 'gemini-3-pro-image' }))
    const [image] = mediaOf([answer])
    expect(readImageHeader(Buffer.from(image?.data ?? '', 'base64'))).toMatchObject({ width: 5376, height: 3072 })
    expect(answer.usageMetadata.candidatesTokenCount).toBe(2000)
  })

  test('a stream sends an image whole', async () => {
    const text = await (await draw({}, 'a fox', { method: 'streamGenerateContent?alt=sse' })).text()
    const answers = splitEvents(text).map((event): Answer => JSON.parse(event))
    expect(mediaOf(answers).length).toBe(1)
    expect(answers.map(({ candidates }) => candidates?.[0]?.finishReason)).toEqual([undefined, 'STOP'])
    const array = await jsonOf<Answer[]>(draw({}, 'a fox', { method: 'streamGenerateContent' }))
    expect(mediaOf(array)).toEqual(mediaOf(answers))
  })

  test('a withheld image is not billed', async () => {
    const answer = await jsonOf<Answer>(draw({}, 'a fox sandbox:refusal'))
    expect(answer.candidates).toMatchObject([{ finishReason: 'IMAGE_SAFETY' }])
    const blocked = await jsonOf<Answer>(draw({}, 'a fox sandbox:blocked'))
    expect([blocked.candidates, blocked.promptFeedback]).toEqual([undefined, expect.anything()])
    expect((await bill()).map(({ units }) => units.imageOutput ?? 0)).toEqual([0, 0])
  })

  test.each([
    ['audio as the modality', { responseModalities: ['AUDIO'] }],
    ['an unknown aspect ratio', { imageConfig: { aspectRatio: '7:5' } }],
    ['an unknown size', { imageConfig: { imageSize: '1k' } }],
    ['two candidates', { candidateCount: 2 }],
  ])('an image request is refused with a 400: %s', async (_, config) => {
    expect(await errorOf(draw(config))).toMatchObject({ http: 400, status: 'INVALID_ARGUMENT' })
  })
})

const speak = (config: object, method = 'generateContent') =>
  call('gemini-2.5-flash-preview-tts', method, {
    contents: [{ parts: [{ text: 'Say warmly: hello there' }] }],
    generationConfig: config,
  })
const voice = (voiceName: string) => ({ speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName } } } })

describe('Gemini speech', () => {
  const audio = { responseModalities: ['AUDIO'] }
  const sound = recordAudio('pcm', 23 * 60)

  test('speech is bare samples with the sample rate in its media type', async () => {
    const answer = await jsonOf<Answer>(speak({ ...audio, ...voice('Kore') }))
    expect(mediaOf([answer])).toEqual([{ mimeType: 'audio/L16;codec=pcm;rate=24000', data: sound.toString('base64') }])
    expect(answer.usageMetadata.candidatesTokensDetails).toEqual([{ modality: 'AUDIO', tokenCount: 35 }])
    expect(await bill()).toMatchObject([{ units: { audioOutput: 35 } }])
  })

  test('speech is streamed in pieces', async () => {
    const text = await (await speak(audio, 'streamGenerateContent?alt=sse')).text()
    const pieces = mediaOf(splitEvents(text).map((event): Answer => JSON.parse(event)))
    expect(pieces.length).toBe(2)
    expect(Buffer.concat(pieces.map(({ data }) => Buffer.from(data, 'base64')))).toEqual(sound)
  })

  test.each([
    ['no audio modality', {}, 'response modalities'],
    ['an unknown voice', { ...audio, ...voice('alloy') }, 'Voice name alloy is not supported'],
  ])('a speech request is refused with a 400: %s', async (_, config, message) => {
    expect(await errorOf(speak(config))).toMatchObject({ http: 400, message: expect.stringContaining(message) })
  })
})

describe('Imagen', () => {
  const model = 'imagen-4.0-generate-001'
  type Predicted = { predictions?: { mimeType?: string; bytesBase64Encoded?: string; raiFilteredReason?: string }[] }
  const predict = (parameters: object, prompt = 'a red fox') =>
    call(model, 'predict', { instances: [{ prompt }], parameters })

  test('the images are billed per image', async () => {
    const { predictions = [] } = await jsonOf<Predicted>(
      predict({ sampleCount: 2, aspectRatio: '16:9', imageSize: '2K' }),
    )
    expect(predictions.map(({ mimeType }) => mimeType)).toEqual(['image/png', 'image/png'])
    const header = readImageHeader(Buffer.from(predictions[1]?.bytesBase64Encoded ?? '', 'base64'))
    expect(header).toMatchObject({ width: 2816, height: 1536 })
    expect(await bill()).toMatchObject([{ units: { images: { count: 2 } }, cost: '0.00008' }])
  })

  test('a filtered image is left out, or explained if includeRaiReason is set', async () => {
    const text = 'a fox sandbox:fail-image=1'
    expect(await jsonOf<Predicted>(predict({ sampleCount: 1 }, text))).toEqual({})
    const told = await jsonOf<Predicted>(predict({ sampleCount: 2, includeRaiReason: true }, text))
    expect(told.predictions?.[0]?.raiFilteredReason).toBeString()
    expect((await bill()).map(({ units }) => units.images?.count)).toEqual([0, 1])
  })

  test.each([
    ['five images', { sampleCount: 5 }],
    ['an unknown aspect ratio', { aspectRatio: '2:1' }],
    ['an unknown size', { imageSize: '4K' }],
  ])('an Imagen request is refused with a 400: %s', async (_, parameters) => {
    expect(await errorOf(predict(parameters))).toMatchObject({ http: 400, status: 'INVALID_ARGUMENT' })
  })
})

type Embedded = { embedding: { values: number[] }; usageMetadata?: unknown }

const content = (text: string) => ({ parts: [{ text }] })

/** The vector's number of dimensions, its squared length, and the usage. */
const lengths = async (model: string, dimensions: number) => {
  const body = { content: content('hello world'), outputDimensionality: dimensions }
  const { embedding, usageMetadata } = await jsonOf<Embedded>(call(model, 'embedContent', body))
  return [embedding.values.length, Math.round(dot(embedding.values) * 100) / 100, usageMetadata]
}

describe('Gemini embeddings', () => {
  const model = 'gemini-embedding-001'

  test('a shortened vector has unit length in the second generation only', async () => {
    expect(await lengths(model, 3072)).toEqual([3072, 1, undefined])
    expect(await lengths(model, 768)).toEqual([768, expect.not.closeTo(1, 1), undefined])
    expect(await lengths('gemini-embedding-2', 768)).toEqual([768, 1, { promptTokenCount: 2 }])
    expect((await bill()).map(({ units }) => units.input)).toEqual([2, 2, 2])
  })

  test('batched embeddings come back in the order of the inputs', async () => {
    const requests = ['a', 'b'].map((text) => ({
      model: `models/${model}`,
      content: content(text),
      taskType: 'CLUSTERING',
    }))
    const { embeddings } = await jsonOf<{ embeddings: { values: number[] }[] }>(
      call(model, 'batchEmbedContents', { requests }),
    )
    const { embedding } = await jsonOf<Embedded>(call(model, 'embedContent', requests[1]))
    expect([embeddings.length, embeddings[1]]).toEqual([2, embedding])
  })

  const one = { model: `models/${model}`, content: content('a') }

  test.each([
    ['101 requests at once', 'batchEmbedContents', { requests: Array.from({ length: 101 }, () => one) }],
    ['a request without its model', 'batchEmbedContents', { requests: [{ content: content('a') }] }],
    ['no requests', 'batchEmbedContents', { requests: [] }],
    ['an empty text', 'embedContent', { content: content('') }],
    ['too many dimensions', 'embedContent', { ...one, outputDimensionality: 4000 }],
    ['an unknown field', 'embedContent', { ...one, dimensions: 5 }],
  ])('an embedding request is refused with a 400: %s', async (_, method, body) => {
    expect(await errorOf(call(model, method, body))).toMatchObject({ http: 400, status: 'INVALID_ARGUMENT' })
  })
})

test('a method that the model does not support is a 404', async () => {
  const contents = [{ parts: [{ text: 'hi' }] }]
  for (const [model, method, body] of [
    ['gemini-embedding-001', 'generateContent', { contents }],
    ['imagen-4.0-generate-001', 'generateContent', { contents }],
    ['gemini-2.5-flash-image', 'predict', { instances: [{ prompt: 'a' }] }],
    ['gemini-2.5-pro', 'embedContent', { content: contents[0] }],
  ] as const) {
    expect(await errorOf(call(model, method, body))).toMatchObject({ http: 404, status: 'NOT_FOUND' })
  }
})
