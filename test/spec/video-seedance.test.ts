import { describe, expect, test } from 'bun:test'
import { askFor, type Body, clip, image, media, prompt, refusalOf, tune } from '../support/video-asks.ts'

const two = 'doubao-seedance-2-0-260128'
const onePointFive = 'doubao-seedance-1-5-pro-251215'

const text = (words = 'a fox runs') => ({ type: 'text', text: words })
const picture = (role?: string, url = image) => ({
  type: 'image_url',
  image_url: { url },
  ...(role !== undefined && { role }),
})
const video = { type: 'video_url', video_url: { url: clip }, role: 'reference_video' }
const audio = { type: 'audio_url', audio_url: { url: tune }, role: 'reference_audio' }
const content = (...items: readonly object[]) => ({ input: { content: items } })
const images = (count: number) => Array.from({ length: count }, () => picture('reference_image'))

describe('the content items of Seedance', () => {
  test.each<[object, string, string[]]>([
    [content(text()), 't2v', []],
    [{ content: [text()] }, 't2v', []],
    [content(text(), picture()), 'i2v', ['first-frame']],
    [content(picture('first_frame')), 'i2v', ['first-frame']],
    [content(text(), picture('first_frame'), picture('last_frame')), 'i2v', ['first-frame', 'last-frame']],
    [
      content(text(), ...images(2), video, audio),
      'r2v',
      ['reference-image', 'reference-image', 'reference-video', 'reference-audio'],
    ],
    [content(text(), picture('reference_image', 'data:image/png;base64,AAAA')), 'r2v', ['reference-image']],
    [{ input: media(['first_frame'], ['last_frame']) }, 'i2v', ['first-frame', 'last-frame']],
    [{ input: { ...prompt, img_url: image } }, 'i2v', ['first-frame']],
  ])('%j is read as the right kind, with the roles of its media', (body, kind, roles) => {
    const ask = askFor(two, body)
    expect([ask.kind, ask.media.map(({ role }) => role)] as unknown[]).toEqual([kind, roles])
  })

  test('at most nine reference images are accepted', () => {
    expect(askFor(two, content(text(), ...images(9))).media).toHaveLength(9)
    expect(refusalOf(two, content(text(), ...images(10)))).toBe('input.content[10].role unsupported_value')
    expect(refusalOf(two, { input: media(...images(10).map(() => ['reference_image'] as const)) })).toBe(
      'input.media[9].type unsupported_value',
    )
  })

  test.each<[string, object, string]>([
    [two, content(), 'input.content missing_required_parameter'],
    [two, { input: { content: 'x' } }, 'input.content invalid_type'],
    [two, content(text(' ')), 'input.content[0].text missing_required_parameter'],
    [two, content({ type: 'picture' }), 'input.content[0].type unsupported_value'],
    [two, content({ text: 'x' }), 'input.content[0].type missing_required_parameter'],
    [
      two,
      content(text(), { type: 'image_url', image_url: image }),
      'input.content[1].image_url missing_required_parameter',
    ],
    [two, content(text(), picture('middle_frame')), 'input.content[1].role unsupported_value'],
    [two, content(text(), picture(), picture()), 'input.content[1].role missing_required_parameter'],
    [two, content(text(), picture('last_frame')), 'input.content invalid_value'],
    [two, content(text(), picture('first_frame'), picture('first_frame')), 'input.content[2].role invalid_value'],
    [two, content(text(), picture('first_frame'), picture('reference_image')), 'input.content[2].role invalid_value'],
    [two, content(text(), picture(), video), 'input.content[2].role invalid_value'],
    [two, content(text(), audio), 'input.content invalid_value'],
    [two, content(text(), video, video, video, video), 'input.content[4].role unsupported_value'],
    [
      two,
      content(text(), { ...video, video_url: { url: 'data:video/mp4;base64,AAAA' } }),
      'input.content[1].video_url.url invalid_value',
    ],
    [two, content(text(), picture('first_frame', 'asset://a-1')), 'input.content[1].image_url.url invalid_value'],
    ['doubao-seedance-2-0-mini-260615', content(text(), video), 'input.content[1].role unsupported_value'],
    [onePointFive, content(text(), picture('reference_image')), 'input.content[1].role unsupported_value'],
    [two, content({ type: 'draft_task', draft_task: { id: 'cgt-1' } }), 'input.content[0].type unsupported_value'],
    [
      onePointFive,
      content({ type: 'draft_task', draft_task: { id: 'cgt-1' } }, text()),
      'input.content[0] invalid_value',
    ],
    [onePointFive, content({ type: 'draft_task' }), 'input.content[0].draft_task.id missing_required_parameter'],
  ])('%s refuses %j', (model, body, refusal) => {
    expect(refusalOf(model, body)).toBe(refusal)
  })
})

