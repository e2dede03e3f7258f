import { describe, expect, test } from 'bun:test'
import { GatewayError } from '../base/errors.ts'
import { askFor, clip, image, media, prompt, tune } from '../../test/support/video-asks.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { facts, plainContext, videoOf } from './testing.ts'
import type { Call, CreateContext } from './vendor.ts'

const context: CreateContext = {
  ...plainContext,
  now: 1_794_700_000_000,
  namespaced: (label) => `mine-${label}`,
}

function bodyOf({ body }: Call) {
  return JSON.parse(typeof body === 'string' ? body : '')
}

function sent(vendor: string, model: string, body: object, more: Partial<CreateContext> = {}) {
  const call = videoOf(vendor).create(askFor(model, body), { ...context, ...more })
  return { call, body: bodyOf(call) }
}

describe('Wan orders', () => {
  test.each<[string, object, object]>([
    ['wan2.5-t2v-preview', { input: prompt, resolution: '480p' }, { size: '832*480' }],
    ['wan2.6-t2v', { input: prompt }, { size: '1280*720' }],
    ['wan2.6-t2v', { input: prompt, parameters: { resolution: '1080P', ratio: '3:4' } }, { size: '1248*1632' }],
    ['wan2.6-r2v', { input: { ...prompt, reference_urls: [image] }, aspect_ratio: '4:3' }, { size: '1088*832' }],
    ['wan2.5-i2v-preview', { input: { img_url: image }, resolution: '480p' }, { resolution: '480P' }],
    ['wan2.6-i2v', { input: { img_url: image }, parameters: { size: '1920*1080' } }, { resolution: '1080P' }],
    ['wan2.7-t2v', { input: prompt, parameters: { size: '832*1104' } }, { resolution: '720P', ratio: '3:4' }],
    ['wan2.7-i2v', { input: media(['first_frame']), aspect_ratio: '16:9' }, { resolution: '720P' }],
    ['wan2.7-r2v', { input: media(['reference_image']) }, { resolution: '720P', ratio: '16:9' }],
    [
      'wan3.0-video',
      { input: prompt, parameters: { ratio: '21:9' } },
      { resolution: '720P', ratio: '21:9', audio: true },
    ],
  ])('%s gets its size in the form of its version: %j', (model, body, frame) => {
    expect(sent('dashscope', model, body).body.parameters).toEqual({ ...frame, duration: 5 })
  })

  test('the other parameters are passed on as written', () => {
    const input = { ...prompt, img_url: image, audio_url: tune, negative_prompt: null, template: 'x' }
    const parameters = {
      prompt_extend: false,
      watermark: true,
      seed: 7,
      shot_type: 'single',
      duration: 9,
      size: null,
      brand: [1],
    }
    const { call, body } = sent('dashscope', 'wan2.6-i2v-flash', { input, parameters })
    expect(body).toEqual({
      model: 'theirs',
      input: { ...prompt, img_url: image, audio_url: tune, template: 'x' },
      parameters: {
        prompt_extend: false,
        watermark: true,
        seed: 7,
        shot_type: 'single',
        brand: [1],
        resolution: '720P',
        duration: 9,
        audio: true,
      },
    })
    expect(call).toMatchObject({
      url: 'https://vendor.example/api/v1/services/aigc/video-generation/video-synthesis',
      headers: {
        authorization: 'Bearer vk-0123456789abcdef',
        'x-dashscope-async': 'enable',
        'x-client-request-id': 'att_1',
      },
    })
  })

  test('Wan 2.7 gets no audio field, and Wan 3.0 gets its inputs as a list of media', () => {
    const { body } = sent('dashscope', 'wan2.7-t2v', { input: prompt, parameters: { audio: true } })
    expect(body.parameters).toEqual({ resolution: '720P', ratio: '16:9', duration: 5 })
    const later = sent('dashscope', 'wan3.0-video', { input: { ...prompt, img_url: image }, duration: -1 }).body
    expect(later.input).toEqual({ ...prompt, media: [{ type: 'first_frame', url: image }] })
    expect(later.parameters).toEqual({ resolution: '720P', duration: -1, audio: true })
  })

  test.each(['wan2.6-t2v', 'wan3.0-video'])(
    '%s gets the negative prompt in the input, wherever it was given',
    (model) => {
      const negative = { negative_prompt: 'dark' }
      for (const asked of [{ input: { ...prompt, ...negative } }, { input: prompt, parameters: negative }]) {
        const { input, parameters } = sent('dashscope', model, asked).body
        expect([input, 'negative_prompt' in parameters]).toEqual([{ ...prompt, ...negative }, false])
      }
    },
  )
})

