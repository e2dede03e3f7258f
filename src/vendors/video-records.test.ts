import { describe, expect, test } from 'bun:test'
import { GatewayError } from '../base/errors.ts'
import type { VideoFacts } from '../capabilities/video.ts'
import { vendors } from './index.ts'
import { answer, facts, videoOf } from './testing.ts'

const ratioOf = (vendor: string, response: ReturnType<typeof answer>, kind: VideoFacts['kind']) =>
  videoOf(vendor).readTask(response, { ...facts, kind, ratio: '9:16' }).result?.ratio

test('the requested ratio is not reported for a video made from an image', () => {
  const url = 'https://result.example/x.mp4'
  const wan = (usage: object) => answer({ output: { task_status: 'SUCCEEDED', video_url: url }, usage })
  const kling = answer({ code: 0, data: { task_status: 'succeed', task_result: { videos: [{ url, duration: '5' }] } } })
  const vidu = answer({ state: 'success', credits: 1, creations: [{ id: 'c', url }] })
  for (const [vendor, response] of [
    ['dashscope', wan({ duration: 5, SR: 720 })],
    ['kling', kling],
    ['vidu', vidu],
  ] as const) {
    expect([vendor, ratioOf(vendor, response, 'i2v'), ratioOf(vendor, response, 't2v')]).toEqual([
      vendor,
      undefined,
      '9:16',
    ])
  }
  // Some records tell the ratio of the video itself.
  expect(ratioOf('dashscope', wan({ video_duration: 5, video_ratio: '1280*720' }), 'i2v')).toBe('16:9')
  expect(ratioOf('dashscope', wan({ duration: 5, SR: 720, ratio: '4:3' }), 'i2v')).toBe('4:3')
  expect(ratioOf('dashscope', wan({ video_duration: 5, video_ratio: '1108*830' }), 'i2v')).toBeUndefined()
  expect(ratioOf('runway', answer({ status: 'SUCCEEDED', output: [url] }), 'r2v')).toBeUndefined()
  const file = answer({ file: { download_url: url }, base_resp: { status_code: 0 } })
  const located = videoOf('minimax').locate?.read(file, { ...facts, kind: 'i2v' })
  expect([located?.videoUrl, located?.ratio]).toEqual([url, undefined])
})

const wan = (output: object, usage?: object) =>
  answer({ request_id: 'r', output: { task_id: 't', ...output }, ...(usage && { usage }) })
const ark = (record: object) =>
  answer({ id: 'cgt-1', model: 'm', created_at: 1, updated_at: 2, error: null, ...record })

const pixverse = (record: object | null, code = 0) => answer({ ErrCode: code, ErrMsg: 'so it is', Resp: record })
const minimax = (record: object, code = 0, message = 'success') =>
  answer({ task_id: '1', ...record, base_resp: { status_code: code, status_msg: message } })

const sora = (record: object) =>
  answer({ id: 'video_1', object: 'video', model: 'sora-2', created_at: 1, error: null, ...record })

