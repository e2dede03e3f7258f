import { describe, expect, test } from 'bun:test'
import { gatewayForTests } from '../support/gateway.ts'
import { refusedForFree } from '../support/refused.ts'
import { errorOf } from '../support/streams.ts'

// What a 400 about a video says: the field at fault as the client wrote it, and what would be accepted in its place.

const gateway = gatewayForTests()

async function complaint(body: object): Promise<[string | null, string]> {
  const send = () => gateway.post('/v1/videos/generations', { input: { prompt: 'A fox.' }, ...body })
  const { status, param, message } = await errorOf(await refusedForFree(gateway, send))
  expect(status).toBe(400)
  return [param, message]
}

const seedance = 'doubao-seedance-2-0-260128'

describe('a field that the vendor lacks', () => {
  test.each([
    [seedance, 'input', { input: { prompt: 'A fox.', negative_prompt: 'dark' } }],
    [seedance, 'parameters', { parameters: { negative_prompt: 'dark' } }],
  ])('%s: negative_prompt in %s is refused', async (model, place, body) => {
    const at = `${place}.negative_prompt`
    const message = `Unsupported value: '${at}' is not supported by this model: describe it in the prompt.`
    expect(await complaint({ model, ...body })).toEqual([at, message])
  })

  test.each([
    ['wan2.7-t2v', { shot_type: 'multi' }],
    ['wan2.7-t2v', { mode: 'pro' }],
    ['kling-v2-6', { watermark: true }],
    ['kling-v2-6', { prompt_extend: true }],
    ['minimax-hailuo-02', { watermark: true }],
    [seedance, { prompt_extend: true }],
    ['veo-3.1-generate-preview', { watermark: true }],
    ['gen4.5', { camera_fixed: true }],
    ['viduq3-pro', { shot_type: 'single' }],
    ['pixverse-v6', { lip_sync_tts_switch: true }],
  ])('%s: %j is refused, since it would have no effect', async (model, parameters) => {
    const at = `parameters.${Object.keys(parameters)[0]}`
    const message = `Unsupported value: '${at}' is not supported by this model: it would have no effect.`
    expect(await complaint({ model, parameters })).toEqual([at, message])
  })

  test.each([
    ['minimax-hailuo-02', { seed: 7 }],
    ['sora-2', { seed: 7 }],
    ['gen4.5', { camera_fixed: true }],
    ['kling-v2-6', { watermark: true }],
    ['viduq3-pro', { negative_prompt: 'dark' }],
    ['veo-3.1-generate-preview', { audio: false }],
    ['wan3.0-video', { draft: true }],
  ])('%s: %j is named where it was written, at the top level or in input', async (model, field) => {
    const [name = ''] = Object.keys(field)
    const [top, message] = await complaint({ model, ...field })
    expect([top, message.includes(`'${name}'`)]).toEqual([name, true])
    const [inside] = await complaint({ model, input: { prompt: 'A fox.', ...field } })
    expect(inside).toBe(`input.${name}`)
  })
})

describe('other fields in input', () => {
  const flat = ['kling-v2-6', 'minimax-hailuo-02', 'gen4.5', 'viduq3-pro', 'pixverse-v6', seedance]

  test.each([...flat, 'wan3.0-video'])('%s: an unknown field is passed on to the vendor', async (model) => {
    const input = { prompt: 'A fox.', a_word_of_its_own: 'slow' }
    expect((await gateway.post('/v1/videos/generations', { model, input, wait: true })).status).toBe(200)
    const created = (await gateway.calls()).findLast(({ text }) => text.includes('A fox.'))
    expect(created?.text).toContain('"a_word_of_its_own":"slow"')
  })

  test.each([
    ['minimax-hailuo-02', { seed: 7 }, 'input.seed'],
    ['sora-2', { seed: 7 }, 'input.seed'],
    ['sora-2', { a_word_of_its_own: 'slow' }, 'input.a_word_of_its_own'],
    ['veo-3.1-generate-preview', { a_word_of_its_own: 'slow' }, 'input.a_word_of_its_own'],
    ['kling-v2-6', { watermark: true }, 'input.watermark'],
    ['kling-v2-6', { duration: 7 }, 'input.duration'],
    ['kling-v2-6', { n: 2 }, 'input.n'],
    ['viduq3-pro', { off_peak: true }, 'input.off_peak'],
    ['pixverse-v6', { img_id: 7 }, 'input.img_id'],
  ])('%s: %j is refused', async (model, words, at) => {
    const [param] = await complaint({ model, input: { prompt: 'A fox.', ...words } })
    expect(param).toBe(at)
  })
})