describe('Seedance orders', () => {
  test("an order is written in Seedance's own fields", () => {
    const { call, body } = sent(
      'ark',
      'doubao-seedance-2-0-260128',
      {
        input: media(['reference_image'], ['reference_video', clip], ['reference_audio', tune]),
        parameters: { seed: -1, watermark: false, safety_identifier: 'u1', model: 'other', content: [], priority: 3 },
        duration: -1,
      },
      { callbackUrl: 'https://g.example/cb' },
    )
    expect(call.url).toBe('https://vendor.example/contents/generations/tasks')
    expect(body).toEqual({
      model: 'theirs',
      content: [
        { type: 'text', text: 'a fox runs' },
        { type: 'image_url', image_url: { url: image }, role: 'reference_image' },
        { type: 'video_url', video_url: { url: clip }, role: 'reference_video' },
        { type: 'audio_url', audio_url: { url: tune }, role: 'reference_audio' },
      ],
      resolution: '720p',
      ratio: '16:9',
      duration: -1,
      generate_audio: true,
      seed: -1,
      watermark: false,
      priority: 3,
      safety_identifier: 'mine-u1',
      execution_expires_after: 172_800,
      callback_url: 'https://g.example/cb',
    })
  })

  test('an unknown draft is refused, and a known one is sent by its upstream id', () => {
    const input = { content: [{ type: 'draft_task', draft_task: { id: 'cgt-1' } }] }
    const model = 'doubao-seedance-1-5-pro-251215'
    expect(() => sent('ark', model, { input })).toThrow('no such draft')
    const { body } = sent('ark', model, { input, resolution: '1080p' }, { draftUpstreamId: 'cgt-9' })
    expect(body).toEqual({
      model: 'theirs',
      content: [{ type: 'draft_task', draft_task: { id: 'cgt-9' } }],
      resolution: '1080p',
      execution_expires_after: 172_800,
    })
  })
})

test('Veo gets images as bytes, which are fetched beforehand', () => {
  const ask = askFor('veo-3.1-generate-preview', { input: media(['first_frame'], ['last_frame']) })
  const video = videoOf('google')
  expect(video.fetches?.(ask)).toEqual([image, image])
  expect(() => video.create(ask, context)).toThrow(GatewayError)
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  )
  const fetched = new Map([[image, { header: () => null, body: png }]])
  const { instances, parameters } = bodyOf(video.create(ask, { ...context, fetched }))
  const bytes = { bytesBase64Encoded: png.toString('base64'), mimeType: 'image/png' }
  expect(instances).toEqual([{ ...prompt, image: bytes, lastFrame: bytes }])
  expect(parameters).toEqual({ aspectRatio: '16:9', resolution: '720p', durationSeconds: 8, sampleCount: 1 })
  const shown = askFor('veo-3.1-generate-preview', { input: media(['reference_image'], ['reference_image']) })
  const referring = bodyOf(video.create(shown, { ...context, fetched })).instances
  const reference = { image: bytes, referenceType: 'asset' }
  expect(referring).toEqual([{ ...prompt, referenceImages: [reference, reference] }])
  const page = new Map([[image, { header: () => 'image/png', body: Buffer.from('<html>') }]])
  expect(() => video.create(ask, { ...context, fetched: page })).toThrow('is not an image')
})

test('Kling gets its own fields, with our reference as the external task id', () => {
  const input = { ...prompt, img_url: 'data:image/png;base64,AAAA', negative_prompt: 'dark' }
  const { call, body } = sent(
    'kling',
    'kling-v2-6',
    { input, parameters: { cfg_scale: 0.5 } },
    { callbackUrl: 'https://g/cb' },
  )
  expect(call.url).toBe('https://vendor.example/v1/videos/image2video')
  expect(body).toEqual({
    model_name: 'theirs',
    ...prompt,
    negative_prompt: 'dark',
    image: 'AAAA',
    mode: 'pro',
    duration: '5',
    sound: 'off',
    cfg_scale: 0.5,
    external_task_id: 'att_1',
    callback_url: 'https://g/cb',
  })
  expect(sent('kling', 'kling-v2-5-turbo', { input: prompt }).body).toMatchObject({ aspect_ratio: '16:9' })
  expect(videoOf('kling').poll('7', context, { ...facts, kind: 'i2v' }).url).toBe(
    'https://vendor.example/v1/videos/image2video/7',
  )
})

