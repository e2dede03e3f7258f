import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '../base/json.ts'
import type { ImagesAnswer, ImagesAsk } from '../capabilities/images.ts'
import type { ImageLimits } from '../capabilities/limits.ts'
import { drawImage } from '../sandbox/files/image.ts'
import { explain as explainDashscope } from './dashscope/explain.ts'
import { vendors } from './index.ts'
import { imagesAskOf, plainContext } from './testing.ts'
import type { Step } from './vendor.ts'

// Feeds each adapter the vendor's documented responses, and checks what it makes of them.

const context = { ...plainContext, credential: 'vk-secret' }

const anySize: ImageLimits = {
  sizes: [],
  free: { step: 1 },
  qualities: [],
  countMax: 10,
  alwaysBytes: false,
  references: { min: 0, max: 3 },
}

type Options = { limits?: Partial<ImageLimits>; images?: ImageLimits; tokens?: true }

function askFor(body: JsonObject, { images, limits, tokens }: Options = {}): ImagesAsk {
  return imagesAskOf(body, images ?? { ...anySize, ...limits }, tokens === true ? 'tokens' : 'pieces')
}

const native = (parameters: JsonObject = {}, image?: string): JsonObject => ({
  input: {
    messages: [{ role: 'user', content: [...(image === undefined ? [] : [{ image }]), { text: 'a cat' }] }],
  },
  parameters,
})

function start(vendor: string, upstreamModel: string, ask: ImagesAsk): Extract<Step<ImagesAnswer>, { kind: 'calls' }> {
  const step = vendors.get(vendor)?.images?.start(ask, { ...context, upstreamModel })
  if (step?.kind !== 'calls') throw new Error('nothing was asked')
  return step
}

function sentBy(step: Extract<Step<ImagesAnswer>, { kind: 'calls' }>): { url: string; body: unknown } {
  const [call] = step.calls
  if (call?.transport !== 'vendor' || typeof call.body !== 'string') throw new Error('no call to the vendor')
  expect(JSON.stringify(call.body)).not.toContain('vk-secret')
  return { url: call.url, body: JSON.parse(call.body) }
}

function answer(body: unknown, contentType = 'application/json') {
  const bytes = body instanceof Uint8Array ? body : Buffer.from(JSON.stringify(body))
  return { header: (name: string) => (name === 'content-type' ? contentType : null), body: bytes }
}

const png = drawImage({ width: 64, height: 32, format: 'png', seed: 1 })
const base64 = png.toString('base64')