describe('a body in the vendor’s own form', () => {
  const own = { ratio: '9:16', duration: 8, resolution: '480p', seed: 3, generate_audio: false }
  const asked = { ratio: '9:16', seconds: 8, resolution: '480p', seed: 3, sound: false, parameters: { seed: 3 } }

  test('the vendor’s fields are read at the top level and inside input', () => {
    expect(askFor(onePointFive, { content: [text()], ...own })).toMatchObject(asked)
    expect(askFor(onePointFive, { input: { content: [text()], ...own } })).toMatchObject(asked)
    expect(askFor(onePointFive, { input: { ...prompt, ...own } })).toMatchObject(asked)
  })

  test.each<[object, string]>([
    [{ ...content(text()), ratio: '9:16', aspect_ratio: '16:9' }, 'ratio invalid_value'],
    [{ input: { content: [text()], duration: 8 }, duration: 5 }, 'input.duration invalid_value'],
    [{ input: { content: [text()], resolution: '8k' } }, 'input.resolution unsupported_value'],
    [{ input: { ...prompt, content: [text()] } }, 'input.prompt invalid_value'],
    [{ input: prompt, content: [text()] }, 'input.prompt invalid_value'],
    [{ input: media(['first_frame']), content: [text()] }, 'input.prompt invalid_value'],
    [{ input: { img_url: image }, content: [text()] }, 'input.img_url invalid_value'],
    [{ input: { content: [text()] }, content: [text()] }, 'content invalid_value'],
  ])('%j is refused', (body, refusal) => {
    expect(refusalOf(two, body)).toBe(refusal)
  })
})

describe('flags in the prompt', () => {
  test('flags become fields and are removed from the prompt', () => {
    const ask = askFor(two, content(text('a fox --rs 1080p --rt 9:16 runs --dur 7 --seed 11 --wm true')))
    expect(ask).toMatchObject({
      prompt: 'a fox runs',
      resolution: '1080p',
      ratio: '9:16',
      seconds: 7,
      parameters: { seed: 11, watermark: true },
    })
    expect(askFor(two, { input: { prompt: 'a fox --resolution 480p' } })).toMatchObject({
      prompt: 'a fox',
      resolution: '480p',
    })
  })

  test.each(['a -- fox --quick runs', 'a fox --constructor on a crane'])(
    'text that only looks like a flag stays in the prompt: %s',
    (words) => {
      expect(askFor(two, content(text(words))).prompt).toBe(words)
    },
  )

  const at = 'input.content[0].text'
  test.each<[string, object, string]>([
    ['a fox --rs 1080p', { resolution: '720p' }, `${at} invalid_value`],
    ['a fox --dur 5 --duration 9', {}, `${at} invalid_value`],
    ['a fox --rs 8k', {}, `${at} unsupported_value`],
    ['a fox --dur 99', {}, `${at} unsupported_value`],
    ['a fox --dur long', {}, `${at} invalid_type`],
    ['a fox--rs 8k', {}, `${at} unsupported_value`],
    ['a fox --frames 289', {}, `${at} unsupported_value`],
    ['a fox --fps 60', {}, `${at} unsupported_value`],
    ['--rs 720p', {}, `${at} missing_required_parameter`],
  ])('the prompt %s with %j is refused', (words, more, refusal) => {
    expect(refusalOf(two, { ...content(text(words)), ...more })).toBe(refusal)
  })
})

describe('drafts', () => {
  test('a draft is 480p, and is refused on a model without drafts', () => {
    const draft = (body: object) => refusalOf(onePointFive, { input: prompt, ...body })
    expect(askFor(onePointFive, { input: prompt, parameters: { draft: true } }).resolution).toBe('480p')
    expect(draft({ resolution: '720p', parameters: { draft: true } })).toBe('resolution unsupported_value')
    expect(draft({ parameters: { draft: true, return_last_frame: true } })).toBe(
      'parameters.return_last_frame unsupported_value',
    )
    expect(refusalOf(two, { input: prompt, parameters: { draft: true } })).toBe('parameters.draft unsupported_value')
  })

  test('the final video of a draft is held for the longest duration, the widest ratio and audio', () => {
    const final = content({ type: 'draft_task', draft_task: { id: 'cgt-1' } })
    expect(askFor(onePointFive, { ...final, resolution: '1080p' })).toMatchObject({
      draftOf: 'cgt-1',
      draftAt: 'input.content[0].draft_task.id',
      seconds: 12,
      resolution: '1080p',
      sound: true,
      // 2206 x 946 x 289 / 1024
      bound: { videoToken: 588_972 },
    })
  })
})