describe('Runway orders', () => {
  const vendor = 'https://vendor.example/v1'

  test('an order with an image has its ratio in pixels, and every call names the API version', () => {
    const parameters = { seed: 7, contentModeration: { publicFigureThreshold: 'low' }, watermark: false, ratio: '1:1' }
    const { call, body } = sent('runway', 'gen4-turbo', { input: { ...prompt, img_url: image }, parameters })
    expect(call).toMatchObject({
      url: `${vendor}/image_to_video`,
      headers: {
        authorization: 'Bearer vk-0123456789abcdef',
        'x-runway-version': '2024-11-06',
        'x-client-request-id': 'att_1',
      },
    })
    expect(body).toEqual({
      model: 'theirs',
      promptText: prompt.prompt,
      promptImage: image,
      ratio: '960:960',
      duration: 5,
      seed: 7,
      contentModeration: { publicFigureThreshold: 'low' },
    })
    const runway = videoOf('runway')
    for (const [method, asked] of [
      ['GET', runway.poll('t-1', context, facts)],
      ['DELETE', runway.cancel?.call('t-1', context)],
    ] as const) {
      expect(asked).toMatchObject({ method, url: `${vendor}/tasks/t-1`, headers: { 'x-runway-version': '2024-11-06' } })
    }
  })

  test('an order from text has no image, and a random seed is left out', () => {
    const { call, body } = sent('runway', 'gen4.5', { input: prompt, duration: 3, parameters: { seed: -1 } })
    expect(call.url).toBe(`${vendor}/text_to_video`)
    expect(body).toEqual({ model: 'theirs', promptText: prompt.prompt, ratio: '1280:720', duration: 3 })
  })

  test('a video-to-video order has neither ratio nor duration', () => {
    const input = media(['reference_video', clip], ['reference_image'])
    const { call, body } = sent('runway', 'gen4-aleph', { input })
    expect(call.url).toBe(`${vendor}/video_to_video`)
    expect(body).toEqual({
      model: 'theirs',
      promptText: prompt.prompt,
      videoUri: clip,
      references: [{ type: 'image', uri: image }],
    })
  })
})

describe('Vidu orders', () => {
  const vendor = 'https://vendor.example/ent/v2'

  test('an order from text has its aspect ratio and our reference', () => {
    const parameters = { seed: 7, movement_amplitude: 'small', audio: false, payload: 'mine', n: 1 }
    const more = { callbackUrl: 'https://g/cb' }
    const { call, body } = sent('vidu', 'viduq3-turbo', { input: prompt, parameters, aspect_ratio: '9:16' }, more)
    expect(call).toMatchObject({
      url: `${vendor}/text2video`,
      headers: { authorization: 'Token vk-0123456789abcdef', 'x-client-request-id': 'att_1' },
    })
    expect(body).toEqual({
      model: 'theirs',
      ...prompt,
      duration: 5,
      resolution: '720p',
      aspect_ratio: '9:16',
      audio: false,
      seed: 7,
      movement_amplitude: 'small',
      payload: 'att_1',
      callback_url: 'https://g/cb',
    })
    expect(videoOf('vidu').poll('8774', context, facts)).toMatchObject({
      method: 'GET',
      url: `${vendor}/tasks/8774/creations`,
      headers: { authorization: 'Token vk-0123456789abcdef' },
    })
    expect(videoOf('vidu').cancel).toBeUndefined()
  })

  test.each<[object, string, string[]]>([
    [media(['first_frame']), 'img2video', [image]],
    [media(['last_frame', `${image}?2`], ['first_frame']), 'start-end2video', [image, `${image}?2`]],
    [media(['reference_image'], ['reference_image', `${image}?2`]), 'reference2video', [image, `${image}?2`]],
  ])('images are sent in one list to the address of their kind: %j', (input, path, images) => {
    const { call, body } = sent('vidu', 'viduq3-turbo', { input })
    expect(call.url).toBe(`${vendor}/${path}`)
    expect(body).toMatchObject({ images, audio: true })
    expect('aspect_ratio' in body).toBe(path === 'reference2video')
  })
})

describe('Sora orders', () => {
  test('the seconds are a string and the size is in pixels', () => {
    const parameters = { audio: true, safety_identifier: 'u1', n: 1, seed: -1, watermark: false }
    const { call, body } = sent('openai', 'sora-2', { input: prompt, parameters, aspect_ratio: '9:16' })
    expect(call).toMatchObject({
      url: 'https://vendor.example/videos',
      headers: { authorization: 'Bearer vk-0123456789abcdef', 'x-client-request-id': 'att_1' },
    })
    expect(body).toEqual({ model: 'theirs', ...prompt, seconds: '4', size: '720x1280' })
    const asked = videoOf('openai').poll('video_1', context, facts)
    expect(asked).toMatchObject({ method: 'GET', url: 'https://vendor.example/videos/video_1' })
    expect(videoOf('openai').cancel).toBeUndefined()
  })

  test.each([
    [
      { duration: 12, resolution: '1792x1024' },
      { seconds: '12', size: '1792x1024' },
    ],
    [
      { resolution: '1792x1024', aspect_ratio: '9:16' },
      { seconds: '4', size: '1024x1792' },
    ],
    [{ parameters: { size: '1024x1792', seconds: '8' } }, { seconds: '8', size: '1024x1792' }],
  ])('sora-2-pro gets its seconds, size and input image: %j', (asked, written) => {
    const input = media(['first_frame'])
    expect(sent('openai', 'sora-2-pro', { input, ...asked }).body).toEqual({
      model: 'theirs',
      ...prompt,
      ...written,
      input_reference: { image_url: image },
    })
  })
})

