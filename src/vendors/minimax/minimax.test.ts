import { describe, expect, test } from 'bun:test'
import { askFor, image, media, prompt } from '../../../test/support/video-asks.ts'
import { GatewayError } from '../../base/errors.ts'
import type { VideoAsk } from '../../capabilities/video.ts'
import { answer, plainContext } from '../testing.ts'
import type { CreateContext } from '../vendor.ts'
import { explain } from './explain.ts'
import { video } from './video.ts'

const context = { ...plainContext, baseUrl: 'https://vendor.example/v1', upstreamModel: 'MiniMax-Hailuo-02' }

const written = (ask: VideoAsk, more: Partial<CreateContext> = {}) => {
  const { body, ...call } = video.create(ask, { ...context, ...more })
  return { call, body: JSON.parse(typeof body === 'string' ? body : '') as object }
}

const hailuo = (body: object) => askFor('minimax-hailuo-02', body)

const base = (code: number, message = 'so it is') => ({ base_resp: { status_code: code, status_msg: message } })

describe('a video order', () => {
  test("an order from text is written in MiniMax's own fields", () => {
    const { call, body } = written(hailuo({ input: prompt, parameters: { prompt_optimizer: false, watermark: false } }))
    expect(call).toMatchObject({
      url: 'https://vendor.example/v1/video_generation',
      headers: { authorization: 'Bearer vk-0123456789abcdef', 'x-client-request-id': 'att_1' },
    })
    expect(body).toEqual({
      model: 'MiniMax-Hailuo-02',
      ...prompt,
      duration: 6,
      resolution: '768P',
      prompt_optimizer: false,
    })
  })

  test('an order from images names them by their roles', () => {
    const both = hailuo({ input: media(['first_frame'], ['last_frame', `${image}?2`]), resolution: '1080p' })
    expect(written(both).body).toEqual({
      model: 'MiniMax-Hailuo-02',
      ...prompt,
      first_frame_image: image,
      last_frame_image: `${image}?2`,
      duration: 6,
      resolution: '1080P',
    })
    const own = hailuo({ input: { first_frame_image: image, last_frame_image: image }, duration: 10 })
    expect(written(own).body).toMatchObject({ first_frame_image: image, last_frame_image: image, duration: 10 })
  })

  test('a reference image is sent as the subject', () => {
    const plain = hailuo({ input: prompt })
    const ask: VideoAsk = { ...plain, kind: 'r2v', media: [{ role: 'reference-image', url: image }] }
    expect(written(ask).body).toMatchObject({ subject_reference: [{ type: 'character', image: [image] }] })
  })

  test.each([
    [{ input: { ...prompt, negative_prompt: 'dark' } }, 'input.negative_prompt'],
    [{ input: prompt, parameters: { negative_prompt: 'dark' } }, 'parameters.negative_prompt'],
    [{ input: prompt, parameters: { seed: 7 } }, 'parameters.seed'],
    [{ input: prompt, parameters: { watermark: true } }, 'parameters.watermark'],
    [{ input: prompt, parameters: { shot_type: 'multi' } }, 'parameters.shot_type'],
    [{ input: prompt, parameters: { camera_fixed: true } }, 'parameters.camera_fixed'],
    [{ input: prompt, parameters: { mode: 'pro' } }, 'parameters.mode'],
  ])('a parameter without a field is refused: %j', (body, param) => {
    expect(() => written(hailuo(body))).toThrow(GatewayError)
    expect(() => written(hailuo(body))).toThrow(`'${param}' is not supported by this model: `)
  })

  test('prompt_extend is sent as prompt_optimizer, and a contradiction of both is refused', () => {
    for (const prompt_extend of [true, false]) {
      const { body } = written(hailuo({ input: prompt, parameters: { prompt_extend } }))
      expect(body).toMatchObject({ prompt_optimizer: prompt_extend })
      expect(body).not.toHaveProperty('prompt_extend')
      const both = { prompt_extend, prompt_optimizer: !prompt_extend }
      expect(() => written(hailuo({ input: prompt, parameters: both }))).toThrow("but 'parameters.prompt_optimizer' is")
    }
  })

  test('a random seed, an empty negative prompt and the callback URL are left out', () => {
    const ask = hailuo({ input: { ...prompt, negative_prompt: '' }, parameters: { seed: -1 } })
    const { body } = written(ask, { callbackUrl: 'https://gateway.example/callbacks' })
    expect(Object.keys(body).toSorted()).toEqual(['duration', 'model', 'prompt', 'resolution'])
  })
})