describe('DashScope images', () => {
  const made = {
    output: {
      choices: [
        { finish_reason: 'stop', message: { role: 'assistant', content: [{ image: 'https://oss.example/x.png' }] } },
      ],
    },
    usage: { image_count: 1, width: 1024, height: 1024 },
    request_id: 'd0250a3d',
  }

  test("the request is written in DashScope's own protocol", () => {
    const ask = askFor(native({ size: '1280*720', seed: 7, watermark: false }, 'https://example.com/a.png'))
    expect(sentBy(start('dashscope', 'qwen-image-2.0', ask))).toEqual({
      url: 'https://vendor.example/api/v1/services/aigc/multimodal-generation/generation',
      body: {
        model: 'qwen-image-2.0',
        input: { messages: [{ role: 'user', content: [{ image: 'https://example.com/a.png' }, { text: 'a cat' }] }] },
        parameters: { n: 1, size: '1280*720', watermark: false, seed: 7 },
      },
    })
  })

  test("the link is passed on and the vendor's count is billed", () => {
    const step = start('dashscope', 'qwen-image-2.0', askFor(native())).next([answer(made)])
    expect(step).toEqual({
      kind: 'answered',
      answer: { images: [{ media: { kind: 'url', url: 'https://oss.example/x.png' } }], width: 1024, height: 1024 },
      used: [{ usage: { images: { count: 1, size: '1024x1024' } }, basis: 'vendor' }],
    })
  })

  test('an image that was counted but not delivered is not billed', () => {
    const counted = { ...made, usage: { ...made.usage, image_count: 2 } }
    expect(start('dashscope', 'qwen-image-2.0', askFor(native())).next([answer(counted)])).toMatchObject({
      used: [{ usage: { images: { count: 1 } }, vendorUsage: { images: { count: 2 } }, basis: 'vendor' }],
    })
  })

  test("bytes are fetched from the vendor's link, and a file that is no image is a failure", () => {
    const ask = askFor({ prompt: 'a cat', response_format: 'b64_json' })
    const step = start('dashscope', 'qwen-image-2.0', ask).next([answer(made)])
    if (step.kind !== 'calls') throw new Error('nothing is fetched')
    expect(step.calls).toMatchObject([{ transport: 'linked', url: 'https://oss.example/x.png' }])
    expect(step.next([answer(png, 'text/html')])).toMatchObject({
      kind: 'answered',
      answer: { images: [{ media: { kind: 'bytes', mediaType: 'image/png', base64 } }] },
    })
    expect(() => step.next([answer(Buffer.from('<html>'))])).toThrow('is not an image')
  })

  test.each([
    ['InternalError', 500],
    ['ModelUnavailable', 500],
    ['RequestTimeOut', 408],
    ['Throttling.RateQuota', 429],
    ['Arrearage', 400],
    ['DataInspectionFailed', 400],
    ['', 200],
  ])('the code %j under a 200 gets the status that it usually has', (code, status) => {
    const step = start('dashscope', 'qwen-image-2.0', askFor(native()))
    expect(step.statusOf?.(answer({ code, message: 'x', request_id: 'r' }))).toBe(status)
    expect(step.statusOf?.(answer(made))).toBe(200)
  })

  test('an HTML page is a failure of the vendor', () => {
    const step = start('dashscope', 'qwen-image-2.0', askFor(native()))
    const page = answer(Buffer.from('<html>'))
    expect(step.statusOf?.(page)).toBe(200)
    expect(() => step.next([page])).toThrow(expect.objectContaining({ kind: 'upstream-failed' }) as never)
  })

  test.each([
    [400, 'InvalidParameter', 'upstream-rejected', false],
    [400, 'DataInspectionFailed', 'upstream-rejected', false],
    [400, 'Arrearage', 'upstream-failed', true],
    [401, 'InvalidApiKey', 'upstream-failed', true],
    [403, 'Model.AccessDenied', 'upstream-failed', true],
    [404, 'ModelNotFound', 'upstream-failed', true],
    [408, 'RequestTimeOut', 'upstream-timeout', true],
    [429, 'Throttling.RateQuota', 'too-many', true],
    [429, 'PostpaidBillOverdue', 'upstream-failed', true],
    [500, 'InternalError', 'upstream-failed', true],
  ])('a %d with %s is explained without our key', (status, code, kind, retryable) => {
    const body = JSON.stringify({ code, message: 'key vk-secret is bad', request_id: 'r' })
    const verdict = explainDashscope({ status, retryAfterSeconds: undefined, body }, context)
    expect([verdict.error.kind as string, verdict.retryable]).toEqual([kind, retryable])
    const said = JSON.stringify([verdict.error.message, verdict.error.details.refusal])
    expect(said).not.toContain('vk-secret')
    if (kind === 'upstream-rejected') {
      expect(verdict.error.details.refusal).toMatchObject({ protocol: 'dashscope', status })
    }
  })
})