test.each(['input', 'parameters'])(
  'a negative prompt is refused by every vendor without a field for it: %s',
  async (place) => {
    const body = place === 'input' ? { input: { ...prompt, negative_prompt: 'dark' } } : { input: prompt }
    const parameters = place === 'parameters' ? { negative_prompt: 'dark' } : {}
    for (const [vendor, model] of [
      ['runway', 'gen4.5'],
      ['vidu', 'viduq3-turbo'],
      ['openai', 'sora-2'],
      ['ark', 'doubao-seedance-2-0-260128'],
      ['minimax', 'minimax-hailuo-02'],
    ] as const) {
      const refused = await thrownBy((async () => sent(vendor, model, { ...body, parameters }))())
      expect(refused).toMatchObject({ kind: 'bad-request', details: { param: `${place}.negative_prompt` } })
    }
  },
)

describe('a parameter that its vendor has no field for', () => {
  const seedances = { camera_fixed: true, return_last_frame: true, priority: 1, execution_expires_after: 7_200 }
  const others = { mode: 'pro', prompt_extend: true, shot_type: 'multi' }
  const foreign = [
    ['dashscope', 'wan2.7-t2v', { ...seedances, mode: 'pro', shot_type: 'multi' }],
    ['dashscope', 'wan2.6-t2v', { ...seedances, mode: 'pro' }],
    ['dashscope', 'wan2.5-t2v-preview', { ...seedances, mode: 'pro', shot_type: 'multi' }],
    ['ark', 'doubao-seedance-2-0-260128', others],
    ['kling', 'kling-v2-6', { ...seedances, prompt_extend: true, shot_type: 'multi', watermark: true }],
    ['runway', 'gen4.5', { ...seedances, ...others, prompt_optimizer: true, watermark: true }],
    ['vidu', 'viduq3-turbo', { ...seedances, ...others, prompt_optimizer: true }],
    ['pixverse', 'pixverse-v6', { ...seedances, ...others, prompt_optimizer: true, sound_effect_switch: true }],
    ['google', 'veo-3.1-generate-preview', { ...seedances, ...others, watermark: true, brand: 'x' }],
    ['openai', 'sora-2', { ...seedances, ...others, prompt_optimizer: true, watermark: true, brand: 'x' }],
  ] as const

  test.each(foreign)('%s refuses a parameter that would have no effect: %s', (vendor, model, parameters) => {
    for (const [name, value] of Object.entries(parameters)) {
      const written = () => sent(vendor, model, { input: prompt, parameters: { [name]: value } })
      expect(written).toThrow(
        `Unsupported value: 'parameters.${name}' is not supported by this model: it would have no effect.`,
      )
    }
  })

  test.each(foreign)('%s leaves out a parameter that is off: %s', (vendor, model, parameters) => {
    const switches = Object.entries(parameters).flatMap(([name, value]) => (value === true ? [name] : []))
    const off = Object.fromEntries(switches.map((name) => [name, false]))
    const { body } = sent(vendor, model, { input: prompt, parameters: off })
    for (const name of switches) expect(JSON.stringify(body)).not.toContain(name)
  })

  test('a parameter is passed on to the vendors that have a field for it', () => {
    const parameters = { watermark: true, prompt_extend: true, shot_type: 'multi' }
    expect(sent('dashscope', 'wan2.6-t2v', { input: prompt, parameters }).body.parameters).toMatchObject(parameters)
    expect(sent('ark', 'doubao-seedance-2-0-260128', { input: prompt, parameters: seedances }).body).toMatchObject(
      seedances,
    )
    expect(sent('vidu', 'viduq3-turbo', { input: prompt, parameters: { watermark: true } }).body).toMatchObject({
      watermark: true,
    })
  })

  test.each([
    [{ shot_type: 'multi', prompt_extend: false }, "'parameters.shot_type' has no effect without 'prompt_extend'."],
    [{ shot_type: 'single', prompt_extend: false }, ''],
    [{ shot_type: 'multi' }, ''],
  ])('Wan 2.6 makes several shots only of a prompt that it may extend: %j', (parameters, refusal) => {
    const order = () => sent('dashscope', 'wan2.6-t2v', { input: prompt, parameters })
    if (refusal === '') expect(order().body.parameters).toMatchObject(parameters)
    else expect(order).toThrow(`Unsupported value: ${refusal}`)
  })
})
