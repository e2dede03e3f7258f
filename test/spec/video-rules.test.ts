import { describe, expect, test } from 'bun:test'
import { askFor, type Body, clip, image, media, prompt, refusalOf, tune } from '../support/video-asks.ts'

const t2v = 'wan2.6-t2v'
const sized = ({ seconds, resolution, ratio }: ReturnType<typeof askFor>): unknown[] => [seconds, resolution, ratio]
/** What every model of Wan 2.6 is given, by its kind. */
const wan26: [string, Body][] = [
  ['wan2.6-t2v', prompt],
  ['wan2.6-i2v', { ...prompt, img_url: image }],
  ['wan2.6-i2v-flash', { ...prompt, img_url: image }],
  ['wan2.6-r2v', { ...prompt, reference_urls: [image] }],
  ['wan2.6-r2v-flash', { ...prompt, reference_urls: [image] }],
]
const manyImages = (count: number) => media(...Array.from({ length: count }, () => ['reference_image'] as const))

describe('duration, resolution and aspect_ratio', () => {
  test('the defaults are those of the specification', () => {
    expect(sized(askFor(t2v, { input: prompt }))).toEqual([5, '720p', '16:9'])
  })

  test.each<[string, Body, unknown[]]>([
    ['at the top level', { duration: 8, resolution: '1080p', aspect_ratio: '9:16' }, [8, '1080p', '9:16']],
    ['in parameters', { parameters: { duration: 8, resolution: '1080P', ratio: '9:16' } }, [8, '1080p', '9:16']],
    ['a vendor’s own name at the top level', { ratio: '9:16' }, [5, '720p', '9:16']],
    ['a size at the top level', { size: '1920*1080' }, [5, '1080p', '16:9']],
    ['a size in parameters', { parameters: { size: '1248*1632' } }, [5, '1080p', '3:4']],
    ['a size spelled with x', { parameters: { size: '1280x720' } }, [5, '720p', '16:9']],
    [
      'the same values in both places',
      { duration: 8, resolution: '720P', parameters: { duration: 8, size: '1280*720' } },
      [8, '720p', '16:9'],
    ],
    ['null for an absent value', { duration: null, resolution: null, parameters: { size: null } }, [5, '720p', '16:9']],
  ])('the values are read in each form: %s', (_where, body, expected) => {
    expect(sized(askFor(t2v, { input: prompt, ...body }))).toEqual(expected)
  })

  test.each<[string, Body, string]>([
    ['two durations', { duration: 5, parameters: { duration: 10 } }, 'parameters.duration invalid_value'],
    [
      'two resolutions',
      { resolution: '720p', parameters: { resolution: '1080P' } },
      'parameters.resolution invalid_value',
    ],
    [
      'a resolution and a size',
      { resolution: '720p', parameters: { size: '1920*1080' } },
      'parameters.size invalid_value',
    ],
    ['a ratio and a size', { aspect_ratio: '16:9', parameters: { size: '720*1280' } }, 'parameters.size invalid_value'],
    ['two ratios', { aspect_ratio: '16:9', parameters: { ratio: '1:1' } }, 'parameters.ratio invalid_value'],
    ['two names of one field', { aspect_ratio: '16:9', ratio: '1:1' }, 'ratio invalid_value'],
    ['two sizes', { size: '1280*720', parameters: { size: '1920*1080' } }, 'parameters.size invalid_value'],
  ])('contradictory values are refused: %s', (_what, body, refusal) => {
    expect(refusalOf(t2v, { input: prompt, ...body })).toBe(refusal)
  })

  test.each<[string, Body, string]>([
    [t2v, { duration: 1 }, 'duration unsupported_value'],
    [t2v, { duration: 16 }, 'duration unsupported_value'],
    [t2v, { duration: -1 }, 'duration unsupported_value'],
    [t2v, { duration: 5.5 }, 'duration invalid_type'],
    [t2v, { duration: '5' }, 'duration invalid_type'],
    [t2v, { parameters: { duration: '5' } }, 'parameters.duration invalid_type'],
    [t2v, { resolution: '480p' }, 'resolution unsupported_value'],
    [t2v, { resolution: 720 }, 'resolution invalid_type'],
    [t2v, { parameters: { size: '832*480' } }, 'parameters.size unsupported_value'],
    [t2v, { parameters: { size: '1000*1000' } }, 'parameters.size unsupported_value'],
    [t2v, { aspect_ratio: '21:9' }, 'aspect_ratio unsupported_value'],
    ['wan2.5-t2v-preview', { duration: 7 }, 'duration unsupported_value'],
    ['wan2.5-t2v-preview', { resolution: '480p', aspect_ratio: '4:3' }, 'aspect_ratio unsupported_value'],
    ['wan2.7-t2v', { resolution: '1080p' }, 'resolution unsupported_value'],
    ['wan2.7-t2v', { resolution: '480p' }, 'resolution unsupported_value'],
    ['kling-v2-6', { resolution: '720p' }, 'resolution unsupported_value'],
    ['minimax-hailuo-02', { duration: 5 }, 'duration unsupported_value'],
    ['minimax-hailuo-02', { resolution: '512p' }, 'resolution unsupported_value'],
    ['minimax-hailuo-02', { resolution: '1080p', duration: 10 }, 'duration unsupported_value'],
    ['minimax-hailuo-02', { aspect_ratio: '9:16' }, 'aspect_ratio unsupported_value'],
    ['gen4.5', { resolution: '1080p' }, 'resolution unsupported_value'],
    ['viduq3-turbo', { duration: 2 }, 'duration unsupported_value'],
    ['viduq3-pro', { duration: 17 }, 'duration unsupported_value'],
    ['viduq3-pro', { resolution: '360p' }, 'resolution unsupported_value'],
    ['viduq3-pro', { aspect_ratio: '21:9' }, 'aspect_ratio unsupported_value'],
    ['pixverse-v6', { duration: 16 }, 'duration unsupported_value'],
    ['pixverse-v6', { aspect_ratio: '5:4' }, 'aspect_ratio unsupported_value'],
    ['gen4.5', { duration: 11 }, 'duration unsupported_value'],
    ['gen4.5', { aspect_ratio: '4:3' }, 'aspect_ratio unsupported_value'],
    ['gen4.5', { aspect_ratio: '9:16', parameters: { ratio: '1280:720' } }, 'parameters.ratio invalid_value'],
    ['gen4.5', { parameters: { ratio: '1280:768' } }, 'parameters.ratio unsupported_value'],
    ['sora-2', { parameters: { size: '1024x1792' } }, 'parameters.size unsupported_value'],
    [t2v, { parameters: { seconds: '5' } }, 'parameters.seconds invalid_type'],
    ['veo-3.1-generate-preview', { parameters: { size: '1280*720' } }, 'parameters.size unsupported_value'],
  ])('%s refuses %j', (model, body, refusal) => {
    expect(refusalOf(model, { input: prompt, ...body })).toBe(refusal)
  })

  test.each<[string, Body, unknown[]]>([
    ['wan2.5-t2v-preview', { resolution: '480p', duration: 10 }, [10, '480p', '16:9']],
    ['wan2.7-t2v', { parameters: { size: '1088*832' } }, [5, '720p', '4:3']],
    ['wan2.7-t2v-2026-04-25', { duration: 15 }, [15, '720p', '16:9']],
    ['wan3.0-video', { duration: 30, aspect_ratio: '21:9' }, [30, '720p', '21:9']],
    ['doubao-seedance-2-0-260128', { resolution: '4k' }, [5, '4k', '16:9']],
    ['veo-3.1-generate-preview', { parameters: { durationSeconds: 4, aspectRatio: '9:16' } }, [4, '720p', '9:16']],
    ['kling-v2-6', { parameters: { duration: '5', mode: 'pro' } }, [5, '1080p', '16:9']],
    ['gen4.5', { parameters: { ratio: '720:1280', duration: 2 } }, [2, '720p', '9:16']],
    ['sora-2', { parameters: { seconds: '8', size: '720x1280' } }, [8, '720p', '9:16']],
    ['sora-2-pro', { seconds: 12, parameters: { size: '1024x1792' } }, [12, '1792x1024', '9:16']],
  ])('%s accepts %j', (model, body, expected) => {
    expect(sized(askFor(model, { input: prompt, ...body }))).toEqual(expected)
  })

  test('Wan accepts 480p on its 2.5 previews and refuses it on all later models', () => {
    const later: [string, Body][] = [
      ...wan26,
      ['wan2.7-t2v', prompt],
      ['wan2.7-i2v', media(['first_frame'])],
      ['wan2.7-r2v', media(['reference_image'])],
      ['wan3.0-video', prompt],
    ]
    for (const [model, input] of later) {
      const refusal = refusalOf(model, { input, resolution: '480p' })
      expect({ model, refusal }).toEqual({ model, refusal: 'resolution unsupported_value' })
    }
    expect(askFor('wan2.5-t2v-preview', { input: prompt, resolution: '480p' }).resolution).toBe('480p')
    expect(askFor('wan2.5-i2v-preview', { input: { img_url: image }, resolution: '480p' }).resolution).toBe('480p')
  })

  test('a duration of -1 lets the model choose, and its longest duration is held', () => {
    const ask = askFor('doubao-seedance-2-0-260128', { input: prompt, duration: -1 })
    expect(ask).toMatchObject({ seconds: 15, isFreeLength: true, bound: { video: { seconds: 15 } } })
  })

  test('with a first frame any valid ratio is accepted, and Seedance defaults to adaptive', () => {
    const input = { ...prompt, img_url: image }
    expect(askFor('wan2.6-i2v', { input, aspect_ratio: '21:9' }).ratio).toBe('21:9')
    expect(askFor('wan2.6-i2v', { input, parameters: { size: '1920*1080' } }).resolution).toBe('1080p')
    expect(refusalOf('wan2.6-i2v', { input, aspect_ratio: 'wide' })).toBe('aspect_ratio invalid_value')
    expect(askFor('doubao-seedance-1-5-pro-251215', { input }).ratio).toBe('adaptive')
  })
})