describe('Ark images', () => {
  test('the request is for one image without a watermark', () => {
    const ask = askFor({
      prompt: 'a cat',
      negative_prompt: 'dogs',
      image: ['https://a.example/1.png'],
      size: '2048x2048',
    })
    expect(sentBy(start('ark', 'doubao-seedream-4-0-250828', ask))).toEqual({
      url: 'https://vendor.example/images/generations',
      body: {
        model: 'doubao-seedream-4-0-250828',
        prompt: 'a cat\n\nAvoid: dogs',
        response_format: 'url',
        sequential_image_generation: 'disabled',
        watermark: false,
        size: '2048x2048',
        image: 'https://a.example/1.png',
      },
    })
  })

  test.each([
    ['doubao-seedream-3-0-t2i', { seed: 7 }],
    ['doubao-seedream-4-0', {}],
    ['doubao-seedream-5-0', { output_format: 'png' }],
  ])('%s gets only the fields that it knows: %j', (model, known) => {
    const ask = askFor({ prompt: 'a cat', seed: 7, output_format: 'png' })
    const { seed, output_format } = sentBy(start('ark', model, ask)).body as JsonObject
    expect({ seed, output_format }).toEqual({ seed: undefined, output_format: undefined, ...known })
  })

  test('a failed image among others is left out and not billed', () => {
    const step = start('ark', 'seedream', askFor({ prompt: 'a cat' })).next([
      answer({
        data: [
          { error: { code: 'x', message: 'Held back.' } },
          { url: 'https://tos.example/2.jpeg', size: '2048x1024' },
        ],
        usage: { generated_images: 1, output_tokens: 8192, total_tokens: 8192 },
      }),
    ])
    expect(step).toMatchObject({
      kind: 'answered',
      answer: { images: [{ media: { url: 'https://tos.example/2.jpeg' } }], width: 2048, height: 1024 },
      used: [{ usage: { images: { count: 1 } }, basis: 'vendor' }],
    })
  })

  test('an image that was counted but not delivered is not billed', () => {
    const data = [{ url: 'https://tos.example/1.jpeg' }]
    const step = start('ark', 'seedream', askFor({ prompt: 'a cat' })).next([
      answer({ data, usage: { generated_images: 2 } }),
    ])
    expect(step).toMatchObject({
      used: [{ usage: { images: { count: 1 } }, vendorUsage: { images: { count: 2 } }, basis: 'vendor' }],
    })
  })

  test("if every image failed, the vendor's reason is passed on", () => {
    const step = start('ark', 'seedream', askFor({ prompt: 'a cat' })).next([
      answer({ data: [{ error: { code: 'x', message: 'Held back.' } }], usage: { generated_images: 0 } }),
    ])
    expect(step).toMatchObject({ kind: 'failed', error: { kind: 'upstream-rejected', message: 'Held back.' } })
  })

  test.each([
    [{ data: [{ error: { code: 'InternalServiceError', message: 'x' } }] }, 500],
    [{ data: [{ error: { code: 'OutputImageSensitiveContentDetected', message: 'x' } }] }, 200],
    [{ data: [{ error: { code: 'InternalServiceError' } }, { url: 'https://tos.example/2.jpeg' }] }, 200],
    [{ data: [] }, 200],
    [{ error: { code: 'ServerOverloaded', message: 'x', type: 'TooManyRequests' } }, 429],
    [{ error: { code: 'InternalServiceError', message: 'x', type: 'InternalServerError' } }, 500],
  ])('an error under a 200 gets the status that it usually has: %j', (body, status) => {
    expect(start('ark', 'seedream', askFor({ prompt: 'a cat' })).statusOf?.(answer(body))).toBe(status)
  })
})

