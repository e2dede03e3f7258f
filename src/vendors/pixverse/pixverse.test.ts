import { describe, expect, test } from 'bun:test'
import { askFor, image, media, prompt } from '../../../test/support/video-asks.ts'
import type { AttemptId } from '../../base/ids.ts'
import { answer, facts, plainContext } from '../testing.ts'
import type { CreateContext } from '../vendor.ts'
import { explain } from './explain.ts'
import { video } from './video.ts'

const context: CreateContext = {
  ...plainContext,
  upstreamModel: 'v6',
  now: 1_794_700_000_000,
  ref: 'att_0123456789abcdef0123456789abcdef' as AttemptId,
}

const written = (body: object, more: Partial<CreateContext> = {}) => {
  const { body: text, ...call } = video.create(askFor('pixverse-v6', body), { ...context, ...more })
  return { call, body: JSON.parse(typeof text === 'string' ? text : '') as object }
}

const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const uploadsOf = (body: object) => video.upload?.calls(askFor('pixverse-v6', body), context) ?? []

const refused = (code: number, message = 'so it is') => ({ ErrCode: code, ErrMsg: message, Resp: null })

describe('a video order', () => {
  test("an order is written in PixVerse's own fields, with our reference as its trace id", () => {
    const parameters = { seed: 7, audio: false, watermark: true, negative_prompt: 'dark', quality: '1080p', n: 1 }
    const body = { input: prompt, parameters, resolution: '1080p', aspect_ratio: '9:16', duration: 15 }
    const { call, body: sent } = written(body, { callbackUrl: 'https://gateway.example/callbacks' })
    expect(call).toMatchObject({
      url: 'https://vendor.example/openapi/v2/video/text/generate',
      headers: {
        'api-key': 'vk-0123456789abcdef',
        'ai-trace-id': '01234567-89ab-cdef-0123-456789abcdef',
        'x-client-request-id': context.ref,
      },
    })
    expect(call.headers).not.toHaveProperty('authorization')
    expect(sent).toEqual({
      model: 'v6',
      ...prompt,
      negative_prompt: 'dark',
      aspect_ratio: '9:16',
      duration: 15,
      quality: '1080p',
      generate_audio_switch: false,
      water_mark: true,
      seed: 7,
    })
  })

  test('images are uploaded first, as links or files, each under its own trace id', () => {
    const uploads = uploadsOf({ input: media(['first_frame'], ['last_frame', pixel]) })
    expect(uploads.map(({ url, headers }) => [url, headers['ai-trace-id']])).toEqual([
      ['https://vendor.example/openapi/v2/image/upload', '01234567-89ab-cdef-0123-01a1dc74bb00'],
      ['https://vendor.example/openapi/v2/image/upload', '01234567-89ab-cdef-0123-01a1dc74bb01'],
    ])
    const [first, last] = uploads.map(({ body }) => body)
    expect(first).toEqual([{ field: 'image_url', value: image }])
    const bytes = Buffer.from(pixel.slice(pixel.indexOf(',') + 1), 'base64')
    expect(last).toEqual([{ field: 'image', value: { name: 'image.png', mediaType: 'image/png', bytes } }])
    expect(uploadsOf({ input: prompt })).toEqual([])
    const none = 'data:image/png;base64,AAAA'
    expect(() => uploadsOf({ input: media(['first_frame', none]) })).toThrow('The given file is not an image')
  })

  test.each([
    [[['first_frame']], ['343252978602905'], 'img', { img_id: 343_252_978_602_905 }],
    [[['first_frame'], ['last_frame']], ['7', '8'], 'transition', { first_frame_img: 7, last_frame_img: 8 }],
    [[['first_frame']], ['4-Wand'], 'img', { img_id: '4-Wand' }],
  ] as const)('an order from %j names the uploaded images and has no aspect ratio', (frames, uploaded, path, named) => {
    const { call, body } = written({ input: media(...frames), aspect_ratio: '9:16' }, { uploaded })
    expect(call.url).toBe(`https://vendor.example/openapi/v2/video/${path}/generate`)
    expect(body).toEqual({
      model: 'v6',
      ...prompt,
      ...named,
      duration: 5,
      quality: '720p',
      generate_audio_switch: true,
    })
  })

  test.each([
    [{ input: { image } }, 'input.prompt'],
    [{ input: { ...media(['first_frame'], ['last_frame']), negative_prompt: 'dark' } }, 'input.negative_prompt'],
    [{ input: prompt, parameters: { img_id: 7 } }, 'parameters.img_id'],
    [{ input: media(['first_frame']), parameters: { img_ids: [7] } }, 'parameters.img_ids'],
  ])('an impossible order or one with image ids is refused before anything is sent: %j', (...row) => {
    const [body, param] = row
    expect(() => uploadsOf(body)).toThrow(param)
    expect(() => written(body)).toThrow(param)
  })

  test('audio is on by default', () => {
    expect(written({ input: prompt }).body).toEqual({
      model: 'v6',
      ...prompt,
      aspect_ratio: '16:9',
      duration: 5,
      quality: '720p',
      generate_audio_switch: true,
    })
  })

  test.each([
    [{ quality: '1080p' }, "'parameters.quality' is not supported: use 'resolution'."],
    [{ generate_audio_switch: false }, "'parameters.generate_audio_switch' is not supported: use 'audio'."],
    [{ template_id: 302_325 }, "'parameters.template_id' is not supported: its price is not known."],
    [{ generate_multi_clip_switch: true }, "'parameters.generate_multi_clip_switch' is not supported: its price"],
  ])('a parameter that would change the price is refused: %j', (parameters, message) => {
    expect(() => written({ input: prompt, parameters })).toThrow(message)
  })
})