const subject = { type: 'character', image: [image] }
const inlineAudio = 'data:audio/wav;base64,AAAA'

test('for a vendor that counts credits, the most that the seconds can take is held', () => {
  const { bound } = askFor('viduq3-turbo', { input: prompt, duration: 4, resolution: '1080p' })
  expect(bound).toMatchObject({ videoToken: 52, video: { seconds: 4, inCredits: true } })
})

describe('input, by the model’s version and kind', () => {
  test.each<[string, Body, string, string[]]>([
    ['wan2.6-t2v', prompt, 't2v', []],
    ['wan2.7-t2v', prompt, 't2v', []],
    ['wan2.5-t2v-preview', { ...prompt, negative_prompt: 'dark' }, 't2v', []],
    ['wan2.6-i2v', { ...prompt, img_url: image }, 'i2v', ['first-frame']],
    ['wan2.6-i2v-flash', { ...prompt, img_url: image, audio_url: tune }, 'i2v', ['first-frame', 'driving-audio']],
    ['wan2.5-i2v-preview', { img_url: 'data:image/png;base64,AAAA' }, 'i2v', ['first-frame']],
    // A link may lead to a video, whatever its extension.
    ['wan2.6-r2v', { ...prompt, reference_urls: [image, clip] }, 'r2v', ['reference-video', 'reference-video']],
    ['wan2.6-r2v-flash', { ...prompt, reference_video_urls: [clip] }, 'r2v', ['reference-video']],
    ['wan2.7-i2v', media(['first_frame']), 'i2v', ['first-frame']],
    ['wan2.7-i2v', media(['first_frame'], ['driving_audio', tune]), 'i2v', ['first-frame', 'driving-audio']],
    ['wan2.7-i2v-2026-04-25', media(['last_frame'], ['first_frame']), 'i2v', ['last-frame', 'first-frame']],
    ['wan2.7-i2v', media(['first_clip', clip], ['last_frame']), 'i2v', ['first-clip', 'last-frame']],
    [
      'wan2.7-r2v',
      media(['reference_image'], ['reference_video', clip]),
      'r2v',
      ['reference-image', 'reference-video'],
    ],
    ['wan2.7-r2v', media(['first_frame'], ['reference_image']), 'r2v', ['first-frame', 'reference-image']],
    ['wan3.0-video', prompt, 't2v', []],
    ['wan3.0-video', media(['first_frame']), 'i2v', ['first-frame']],
    ['wan3.0-video', { media: [{ type: 'reference_image', url: image }] }, 'r2v', ['reference-image']],
    [
      'wan3.0-video',
      media(['reference_image'], ['reference_audio', tune]),
      'r2v',
      ['reference-image', 'reference-audio'],
    ],
    ['veo-3.1-generate-preview', media(['first_frame'], ['last_frame']), 'i2v', ['first-frame', 'last-frame']],
    ['kling-v2-6', { ...prompt, img_url: image }, 'i2v', ['first-frame']],
    ['kling-v2-6', { image, image_tail: image }, 'i2v', ['first-frame', 'last-frame']],
    ['minimax-hailuo-02', prompt, 't2v', []],
    ['minimax-hailuo-02', { first_frame_image: image }, 'i2v', ['first-frame']],
    ['minimax-hailuo-02', { first_frame_image: image, last_frame_image: image }, 'i2v', ['first-frame', 'last-frame']],
    ['wan3.0-video', { ...prompt, subject_reference: [subject] }, 'r2v', ['reference-image']],
    ['gen4-turbo', { img_url: 'data:image/png;base64,AAAA' }, 'i2v', ['first-frame']],
    ['viduq3-pro', { image, image_tail: image }, 'i2v', ['first-frame', 'last-frame']],
    ['gen4-aleph', media(['reference_video', clip]), 'r2v', ['reference-video']],
  ])('%s takes %j', (model, input, kind, roles) => {
    const ask = askFor(model, { input })
    expect([ask.kind, ask.media.map(({ role }) => role)] as unknown[]).toEqual([kind, roles])
  })

  test.each<[string, unknown, string]>([
    ['wan2.6-t2v', undefined, 'input missing_required_parameter'],
    ['wan2.6-t2v', 'a fox', 'input invalid_type'],
    ['wan2.6-t2v', {}, 'input.prompt missing_required_parameter'],
    ['wan2.6-t2v', { prompt: ' ' }, 'input.prompt missing_required_parameter'],
    ['wan2.6-t2v', { prompt: 7 }, 'input.prompt invalid_type'],
    ['wan2.6-t2v', { ...prompt, img_url: image }, 'input.img_url unsupported_value'],
    ['wan2.6-t2v', { ...prompt, reference_urls: [image] }, 'input.reference_urls unsupported_value'],
    ['wan2.7-t2v', media(['reference_image']), 'input.media unsupported_value'],
    ['wan2.6-i2v', prompt, 'input.img_url missing_required_parameter'],
    [
      'wan2.7-r2v',
      { ...prompt, media: [{ type: 'reference_image', url: image, reference_voice: 'http://127.0.0.1/a.mp3' }] },
      'input.media[0].reference_voice invalid_value',
    ],
    ['wan2.6-i2v', media(['first_frame']), 'input.media unsupported_value'],
    ['wan2.6-i2v', { ...prompt, img_url: 'ftp://example.com/a.png' }, 'input.img_url invalid_value'],
    ['wan2.6-i2v', { ...prompt, img_url: 'http://127.0.0.1/a.png' }, 'input.img_url invalid_value'],
    ['wan2.6-i2v', { ...prompt, img_url: 'oss://bucket/a.png' }, 'input.img_url invalid_value'],
    ['wan2.6-i2v', { ...prompt, img_url: 'data:image/png;base64,' }, 'input.img_url invalid_value'],
    ['wan2.6-i2v', { ...prompt, img_url: 'data:image/png;base64,@@@@' }, 'input.img_url invalid_value'],
    ['gen4-turbo', { ...prompt, img_url: 'data:image/png;base64,AA AA' }, 'input.img_url invalid_value'],
    ['wan2.6-i2v', { ...prompt, img_url: [image] }, 'input.img_url invalid_type'],
    ['wan2.6-i2v', { ...prompt, img_url: image, audio_url: 'x' }, 'input.audio_url invalid_value'],
    ['wan2.6-r2v', prompt, 'input.reference_urls missing_required_parameter'],
    ['wan2.6-r2v', { reference_urls: [image] }, 'input.prompt missing_required_parameter'],
    ['wan2.6-r2v', { ...prompt, reference_urls: [] }, 'input.reference_urls missing_required_parameter'],
    ['wan2.6-r2v', { ...prompt, reference_urls: image }, 'input.reference_urls invalid_type'],
    ['wan2.6-r2v', { ...prompt, reference_urls: Array(6).fill(image) }, 'input.reference_urls unsupported_value'],
    ['wan2.6-r2v', { ...prompt, reference_urls: [image, ''] }, 'input.reference_urls[1] invalid_value'],
    [
      'wan2.6-r2v',
      { ...prompt, reference_urls: [image], reference_video_urls: [clip] },
      'input.reference_video_urls invalid_value',
    ],
    ['wan2.6-r2v', media(['reference_image']), 'input.media unsupported_value'],
    ['wan2.7-i2v', prompt, 'input.media missing_required_parameter'],
    ['wan2.7-i2v', { ...prompt, img_url: image }, 'input.img_url unsupported_value'],
    ['wan2.7-i2v', media(['last_frame']), 'input.media invalid_value'],
    ['wan2.7-i2v', media(['first_frame'], ['first_frame']), 'input.media invalid_value'],
    ['wan2.7-i2v', media(['first_clip', clip], ['driving_audio', tune]), 'input.media invalid_value'],
    ['wan2.7-i2v', media(['reference_image']), 'input.media[0].type unsupported_value'],
    ['wan2.7-i2v', media(['picture']), 'input.media[0].type unsupported_value'],
    ['wan2.7-i2v', { media: [{ url: image }] }, 'input.media[0].type missing_required_parameter'],
    ['wan2.7-i2v', { media: [{ type: 'first_frame' }] }, 'input.media[0].url missing_required_parameter'],
    ['wan2.7-i2v', media(['first_frame'], ['driving_audio', inlineAudio]), 'input.media[1].url invalid_value'],
    ['wan2.7-r2v', media(['first_frame']), 'input.media missing_required_parameter'],
    ['wan2.7-r2v', media(['reference_image'], ['driving_audio', tune]), 'input.media[1].type unsupported_value'],
    [
      'wan2.7-r2v',
      media(['first_frame'], ['first_frame'], ['reference_image']),
      'input.media[1].type unsupported_value',
    ],
    ['wan2.7-r2v', manyImages(6), 'input.media unsupported_value'],
    ['wan3.0-video', media(['first_frame'], ['reference_image']), 'input.media[1].type invalid_value'],
    ['wan3.0-video', manyImages(11), 'input.media[10].type unsupported_value'],
    ['wan3.0-video', media(['last_frame']), 'input.media invalid_value'],
    ['veo-3.1-lite-generate-preview', media(['reference_image']), 'input.media[0].type unsupported_value'],
    ['veo-3.1-generate-preview', media(['reference_video', clip]), 'input.media[0].type unsupported_value'],
    ['kling-v2-6', media(['reference_image']), 'input.media[0].type unsupported_value'],
    ['gen4-turbo', prompt, 'input.media missing_required_parameter'],
    ['viduq3-turbo', manyImages(8), 'input.media[7].type unsupported_value'],
    ['viduq3-turbo', media(['reference_video', clip]), 'input.media[0].type unsupported_value'],
    ['viduq3-pro', media(['reference_image']), 'input.media[0].type unsupported_value'],
    ['pixverse-v6', media(['reference_image']), 'input.media[0].type unsupported_value'],
    ['pixverse-v6', media(['last_frame']), 'input.media invalid_value'],
    ['gen4-turbo', media(['first_frame'], ['last_frame']), 'input.media[1].type unsupported_value'],
    ['gen4-turbo', { image, image_tail: image }, 'input.image_tail unsupported_value'],
    ['minimax-hailuo-02', { last_frame_image: image }, 'input.media invalid_value'],
    ['minimax-hailuo-02', {}, 'input.prompt missing_required_parameter'],
    [
      'minimax-hailuo-02',
      { ...prompt, subject_reference: [subject] },
      'input.subject_reference[0].image[0] unsupported_value',
    ],
    [
      'minimax-hailuo-02',
      { ...prompt, subject_reference: [{ ...subject, type: 'car' }] },
      'input.subject_reference[0].type unsupported_value',
    ],
    ['minimax-hailuo-02', { ...prompt, subject_reference: subject }, 'input.subject_reference invalid_type'],
    ['minimax-hailuo-02', { first_frame_image: 'oss://b/a.png' }, 'input.first_frame_image invalid_value'],
    ['gen4-turbo', { image: 'http://example.com/a.png' }, 'input.image unsupported_value'],
    ['gen4-turbo', { image: 'runway://upload/1' }, 'input.image invalid_value'],
    ['gen4-aleph', media(['reference_image']), 'input.media missing_required_parameter'],
    ['gen4-aleph', media(['first_frame']), 'input.media[0].type unsupported_value'],
  ])('%s refuses %j', (model, input, refusal) => {
    expect(refusalOf(model, { input })).toBe(refusal)
  })

  test('Wan 2.7 makes at most ten seconds with a reference video', () => {
    const withVideo = media(['reference_video', clip])
    expect(refusalOf('wan2.7-r2v', { input: withVideo, duration: 11 })).toBe('duration unsupported_value')
    expect(askFor('wan2.7-r2v', { input: withVideo, duration: 10 }).seconds).toBe(10)
    expect(askFor('wan2.7-r2v', { input: media(['reference_image']), duration: 15 }).seconds).toBe(15)
  })

  test('Veo makes only eight seconds above 720p or with reference images', () => {
    const veo = 'veo-3.1-generate-preview'
    expect(refusalOf(veo, { input: prompt, duration: 4, resolution: '1080p' })).toBe('duration unsupported_value')
    expect(refusalOf(veo, { input: media(['reference_image']), duration: 6 })).toBe('duration unsupported_value')
    expect(askFor(veo, { input: prompt, resolution: '4k' }).seconds).toBe(8)
    expect(askFor(veo, { input: prompt, duration: 4 }).seconds).toBe(4)
  })
})