describe('a field that describes the video in the wrong place or under the wrong name', () => {
  const image = 'https://example.com/a.png'
  const content = [{ type: 'text', text: 'A bear.' }]

  test.each([
    ['kling-v2-6', { image }, 'image'],
    ['kling-v2-6', { parameters: { image } }, 'parameters.image'],
    ['wan2.6-t2v', { img_url: image }, 'img_url'],
    ['wan2.6-t2v', { content }, 'content'],
    ['wan2.7-t2v', { parameters: { media: [{ type: 'first_frame', url: image }] } }, 'parameters.media'],
    ['minimax-hailuo-02', { parameters: { first_frame_image: image } }, 'parameters.first_frame_image'],
    ['viduq3-turbo', { parameters: { images: [image] } }, 'parameters.images'],
    ['veo-3.1-generate-preview', { prompt: 'A bear.' }, 'prompt'],
    [seedance, { parameters: { content } }, 'parameters.content'],
  ])('%s: %j outside input is refused', async (model, fields, at) => {
    const message = `Unsupported value: '${at}' is not read: describe the video in 'input'.`
    expect(await complaint({ model, ...fields })).toEqual([at, message])
  })

  test.each([
    ['kling-v2-6', { image_list: [{ image }] }],
    ['gen4.5', { promptImage: image }],
    ['sora-2', { input_reference: { image_url: image } }],
    ['viduq3-turbo', { images: [image] }],
    ['wan3.0-video', { reference_urls: [image] }],
    [seedance, { image_url: image }],
    ['kling-v2-6', { first_frame_url: image }],
    ['minimax-hailuo-02', { last_frame_url: image }],
    ['wan3.0-video', { video_url: 'https://example.com/a.mp4' }],
  ])('%s: the name %j in input is refused', async (model, words) => {
    const at = `input.${Object.keys(words)[0]}`
    const message = `Unsupported value: '${at}' is not supported by this model, which takes 'input.prompt' and 'input.media'.`
    expect(await complaint({ model, input: { prompt: 'A fox.', ...words } })).toEqual([at, message])
  })

  test('wan2.6-t2v, which is sent its whole input, refuses another vendor’s field too', async () => {
    for (const field of ['first_frame_image', 'image_url', 'ref_images_url']) {
      const [param] = await complaint({ model: 'wan2.6-t2v', input: { prompt: 'A fox.', [field]: image } })
      expect(param).toBe(`input.${field}`)
    }
  })

  test('the same value given twice is accepted, and empty values are ignored', async () => {
    const body = { model: 'kling-v2-6', prompt: 'A fox.', image, images: [], img_url: '', wait: true }
    const response = await gateway.post('/v1/videos/generations', { ...body, input: { prompt: 'A fox.', image } })
    expect(response.status).toBe(200)
  })
})

describe('a refused flag in a prompt', () => {
  test.each([
    ['--fps 24', "Unsupported value: 'input.prompt --fps' is not supported."],
    ['--framespersecond 24', "Unsupported value: 'input.prompt --framespersecond' is not supported."],
    ['--rs 8k', "Unsupported value: 'input.prompt --rs' does not support '8k' with this model."],
    ['--dur 5s', "Invalid 'input.prompt --dur': expected whole seconds."],
    ['--seed -7', "Invalid 'input.prompt --seed': expected -1 to 2147483647."],
    ['--rt 7:5', "Unsupported value: 'input.prompt --rt' does not support '7:5' with this model."],
  ])('the message names %s as it was written', async (flag, said) => {
    const [param, message] = await complaint({ model: seedance, input: { prompt: `A fox ${flag}` } })
    expect(param).toBe('input.prompt')
    expect(message).toStartWith(said)
  })

  test('a flag that contradicts a field is named together with the field', async () => {
    const asked = { model: seedance, resolution: '720p', input: { prompt: 'A fox --rs 1080p' } }
    expect(await complaint(asked)).toEqual(['input.prompt', "'input.prompt --rs' is 1080p, but 'resolution' is 720p."])
  })
})

describe('a refused parameter that stands for a resolution', () => {
  test('the message names Kling’s mode and its supported values', async () => {
    expect(await complaint({ model: 'kling-v2-6', parameters: { mode: 'std' } })).toEqual([
      'parameters.mode',
      "Unsupported value: 'parameters.mode' does not support 'std' with this model. Supported values are: pro.",
    ])
  })

  test('the message names Wan’s size and its supported values', async () => {
    const [param, message] = await complaint({ model: 'wan2.6-t2v', parameters: { size: '832*480' } })
    expect(param).toBe('parameters.size')
    expect(message).toStartWith("Unsupported value: 'parameters.size' does not support '832*480' with this model.")
    expect(message).toContain('1280*720')
  })
})

test('a first frame without references is told what is missing beside it', async () => {
  const input = { prompt: 'A fox.', media: [{ type: 'first_frame', url: 'https://example.com/a.png' }] }
  expect(await complaint({ model: 'wan2.7-r2v', input })).toEqual([
    'input.media',
    'This model needs a reference_image or reference_video beside a first_frame.',
  ])
})

test.each([
  ['wan2.6-r2v', { reference_urls: ['https://example.com/a.mp4'] }, { shot_type: 'multi', prompt_extend: false }],
  ['wan3.0-video', {}, { shot_type: 'multi', prompt_extend: false }],
  ['wan2.5-t2v-preview', {}, { shot_type: 'single' }],
])('%s is sent the shots that it can make: %j %j', async (model, input, parameters) => {
  const body = { model, wait: true, input: { prompt: 'A fox.', ...input }, parameters }
  expect((await gateway.post('/v1/videos/generations', body)).status).toBe(200)
})