describe('the finished file', () => {
  const facts = hailuo({ input: prompt, duration: 10 })
  const { locate } = video
  const url = 'https://films.example/x.mp4'

  test.each([['176844028768320'], [176_844_028_768_320]])(
    'the address of the file is requested by its id: %p',
    (file) => {
      expect(locate?.call({ file_id: file }, context)).toEqual({
        method: 'GET',
        url: 'https://vendor.example/v1/files/retrieve?file_id=176844028768320',
        headers: { authorization: 'Bearer vk-0123456789abcdef' },
      })
      expect(locate?.read(answer({ file: { file_id: file, download_url: url }, ...base(0) }), facts)).toEqual({
        videoUrl: url,
        needsKey: false,
        seconds: 10,
        resolution: '768p',
        ratio: '16:9',
      })
    },
  )

  test('a missing file id or address yields no video', () => {
    for (const file of [undefined, null, '', {}, 1.5]) {
      expect(locate?.call(file === undefined ? {} : { file_id: file }, context)).toBeUndefined()
    }
    expect(locate?.read(answer({ file: {}, ...base(0) }), facts)).toBeUndefined()
  })

  test('a file id is escaped in the address', () => {
    expect(locate?.call({ file_id: '../x?y=1&z' }, context)?.url).toBe(
      'https://vendor.example/v1/files/retrieve?file_id=..%2Fx%3Fy%3D1%26z',
    )
  })

  test.each([
    [answer(base(1002))],
    [answer(base(2013))],
    [answer({ file: { download_url: url } }, 500)],
    [answer({ file: { download_url: url } }, 404)],
  ])('an error in place of the address throws: %#', (response) => {
    expect(() => locate?.read(response, facts)).toThrow(GatewayError)
  })
})

const statusOf = (body: object, status = 200) => video.statusOf?.(answer(body, status))

test('the status of a response about a task follows its error code, unless the task failed', () => {
  expect(statusOf(base(1002))).toBe(429)
  expect(statusOf(base(1004))).toBe(401)
  expect(statusOf(base(2013))).toBe(400)
  expect(statusOf(base(1033))).toBe(500)
  expect(statusOf(base(1039))).toBe(429)
  expect(statusOf(base(1002), 503)).toBe(503)
  expect(statusOf({ status: 'Processing', ...base(0) })).toBe(200)
  expect(statusOf({ status: 'Fail', ...base(1027) })).toBe(200)
})

describe('a refusal', () => {
  const secrets = { baseUrl: 'https://api.vendor.example/v1', credential: 'the-key-of-us' }
  const told = (status: number, body: object) =>
    explain({ status, retryAfterSeconds: undefined, body: JSON.stringify(body) }, secrets)

  test.each([
    [200, 1002, 'too-many', true],
    [200, 1004, 'upstream-failed', true],
    [200, 1008, 'upstream-failed', true],
    [200, 1039, 'too-many', true],
    [200, 1041, 'too-many', true],
    [200, 2045, 'too-many', true],
    [200, 2049, 'upstream-failed', true],
    [200, 2056, 'upstream-failed', true],
    [200, 1026, 'upstream-rejected', false],
    [200, 1027, 'upstream-rejected', false],
    [200, 2013, 'upstream-rejected', false],
    [200, 1042, 'upstream-rejected', false],
    [200, 2042, 'upstream-rejected', false],
    [200, 2054, 'upstream-rejected', false],
    [200, 20_132, 'upstream-rejected', false],
    [200, 1000, 'upstream-failed', true],
    [504, 1000, 'upstream-timeout', true],
  ] as const)('a refusal under %d with %d is %s', (status, code, kind, retryable) => {
    expect(told(status, base(code))).toMatchObject({ error: { kind }, retryable })
  })

  test('a refused or empty account rests, and a refused request does not rest it', () => {
    expect([1004, 1008, 1002, 2013].map((code) => told(200, base(code)).restCredentialSeconds)).toEqual([
      60,
      60,
      1,
      undefined,
    ])
    expect([2049, 2056, 2045].map((code) => told(200, base(code)).restCredentialSeconds)).toEqual([60, 60, 1])
  })

  test.each([
    [1039, 429],
    [1041, 429],
    [2045, 429],
    [2049, 401],
    [2056, 402],
  ])('an order answered with the code %d has an error status and no task', (code, errorStatus) => {
    expect(video.readCreated(answer(base(code)))).toEqual({ errorStatus })
  })

  test("the vendor's message is passed on without key and address", () => {
    const { error } = told(200, base(2013, 'the-key-of-us at api.vendor.example'))
    expect(error.message).toBe('[redacted] at [redacted]')
    expect(error.details.refusal).toEqual({ protocol: 'none', status: 400, body: '' })
  })

  test('a refusal in the common protocol is read as such', () => {
    const { error } = told(400, { error: { message: 'too long', type: 'bad_request' }, ...base(1008) })
    expect([error.kind, error.message]).toEqual(['upstream-rejected', 'too long'])
    expect(told(429, {}).error.kind).toBe('too-many')
  })
})