describe('Google images', () => {
  const none = { sizes: [], references: { min: 0, max: 3 } }
  const { free: _, ...noSize } = { ...anySize, ...none }

  test('Imagen gets an aspect ratio and returns bytes', () => {
    const ask = askFor({ prompt: 'a cat', n: 2, size: '1664x928' }, { limits: { ...noSize } })
    const step = start('google', 'imagen-4.0-generate-001', { ...ask, limits: noSize })
    expect(sentBy(step)).toEqual({
      url: 'https://vendor.example/v1beta/models/imagen-4.0-generate-001:predict',
      body: {
        instances: [{ prompt: 'a cat' }],
        parameters: { sampleCount: 2, includeRaiReason: true, aspectRatio: '16:9' },
      },
    })
    const predictions = [{ bytesBase64Encoded: base64, mimeType: 'image/png' }, { raiFilteredReason: 'no' }]
    expect(step.next([answer({ predictions })])).toMatchObject({
      kind: 'answered',
      answer: { images: [{ media: { kind: 'bytes', base64 } }], width: 64, height: 32 },
      used: [{ usage: { images: { count: 1 } } }],
    })
    expect(step.next([answer({})])).toMatchObject({ kind: 'failed', error: { kind: 'upstream-rejected' } })
  })

  const usageMetadata = {
    promptTokenCount: 268,
    candidatesTokenCount: 1129,
    thoughtsTokenCount: 50,
    totalTokenCount: 1447,
    promptTokensDetails: [{ modality: 'IMAGE', tokenCount: 258 }],
    candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 1120 }],
  }

  test('the image in a Gemini answer is returned, with text and image tokens counted apart', () => {
    const ask = askFor({ prompt: 'a cat' }, { tokens: true })
    const step = start('google', 'gemini-3-pro-image', ask)
    const parts = [
      { text: 'thinking', thought: true, inlineData: { mimeType: 'image/png', data: 'AAAA' } },
      { text: 'Here it is.' },
      { inlineData: { mimeType: 'image/png', data: base64 } },
    ]
    const candidates = [{ content: { parts }, finishReason: 'STOP' }]
    expect(step.next([answer({ candidates, usageMetadata })])).toMatchObject({
      kind: 'answered',
      answer: { images: [{ media: { base64 } }] },
      used: [{ usage: { input: 10, imageInput: 258, output: 59, imageOutput: 1120 }, basis: 'vendor' }],
    })
    expect(step.next([answer({ promptFeedback: { blockReason: 'SAFETY' }, usageMetadata })])).toMatchObject({
      kind: 'failed',
      error: { message: expect.stringContaining('SAFETY') },
      used: [{ usage: { input: 10 } }],
    })
  })

  test.each([
    ['gemini-2.5-flash-image', '4096x2304', 1_290],
    ['gemini-3-pro-image', '1024x1024', 1_120],
    ['gemini-3-pro-image', '4096x2304', 2_000],
  ])("without the vendor's count, an image of %s in %s is estimated", (model, size, imageOutput) => {
    const step = start('google', model, askFor({ prompt: 'a cat', size }, { tokens: true }))
    const made = answer({ candidates: [{ content: { parts: [{ inlineData: { data: 'AAAA' } }] } }] })
    expect(step.next([made])).toMatchObject({ used: [{ usage: { imageOutput }, basis: 'estimated' }] })
  })

  test('an image linked by the client goes through the guarded fetch before anything is sent', () => {
    const ask = askFor(native({}, 'https://a.example/1.png'), { tokens: true })
    const first = start('google', 'gemini-2.5-flash-image', ask)
    expect(first.calls).toMatchObject([{ transport: 'guarded', url: 'https://a.example/1.png' }])
    expect(() => first.next([answer(Buffer.from('<html>'))])).toThrow(
      /^Invalid 'input\.messages\[0\]\.content\[\d\]\.image': the content of the URL cannot be used/,
    )
    const second = first.next([answer(png)])
    if (second.kind !== 'calls') throw new Error('nothing is sent')
    expect(sentBy(second).body).toMatchObject({
      contents: [{ parts: [{ inlineData: { mimeType: 'image/png', data: base64 } }, { text: 'a cat' }] }],
    })
  })
})