test('a poll has a trace id of its own and an escaped task id', () => {
  const poll = video.poll('../x', context, facts)
  expect(poll).toMatchObject({
    method: 'GET',
    url: 'https://vendor.example/openapi/v2/video/result/..%2Fx',
    headers: { 'api-key': 'vk-0123456789abcdef', 'ai-trace-id': '01234567-89ab-cdef-0123-01a1dc74bb00' },
  })
  const later = video.poll('1', { ...context, now: 1_794_700_005_000 }, facts)
  expect(later.headers['ai-trace-id']).not.toBe(poll.headers['ai-trace-id'] ?? '')
})

const statusOf = (body: object, status = 200) => video.statusOf?.(answer(body, status))
const uploaded = (body: object) => video.upload?.read(answer(body))
const created = (video_id: unknown) => video.readCreated(answer({ ErrCode: 0, ErrMsg: '', Resp: { video_id } }))

test('the status of a response about a task follows its error code', () => {
  expect([10001, 500044, 400017, 500008, 500100].map((code) => statusOf(refused(code)))).toEqual([
    401, 429, 400, 404, 500,
  ])
  expect(statusOf(refused(500044), 503)).toBe(503)
  expect(statusOf({ ErrCode: 0, ErrMsg: 'success', Resp: { status: 8 } })).toBe(200)
})

test('a task id that is no safe integer or plain word is refused', () => {
  expect(created(343_252_978_602_905)).toBe('343252978602905')
  expect(created('4-WandVideo-4ba3')).toBe('4-WandVideo-4ba3')
  for (const id of [0, -1, 1.5, 2 ** 53, '', '../x', null]) expect(() => created(id)).toThrow()
})

test('an upload yields an image id or an error status', () => {
  expect(uploaded({ ErrCode: 0, ErrMsg: 'success', Resp: { img_id: 12, img_url: 'https://m.example/a' } })).toBe('12')
  expect(uploaded(refused(500032))).toEqual({ errorStatus: 400 })
  expect(() => uploaded({ ErrCode: 0, ErrMsg: 'success', Resp: { img_id: 0 } })).toThrow()
})

describe('a refusal', () => {
  const secrets = { baseUrl: 'https://api.vendor.example', credential: 'the-key-of-us' }
  const told = (status: number, body: object) =>
    explain({ status, retryAfterSeconds: undefined, body: JSON.stringify(body) }, secrets)

  test.each([
    [200, 10001, 'upstream-failed', true, 60],
    [200, 10005, 'upstream-failed', true, 60],
    [200, 400012, 'upstream-failed', true, 60],
    [200, 500020, 'upstream-failed', true, 60],
    [200, 500043, 'upstream-failed', true, 60],
    [200, 500090, 'upstream-failed', true, 60],
    [200, 500044, 'too-many', true, 1],
    [200, 500069, 'too-many', true, 1],
    [200, 400011, 'upstream-rejected', false, undefined],
    [200, 400018, 'upstream-rejected', false, undefined],
    [200, 400099, 'upstream-rejected', false, undefined],
    [200, 500032, 'upstream-rejected', false, undefined],
    [200, 500054, 'upstream-rejected', false, undefined],
    // Some errors come with an error status and mean the same.
    [500, 500063, 'upstream-rejected', false, undefined],
    [200, 500100, 'upstream-failed', true, undefined],
    [200, 99999, 'upstream-failed', true, undefined],
    [504, 99999, 'upstream-timeout', true, undefined],
  ] as const)('a refusal under %d with %d is %s', (status, code, kind, retryable, rests) => {
    const verdict = told(status, refused(code))
    expect([verdict.error.kind, verdict.retryable, verdict.restCredentialSeconds]).toEqual([kind, retryable, rests])
  })

  test("the vendor's message is passed on without key and address, or its code if it is empty", () => {
    expect(told(200, refused(400017, 'the-key-of-us at api.vendor.example')).error.message).toBe(
      '[redacted] at [redacted]',
    )
    expect(told(200, refused(400017, '')).error.message).toBe('The vendor says: 400017.')
  })

  test('a moderated image, refused in lower-case fields, is upstream-rejected', () => {
    const said = { err_code: 500052, err_msg: 'not this one', resp: '' }
    expect(told(500, said)).toMatchObject({
      error: { kind: 'upstream-rejected', message: 'not this one' },
      retryable: false,
    })
  })

  test('a refusal without a code is judged by its status', () => {
    expect(told(429, {}).error.kind).toBe('too-many')
    expect(told(502, {}).error.kind).toBe('upstream-failed')
  })
})