describe('parameters', () => {
  test.each(wan26)('%s accepts the specification’s parameters; only flash models can be silent', (model, input) => {
    const kept = { shot_type: 'multi', prompt_extend: true }
    for (const audio of [true, false]) {
      const ask = askFor(model, { input, parameters: { size: '1920*1080', duration: 10, audio, ...kept } })
      expect(sized(ask)).toEqual([10, '1080p', '16:9'])
      expect(ask.parameters).toEqual({ ...kept, audio })
      expect(ask.sound).toBe(audio || !model.endsWith('flash'))
    }
  })

  test('Wan 2.7 accepts the specification’s parameters', () => {
    const parameters = { resolution: '720P', duration: 5, prompt_extend: true, watermark: false }
    expect(askFor('wan2.7-t2v', { input: prompt, parameters }).parameters).toEqual({
      prompt_extend: true,
      watermark: false,
    })
  })

  test.each<[string, Body, string]>([
    [t2v, { prompt_extend: 'yes' }, 'parameters.prompt_extend invalid_type'],
    [t2v, { watermark: 1 }, 'parameters.watermark invalid_type'],
    [t2v, { audio: 'on' }, 'parameters.audio invalid_type'],
    [t2v, { shot_type: 'many' }, 'parameters.shot_type unsupported_value'],
    [t2v, { seed: -1 }, 'parameters.seed invalid_value'],
    [t2v, { seed: 2_147_483_648 }, 'parameters.seed invalid_value'],
    [t2v, { seed: '7' }, 'parameters.seed invalid_type'],
    [t2v, { n: 2 }, 'parameters.n unsupported_value'],
    [t2v, { callback_url: 'https://example.com/' }, 'parameters.callback_url unsupported_value'],
    ['wan2.7-t2v', { audio: false }, 'parameters.audio unsupported_value'],
    ['veo-3.1-generate-preview', { sampleCount: 2 }, 'parameters.sampleCount unsupported_value'],
    ['kling-v2-6', { sound: 'loud' }, 'parameters.sound unsupported_value'],
    ['kling-v2-6', { mode: 'std' }, 'parameters.mode unsupported_value'],
    ['kling-v2-6', { sound: 'on', voice_list: [{ voice_id: '1' }] }, 'parameters.voice_list unsupported_value'],
    ['kling-v2-5-turbo', { sound: 'on' }, 'parameters.sound unsupported_value'],
    ['gen4.5', { audio: true }, 'parameters.audio unsupported_value'],
    ['viduq3-pro', { off_peak: true }, 'parameters.off_peak unsupported_value'],
    ['viduq3-pro', { is_rec: true }, 'parameters.is_rec unsupported_value'],
  ])('%s refuses the parameters %j', (model, parameters, refusal) => {
    expect(refusalOf(model, { input: prompt, parameters })).toBe(refusal)
  })

  test('audio follows the request where the model has a choice, else the model’s default', () => {
    for (const [model, parameters, audio] of [
      ['wan2.6-i2v-flash', {}, true],
      ['wan2.6-i2v-flash', { audio: true }, true],
      ['wan2.6-i2v-flash', { audio: false }, false],
      ['kling-v2-6', {}, false],
      ['kling-v2-6', { sound: 'on' }, true],
      ['kling-v2-6', { sound: 'off' }, false],
      ['doubao-seedance-1-5-pro-251215', {}, true],
      ['doubao-seedance-1-5-pro-251215', { generate_audio: false }, false],
      ['doubao-seedance-1-0-pro-250528', {}, false],
    ] as const) {
      const ask = askFor(model, { input: { ...prompt, img_url: image }, parameters })
      expect([model, parameters, ask.sound]).toEqual([model, parameters, audio])
    }
  })

  test('fields beside input mean the same as in parameters, and a contradiction is refused', () => {
    const body = { input: prompt, seed: 11, generate_audio: false }
    expect(askFor('doubao-seedance-2-0-260128', body)).toMatchObject({ sound: false, parameters: { seed: 11 } })
    expect(refusalOf('doubao-seedance-2-0-260128', { ...body, parameters: { seed: 12 } })).toBe(
      'parameters.seed invalid_value',
    )
  })

  test('a given seed is kept, and -1 counts as none', () => {
    expect(askFor(t2v, { input: prompt, parameters: { seed: 7 } }).seed).toBe(7)
    expect(askFor(t2v, { input: prompt }).seed).toBeUndefined()
    expect(askFor('doubao-seedance-2-0-260128', { input: prompt, seed: -1 }).seed).toBeUndefined()
  })

  test('callback_url is refused at the top level', () => {
    const url = 'https://example.com/'
    expect(refusalOf(t2v, { input: prompt, callback_url: url })).toBe('callback_url unsupported_value')
    expect(refusalOf('kling-v2-6', { input: prompt, callback_url: url })).toBe('callback_url unsupported_value')
  })
})

test.each<[string, Body, string]>([
  [t2v, { input: { prompt: 'a'.repeat(32_001) } }, 'input.prompt'],
  [t2v, { input: { ...prompt, negative_prompt: 'a'.repeat(32_001) } }, 'input.negative_prompt'],
  [t2v, { input: prompt, parameters: { negative_prompt: 'a'.repeat(32_001) } }, 'parameters.negative_prompt'],
  ['kling-v2-6', { input: { prompt: 'a'.repeat(32_001) } }, 'input.prompt'],
  [
    'doubao-seedance-2-0-260128',
    { content: Array.from({ length: 2 }, () => ({ type: 'text', text: 'a'.repeat(16_000) })) },
    'content',
  ],
])('a text that is longer than any vendor takes is refused: %s', (model, body, param) => {
  expect(refusalOf(model, body)).toBe(`${param} string_above_max_length`)
})

test('a prompt of 32,000 characters passes', () => {
  const long = 'a'.repeat(32_000)
  expect(askFor(t2v, { input: { prompt: long } }).prompt).toBe(long)
})