// The records are as vendors' documentation and public clients show them.
describe('the task records of the vendors', () => {
  const link = 'https://result.example/x.mp4?Expires=1'
  const arkUsed = (usage: object) => ark({ status: 'succeeded', content: { video_url: link }, usage })
  const made = { task_status: 'SUCCEEDED', video_url: link }

  test.each([
    [
      'dashscope',
      wan({ task_status: 'PENDING', submit_time: '2026-04-02 22:53:19.537' }),
      { state: 'submitted', word: 'PENDING' },
    ],
    ['dashscope', wan({ task_status: 'SUSPENDED' }), { state: 'submitted' }],
    ['dashscope', wan({ task_status: 'RUNNING' }), { state: 'running' }],
    ['dashscope', wan({ task_status: 'CANCELED' }), { state: 'cancelled' }],
    ['dashscope', wan({ task_status: 'UNKNOWN' }), { state: 'lost' }],
    ['dashscope', wan({ task_status: 'toString' }), { state: 'unknown-word', word: 'toString' }],
    [
      'dashscope',
      wan({ task_status: 'FAILED', code: 'InvalidParameter', message: 'The size does not match xxxxxx' }),
      { state: 'failed', error: { code: 'InvalidParameter', message: 'The size does not match xxxxxx' } },
    ],
    [
      'dashscope',
      wan(made, {
        duration: 15,
        input_video_duration: 5,
        output_video_duration: 10,
        video_count: 1,
        SR: 720,
        ratio: '9:16',
      }),
      {
        state: 'succeeded',
        used: { video: { seconds: 15, resolution: '720p', sound: true } },
        result: { videoUrl: link, needsKey: false, seconds: 10, resolution: '720p', ratio: '9:16' },
      },
    ],
    // Input seconds are added where only the parts are given, and a zero is ignored while another field has a length.
    [
      'dashscope',
      wan({ ...made, end_time: '2026-04-02 23:05:00.250' }, { input_video_duration: 5, output_video_duration: 10 }),
      {
        used: { video: { seconds: 15, resolution: '720p' } },
        result: { seconds: 10, madeAt: Date.UTC(2026, 3, 2, 15, 5, 0, 250) },
      },
    ],
    [
      'dashscope',
      wan(made, { duration: 0, video_duration: 10, SR: 720 }),
      { used: { video: { seconds: 10 } }, result: { seconds: 10 } },
    ],
    // Wan 2.5: no tier, only a size; 2.6 from an SDK: text, and zeros in fields of other versions; 3.0: fractions.
    [
      'dashscope',
      wan(made, { video_duration: 10, video_ratio: '832*480', video_count: 1 }),
      { used: { video: { seconds: 10, resolution: '480p', sound: true } } },
    ],
    [
      'dashscope',
      wan(made, { video_duration: 0, video_ratio: '', duration: 5, SR: '1080', audio: false }),
      { used: { video: { seconds: 5, resolution: '1080p', sound: false } } },
    ],
    [
      'dashscope',
      wan(made, { duration: 5.0, SR: 1080, fps: 30, input_video_duration: 0.0, output_video_duration: 5.0 }),
      { used: { video: { seconds: 5, resolution: '1080p', sound: true } } },
    ],
    [
      'dashscope',
      wan(made, { duration: 4.2, SR: 9000 }),
      { used: { video: { seconds: 4.2, resolution: '720p', sound: true } } },
    ],
    ['ark', ark({ status: 'queued' }), { state: 'submitted' }],
    ['ark', ark({ status: 'running' }), { state: 'running' }],
    ['ark', ark({ status: 'cancelled' }), { state: 'cancelled' }],
    ['ark', ark({ status: 'expired' }), { state: 'expired' }],
    ['ark', ark({ status: 'preparing' }), { state: 'unknown-word' }],
    ['ark', answer({ error: { code: 'NotFound.Task' } }, 404), { state: 'lost' }],
    [
      'ark',
      ark({ status: 'failed', error: { code: 'OutputVideoSensitiveContentDetected', message: 'no' } }),
      { state: 'failed', error: { code: 'OutputVideoSensitiveContentDetected', message: 'no' } },
    ],
    [
      'ark',
      ark({
        status: 'succeeded',
        content: { video_url: link, last_frame_url: 'https://result.example/x.png' },
        usage: { completion_tokens: 108_900, total_tokens: 108_900 },
        seed: 10,
        resolution: '1080p',
        ratio: '16:9',
        duration: 6,
        framespersecond: 24,
        generate_audio: false,
      }),
      {
        state: 'succeeded',
        used: { videoToken: 108_900, video: { seconds: 6, resolution: '1080p', sound: false } },
        result: {
          videoUrl: link,
          lastFrameUrl: 'https://result.example/x.png',
          needsKey: false,
          seconds: 6,
          resolution: '1080p',
          ratio: '16:9',
          seed: 10,
          madeAt: 2_000,
        },
      },
    ],
    // 1.0 with frames instead of seconds, and fields left out.
    [
      'ark',
      ark({ status: 'succeeded', content: { video_url: link }, usage: { completion_tokens: 9 }, frames: 289 }),
      { used: { videoToken: 9, video: { seconds: 12, resolution: '720p', sound: true } }, result: { seconds: 12 } },
    ],
    // A total that cannot be is left aside for the count beside it, and so is one of 0.
    ['ark', arkUsed({ completion_tokens: 9, total_tokens: -1 }), { used: { videoToken: 9 } }],
    ['ark', arkUsed({ completion_tokens: 9, total_tokens: 0 }), { used: { videoToken: 9 } }],
    ['ark', arkUsed({ completion_tokens: 0, total_tokens: 0 }), { used: { videoToken: 0 } }],
    ['google', answer({ name: 'models/m/operations/o' }), { state: 'running' }],
    ['google', answer({ name: 'models/m/operations/o', done: false, metadata: {} }), { state: 'running' }],
    [
      'google',
      answer({ done: true, error: { code: 3, message: 'bad' } }),
      { state: 'failed', error: { code: 'INVALID_ARGUMENT', message: 'bad' } },
    ],
    [
      'google',
      answer({
        done: true,
        response: { generateVideoResponse: { raiMediaFilteredCount: 1, raiMediaFilteredReasons: ['No.'] } },
      }),
      { state: 'failed', error: { code: 'content_filtered', message: 'No.' } },
    ],
    [
      'google',
      answer({ done: true }),
      { state: 'failed', error: { code: 'upstream_no_output', message: 'The vendor gave no video.' } },
    ],
    ['google', answer({ error: { code: 404 } }, 404), { state: 'lost' }],
    [
      'google',
      answer({ done: true, response: { generateVideoResponse: { generatedSamples: [{ video: { uri: link } }] } } }),
      {
        state: 'succeeded',
        used: { video: { seconds: 5, resolution: '720p', sound: true } },
        result: { videoUrl: link, needsKey: true },
      },
    ],
    ['kling', answer({ code: 0, data: { task_id: '1', task_status: 'submitted' } }), { state: 'submitted' }],
    ['kling', answer({ code: 0, data: { task_status: 'processing' } }), { state: 'running' }],
    [
      'kling',
      answer({ code: 0, data: { task_status: 'failed', task_status_msg: 'risk' } }),
      { state: 'failed', error: { code: 'upstream_failed', message: 'risk' } },
    ],
    ['kling', answer({ code: 1203, message: 'not found' }, 404), { state: 'lost' }],
    ['kling', answer({ code: 1203, message: 'not found' }), { state: 'lost' }],
    [
      'kling',
      answer({
        code: 0,
        data: {
          task_status: 'succeed',
          task_result: { videos: [{ id: 'v', url: link, duration: '5.1' }] },
          final_unit_deduction: '3.5',
        },
      }),
      {
        state: 'succeeded',
        // The file is a little longer than the five seconds that were ordered, which the units are for.
        used: { video: { seconds: 5, resolution: '720p', sound: true } },
        result: { videoUrl: link },
      },
    ],
    ['minimax', minimax({ status: 'Preparing' }), { state: 'submitted', word: 'Preparing' }],
    ['minimax', minimax({ status: 'Queueing' }), { state: 'submitted' }],
    ['minimax', minimax({ status: 'Processing', file_id: '' }), { state: 'running' }],
    ['minimax', minimax({ status: 'success' }), { state: 'unknown-word', word: 'success' }],
    [
      'minimax',
      minimax({ status: 'Success', file_id: '176844028768320' }),
      { state: 'succeeded', used: { video: { seconds: 5, resolution: '720p', sound: true } } },
    ],
    ['minimax', minimax({ status: 'Fail' }), { state: 'failed', error: { code: 'upstream_failed', message: '' } }],
    [
      'minimax',
      minimax({ status: 'Fail' }, 1027, 'no'),
      { state: 'failed', error: { code: 'content_filtered', message: 'no' } },
    ],
    // The only parameter of a poll is the task's id.
    ['minimax', minimax({}, 2013, 'invalid params'), { state: 'lost' }],
    ['minimax', answer({}, 404), { state: 'lost' }],
    ['vidu', answer({ id: 'v', state: 'created', credits: 55 }), { state: 'submitted', word: 'created' }],
    ['vidu', answer({ id: 'v', state: 'queueing' }), { state: 'submitted' }],
    ['vidu', answer({ id: 'v', state: 'processing' }), { state: 'running' }],
    ['vidu', answer({ id: 'v', state: 'cancelled' }), { state: 'unknown-word', word: 'cancelled' }],
    ['vidu', answer({ reason: 'TaskNotFound' }, 404), { state: 'lost' }],
    [
      'vidu',
      answer({ id: 'v', state: 'failed', err_code: 'CreationPolicyViolation', credits: 55 }),
      {
        state: 'failed',
        error: { code: 'CreationPolicyViolation', message: 'The vendor says: CreationPolicyViolation.' },
      },
    ],
    [
      'vidu',
      answer({
        id: 'v',
        state: 'success',
        err_code: '',
        credits: 55,
        creations: [{ id: 'c', url: link, cover_url: 'https://result.example/c.png', watermarked_url: link }],
      }),
      {
        state: 'succeeded',
        used: { videoToken: 55, video: { seconds: 5, resolution: '720p', sound: true, inCredits: true } },
        result: { videoUrl: link, needsKey: false, seconds: 5, resolution: '720p', ratio: '16:9' },
      },
    ],
    ['pixverse', pixverse({ id: 3, status: 5, url: '' }), { state: 'running', word: '5' }],
    ['pixverse', pixverse({ id: 3, status: 6 }), { state: 'cancelled' }],
    ['pixverse', pixverse({ id: 3, status: 9 }), { state: 'unknown-word', word: '9' }],
    ['pixverse', pixverse({ id: 3, status: 7 }), { state: 'failed', error: { code: 'content_filtered' } }],
    ['pixverse', pixverse({ id: 3, status: 8 }), { state: 'failed', error: { code: 'upstream_failed' } }],
    ['pixverse', pixverse(null, 500008), { state: 'lost' }],
    ['pixverse', pixverse(null, 500064), { state: 'lost' }],
    ['pixverse', answer({}, 404), { state: 'lost' }],
    [
      'pixverse',
      pixverse({ id: 3, status: 1, url: link, seed: 7, outputWidth: 1280, outputHeight: 720 }),
      {
        state: 'succeeded',
        used: { video: { seconds: 5, resolution: '720p', sound: true } },
        result: { videoUrl: link, needsKey: false, seconds: 5, resolution: '720p', ratio: '16:9', seed: 7 },
      },
    ],
    ['runway', answer({ id: 'r', status: 'PENDING', createdAt: '2026-11-15T17:00:00Z' }), { state: 'submitted' }],
    ['runway', answer({ id: 'r', status: 'THROTTLED' }), { state: 'submitted', word: 'THROTTLED' }],
    ['runway', answer({ id: 'r', status: 'RUNNING', progress: 0.5 }), { state: 'running' }],
    ['runway', answer({ id: 'r', status: 'CANCELLED' }), { state: 'cancelled' }],
    ['runway', answer({ id: 'r', status: 'ABORTED' }), { state: 'unknown-word', word: 'ABORTED' }],
    ['runway', answer({ error: 'not found' }, 404), { state: 'lost' }],
    [
      'runway',
      answer({ id: 'r', status: 'FAILED', failure: 'no', failureCode: 'SAFETY.INPUT.TEXT' }),
      { state: 'failed', error: { code: 'SAFETY.INPUT.TEXT', message: 'no' } },
    ],
    [
      'runway',
      answer({ id: 'r', status: 'FAILED', failure: 'no' }),
      { error: { code: 'upstream_failed', message: 'no' } },
    ],
    [
      'runway',
      answer({ id: 'r', status: 'SUCCEEDED', output: [link, 'https://result.example/second'] }),
      {
        state: 'succeeded',
        record: { id: 'r', status: 'SUCCEEDED', output: [link] },
        used: { video: { seconds: 5, resolution: '720p' } },
        result: { videoUrl: link, needsKey: false, seconds: 5, resolution: '720p', ratio: '16:9' },
      },
    ],
    ['openai', sora({ status: 'queued', progress: 0 }), { state: 'submitted', word: 'queued' }],
    ['openai', sora({ status: 'in_progress', progress: 50 }), { state: 'running' }],
    ['openai', sora({ status: 'cancelled' }), { state: 'unknown-word', word: 'cancelled' }],
    ['openai', answer({ error: { message: 'not found' } }, 404), { state: 'lost' }],
    [
      'openai',
      sora({ status: 'failed', error: { code: 'moderation_blocked', message: 'no' } }),
      { state: 'failed', error: { code: 'moderation_blocked', message: 'no' } },
    ],
    [
      'openai',
      sora({ status: 'completed', seconds: '8', size: '1024x1792' }),
      {
        state: 'succeeded',
        used: { video: { seconds: 8, resolution: '1792x1024', sound: true } },
        result: {
          videoUrl: '/videos/video_1/content',
          needsKey: true,
          seconds: 8,
          resolution: '1792x1024',
          ratio: '9:16',
        },
      },
    ],
    // For an unknown size, what was asked for is taken.
    [
      'openai',
      sora({ status: 'completed', seconds: '4', size: '64x64' }),
      { used: { video: { seconds: 4, resolution: '720p' } }, result: { ratio: '16:9' } },
    ],
  ])('a record of %s is read: case %#', (vendor, response, news) => {
    expect(videoOf(vendor).readTask(response, facts)).toMatchObject(news)
  })

  test('an input video counts in the usage of Seedance, though its record omits it', () => {
    const record = ark({ status: 'succeeded', content: { video_url: link }, usage: { total_tokens: 7 } })
    expect(videoOf('ark').readTask(record, { ...facts, hasInputVideo: true }).used).toMatchObject({
      videoToken: 7,
      video: { hasInputVideo: true },
    })
  })

  test('usage is absent when the vendor reports none', () => {
    expect(videoOf('dashscope').readTask(wan(made), facts)).not.toHaveProperty('used')
    expect(
      videoOf('ark').readTask(ark({ status: 'succeeded', content: { video_url: link } }), facts),
    ).not.toHaveProperty('used')
    const negative = ark({ status: 'succeeded', content: { video_url: link }, usage: { total_tokens: -1 } })
    expect(videoOf('ark').readTask(negative, facts)).not.toHaveProperty('used')
    for (const credits of [undefined, null, '55', -1, 5.5]) {
      const record = answer({ id: 'v', state: 'success', credits, creations: [{ id: 'c', url: link }] })
      expect(videoOf('vidu').readTask(record, facts)).not.toHaveProperty('used')
    }
    for (const seconds of [undefined, null, 'eight', -1]) {
      const record = sora({ status: 'completed', size: '1280x720', seconds })
      expect(videoOf('openai').readTask(record, facts)).not.toHaveProperty('used')
    }
    const changed = answer({ id: 'r', status: 'SUCCEEDED', output: [link] })
    expect(videoOf('runway').readTask(changed, { ...facts, kind: 'r2v' })).not.toHaveProperty('used')
  })

  test.each([...vendors.values()].flatMap(({ id, video }) => (video === undefined ? [] : [[id, video] as const])))(
    '%s: an invalid record and an invalid creation are failures',
    (_id, video) => {
      for (const status of [400, 401, 429, 500, 502, 503]) {
        expect(() => video.readTask(answer({ code: 5000 }, status), facts)).toThrow(GatewayError)
      }
      for (const body of ['', '<html>', '[]', 'null', '"x"']) {
        expect(() => video.readTask(answer(body), facts)).toThrow(GatewayError)
        expect(() => video.readCreated(answer(body))).toThrow(GatewayError)
      }
      for (const id of ['', '..', '../x', 'a/b', 7, null, {}, 'x'.repeat(500)]) {
        const body = { id, task_id: id, name: id, code: 0, output: { task_id: id }, data: { task_id: id } }
        expect(() => video.readCreated(answer(body))).toThrow(GatewayError)
      }
    },
  )
})