describe('options without a price, and callbacks', () => {
  test.each<[Body, string]>([
    [{ service_tier: 'flex' }, 'parameters.service_tier unsupported_value'],
    [{ tools: [{ type: 'web_search' }] }, 'parameters.tools unsupported_value'],
    [{ frames: 289 }, 'parameters.frames unsupported_value'],
    [{ callback_url: 'https://example.com/' }, 'parameters.callback_url unsupported_value'],
    [{ execution_expires_after: 259_200 }, 'parameters.execution_expires_after invalid_value'],
    [{ priority: 10 }, 'parameters.priority invalid_value'],
  ])('%j is refused in parameters, at the top level and in input', (parameters, refusal) => {
    expect(refusalOf(two, { input: prompt, parameters })).toBe(refusal)
    const [[name, value] = ['', undefined]] = Object.entries(parameters)
    expect(refusalOf(two, { input: prompt, [name]: value })).toBe(refusal.replace('parameters.', ''))
    expect(refusalOf(two, { input: { ...prompt, [name]: value } })).toBe(refusal.replace('parameters.', 'input.'))
  })

  test.each([
    ['flex', "does not support 'flex' with"],
    [7, "does not support '7' with"],
    [['flex'], `does not support '["flex"]' with`],
  ])('the refusal quotes the service tier %j once', (service_tier, words) => {
    expect(() => askFor(two, { input: prompt, service_tier })).toThrow(words)
  })

  test('the default service tier is accepted', () => {
    expect(refusalOf(two, { input: prompt, parameters: { service_tier: 'default', tools: [] } })).toBe('accepted')
  })
})

describe('the bound', () => {
  test('the bound is the vendor’s own count where everything is known', () => {
    // 1280 x 720 and 864 x 496 at 24 frames a second and one more, by the vendor's table.
    expect(askFor(two, { input: prompt, duration: 5 }).bound.videoToken).toBe(108_900)
    expect(askFor(two, { input: prompt, duration: 5, resolution: '480p' }).bound.videoToken).toBe(50_639)
  })

  test('the bound includes reference videos where they are charged', () => {
    const ask = askFor(two, { ...content(text(), video), duration: 5 })
    expect(ask.bound).toEqual({
      video: { seconds: 20, resolution: '720p', sound: true, hasInputVideo: true },
      videoToken: (1280 * 720 * (24 * 20 + 1)) / 1024,
    })
    const wan = askFor('wan2.6-r2v', { input: { ...prompt, reference_urls: ['https://example.com/what'] } })
    expect(wan.bound).toEqual({ video: { seconds: 10, resolution: '720p', sound: true, hasInputVideo: true } })
    // The extension in a URL says nothing about what it leads to.
    for (const url of [image, 'https://example.com/a.mp4?x=.png']) {
      const linked = askFor('wan2.6-r2v', { input: { ...prompt, reference_urls: [url] } })
      expect(linked.bound).toEqual(wan.bound)
    }
    const inline = 'data:image/png;base64,iVBORw0KGgo='
    const still = askFor('wan2.6-r2v', { input: { ...prompt, reference_urls: [inline] } })
    expect(still.bound).toEqual({ video: { seconds: 5, resolution: '720p', sound: true } })
  })

  test('the bound includes the longest length of each reference video, unless the vendor limits their sum', () => {
    for (const [model, count, seconds] of [
      ['wan2.7-r2v', 1, 35],
      ['wan2.7-r2v', 3, 95],
      ['wan3.0-video', 3, 20],
    ] as const) {
      const videos = Array.from({ length: count }, () => ['reference_video', clip] as const)
      expect(askFor(model, { input: media(...videos) }).bound.video?.seconds).toBe(seconds)
    }
  })
})

test.each(['fox --frames--wm false 289', 'fox --frames--seed 1 289', 'fox --dur', '--rs--rs 480p 1080p fox'])(
  'a flag that stays in the prompt, or appears when another is removed, is refused: %s',
  (words) => {
    expect(() => askFor(two, content(text(words)))).toThrow(expect.objectContaining({ kind: 'bad-request' }))
  },
)