describe('the common protocol', () => {
  const limits = { alwaysBytes: true, qualities: ['auto', 'low', 'high'] }
  const usage = {
    input_tokens: 30,
    input_tokens_details: { text_tokens: 10, image_tokens: 20 },
    output_tokens: 1100,
    output_tokens_details: { image_tokens: 1056, text_tokens: 44 },
    total_tokens: 1130,
  }

  test("the client's body and the answer's bytes are passed through", () => {
    const body = { prompt: 'a cat', user: 'ada', response_format: 'url', quality: 'hd', novelty: [1] }
    const step = start('openai', 'gpt-image-2', askFor(body, { limits, tokens: true }))
    expect(sentBy(step)).toEqual({
      url: 'https://vendor.example/images/generations',
      body: { model: 'gpt-image-2', prompt: 'a cat', user: 'mine/ada', quality: 'high', novelty: [1] },
    })
    const told = answer({ created: 1, data: [{ b64_json: base64 }], size: '64x32', usage })
    expect(step.next([told])).toMatchObject({
      kind: 'answered',
      answer: { passed: told.body, width: 64, height: 32 },
      used: [{ usage: { input: 10, cachedInput: 0, imageInput: 20, output: 44, imageOutput: 1056 }, basis: 'vendor' }],
    })
  })

  test('missing usage is estimated in image tokens', () => {
    const body = { prompt: 'a cat', quality: 'low', n: 2 }
    const step = start('openai', 'gpt-image-2', askFor(body, { limits, tokens: true }))
    const data = [{ b64_json: base64 }, { b64_json: base64 }]
    // By the vendor's list, a square of low quality has 272 tokens.
    expect(step.next([answer({ data, size: '1024x1024' })])).toMatchObject({
      used: [{ usage: { input: 2, imageInput: 0, imageOutput: 2 * 272 }, basis: 'estimated' }],
    })
  })

  test('the estimate follows the size and quality that the answer reports', () => {
    const step = start('openai', 'gpt-image-2', askFor({ prompt: 'a cat', quality: 'low' }, { limits, tokens: true }))
    const tokensOf = (said: JsonObject) => {
      const next = step.next([answer({ data: [{ b64_json: base64 }], ...said })])
      return next.kind === 'answered' ? (next.used[0]?.usage.imageOutput ?? 0) : 0
    }
    const small = { size: '1024x1024', quality: 'low' }
    expect(tokensOf({ ...small, quality: 'high' })).toBeGreaterThan(tokensOf(small))
    expect(tokensOf({ ...small, size: '2048x2048' })).toBeGreaterThan(tokensOf(small))
  })

  test('an unsupported size is replaced by the nearest supported one', () => {
    const { free: _, ...images } = { ...anySize, ...limits, sizes: ['1024x1024', '1536x1024'] }
    const ask = askFor({ prompt: 'a cat', size: '1472x1140' }, { images, tokens: true })
    expect(sentBy(start('openai', 'gpt-image-2', ask)).body).toMatchObject({ size: '1536x1024' })
  })

  test.each([[{ data: [] }], [{ created: 1 }], [{ error: { message: 'no' } }], [[]]])('%p is not an answer', (body) => {
    const step = start('openai', 'gpt-image-2', askFor({ prompt: 'a cat' }, { limits, tokens: true }))
    expect(() => step.next([answer(body)])).toThrow()
  })

  test.each([{ message: 'It broke.' }, 'It broke.'])('the message of the error %p is passed on', (error) => {
    const step = start('xai', 'grok-2-image', askFor({ prompt: 'a cat' }))
    expect(() => step.next([answer({ error })])).toThrow('It broke.')
  })
})

describe('fields of other vendors in the common protocol', () => {
  const foreign = { negative_prompt: 'dogs', seed: 7, watermark: true, prompt_extend: false }
  const ask = askFor({ prompt: 'a cat', ...foreign })

  test('foreign fields are left out for OpenAI and kept for an unknown compatible vendor', () => {
    const { body } = sentBy(start('openai', 'theirs', ask))
    expect(body).toEqual({ model: 'theirs', prompt: 'a cat\n\nAvoid: dogs', response_format: 'b64_json' })
    expect(sentBy(start('compatible', 'theirs', ask)).body).toMatchObject({ prompt: 'a cat', ...foreign })
  })

  test('the hold covers a negative prompt like the prompt', () => {
    const avoided = 'x'.repeat(1_000)
    const { bound } = askFor({ prompt: 'a cat', negative_prompt: avoided }, { tokens: true })
    expect(bound.input).toBeGreaterThanOrEqual(Buffer.byteLength(`a cat\n\nAvoid: ${avoided}`))
  })
})
