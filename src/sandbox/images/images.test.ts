import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import OpenAI, { toFile } from 'openai'
import { readImageHeader } from '../files/image-header.ts'
import { drawImage, type ImageFormat, type Size } from '../files/image.ts'
import { openMedia } from '../media/testing.ts'
import { errorOf, jsonOf } from '../testing.ts'

const { sandbox, post, bill, clearBill } = openMedia()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const client = new OpenAI({ apiKey: 'vendor-key', baseURL: sandbox.baseUrl('openai'), maxRetries: 0 })
const prompt = 'a red fox in the snow'

const generate = (body: object) => post('/openai/v1/images/generations', { model: 'gpt-image-2', prompt, ...body })
const headerOf = (b64: string | undefined) => readImageHeader(Buffer.from(b64 ?? '', 'base64'))

describe('image generation', () => {
  test('the official client gets the images as requested, with their usage', async () => {
    const { data, ...about } = await client.images.generate({
      model: 'gpt-image-2',
      prompt,
      n: 2,
      size: '1536x1024',
      quality: 'low',
      background: 'transparent',
      output_format: 'webp',
    })
    const header = { width: 1536, height: 1024, format: 'webp', hasAlpha: true } as const
    expect(data?.map((image) => headerOf(image.b64_json))).toEqual([header, header])
    expect(data?.[0]?.b64_json).not.toBe(data?.[1]?.b64_json)
    const [input, output] = [6, 2 * 408]
    expect(about).toMatchObject({
      created: expect.any(Number),
      background: 'transparent',
      output_format: 'webp',
      quality: 'low',
      size: '1536x1024',
      usage: {
        input_tokens: input,
        input_tokens_details: { text_tokens: input, image_tokens: 0 },
        output_tokens: output,
        total_tokens: input + output,
      },
    })
    expect(await bill()).toMatchObject([{ units: { input, imageOutput: output }, cost: '0.000024492' }])
  })

  test('gpt-image-2 accepts any size in steps of 16', async () => {
    const { data, size } = await jsonOf<{ data: { b64_json: string }[]; size: string }>(generate({ size: '3840x1280' }))
    expect([size, headerOf(data[0]?.b64_json)]).toMatchObject(['3840x1280', { width: 3840, height: 1280 }])
  })

  test.each([
    ['no prompt', { prompt: undefined }, 'prompt', 'missing_required_parameter'],
    ['too long a prompt', { prompt: 'a'.repeat(32_001) }, 'prompt', 'string_above_max_length'],
    ['the format url', { response_format: 'url' }, 'response_format', 'unknown_parameter'],
    ['a style for a model without styles', { style: 'vivid' }, 'style', 'unknown_parameter'],
    ['sides that are no multiple of 16', { size: '1000x1000' }, 'size', 'invalid_value'],
    ['too large a side', { size: '3856x1920' }, 'size', 'invalid_value'],
    ['too extreme an aspect ratio', { size: '3200x1024' }, 'size', 'invalid_value'],
    ['a free size on an older model', { model: 'gpt-image-1', size: '1280x720' }, 'size', 'invalid_value'],
    ['a quality of another model', { quality: 'hd' }, 'quality', 'invalid_value'],
    ['eleven images', { n: 11 }, 'n', 'integer_above_max_value'],
    ['zero images', { n: 0 }, 'n', 'integer_below_min_value'],
    ['a transparent jpeg', { background: 'transparent', output_format: 'jpeg' }, 'background', 'invalid_value'],
    ['compression of a png', { output_compression: 50 }, 'output_compression', 'invalid_value'],
    ['four previews', { stream: true, partial_images: 4 }, 'partial_images', 'integer_above_max_value'],
  ])('a generation is refused with a 400 and costs nothing: %s', async (_, body, param, code) => {
    expect(await errorOf(generate(body))).toMatchObject({ status: 400, param, code })
    expect(await bill()).toMatchObject([{ status: 400, cost: '0' }])
  })
})

describe('a stream of images', () => {
  test('the previews, which are billed, come before the final image', async () => {
    const stream = await client.images.generate({
      model: 'gpt-image-2',
      prompt,
      stream: true,
      partial_images: 2,
      size: '1024x1024',
      quality: 'high',
    })
    const events = await Array.fromAsync(stream)
    expect(events.map(({ type }) => type)).toEqual([
      'image_generation.partial_image',
      'image_generation.partial_image',
      'image_generation.completed',
    ])
    const last = events.at(-1)
    expect(headerOf(last?.b64_json)).toMatchObject({ width: 1024, height: 1024 })
    expect(last).toMatchObject({ created_at: expect.any(Number), usage: { output_tokens: 4160 + 200 } })
    expect(await bill()).toMatchObject([{ status: 200, units: { imageOutput: 4360 } }])
  })

  test('a stream without previews consists of the final image alone', async () => {
    const text = await (await generate({ stream: true })).text()
    expect(text.match(/^event: .*$/gm)).toEqual(['event: image_generation.completed'])
  })
})

describe('the DALL-E models', () => {
  test('dall-e-2 returns links to images of the size, charges by size and reports no usage', async () => {
    const body = { model: 'dall-e-2', size: '512x512', n: 2 }
    const answer = await jsonOf<{ data: { url: string }[]; usage?: unknown }>(generate(body))
    expect([answer.data.length, answer.usage]).toEqual([2, undefined])
    for (const { url } of answer.data) {
      expect(readImageHeader(await (await fetch(url)).bytes())).toMatchObject({ width: 512, height: 512 })
    }
    expect(await bill()).toMatchObject([{ units: { images: { count: 2, size: '512x512' } }, cost: '0.000036' }])
  })

  test('dall-e-3 charges by quality, returns base64 on request and refuses two images', async () => {
    const body = { model: 'dall-e-3', quality: 'hd', response_format: 'b64_json' }
    const { data } = await jsonOf<{ data: { b64_json: string; revised_prompt: string }[] }>(generate(body))
    expect(headerOf(data[0]?.b64_json)).toMatchObject({ width: 1024, height: 1024 })
    expect(data[0]?.revised_prompt).toBeString()
    expect(await bill()).toMatchObject([{ cost: '0.00008' }])
    expect(await errorOf(generate({ ...body, n: 2 }))).toMatchObject({ status: 400, param: 'n' })
  })
})

const square: Size = { width: 64, height: 64 }

function picture(format: ImageFormat, size: Size = square, isTransparent = false) {
  const bytes = drawImage({ ...size, format, seed: 1, isTransparent })
  return toFile(bytes, `picture.${format}`, { type: `image/${format}` })
}

const refusalOf = (edit: OpenAI.Images.ImageEditParamsNonStreaming): Promise<unknown> =>
  client.images.edit(edit).catch((error: unknown) => error)

describe('image edits', () => {
  test('an edit takes several images and a mask, and bills the images it reads', async () => {
    const { data, usage, size } = await client.images.edit({
      model: 'gpt-image-1',
      image: [await picture('png', { width: 600, height: 400 }), await picture('webp')],
      mask: await picture('png', { width: 600, height: 400 }, true),
      prompt,
      n: 2,
      quality: 'low',
    })
    // 600x400 has two tiles of 512, 64x64 one.
    const looked = 65 * 2 + 129 * 3
    expect([data?.length, size]).toEqual([2, '1536x1024'])
    expect(usage).toMatchObject({
      input_tokens: 6 + looked,
      input_tokens_details: { text_tokens: 6, image_tokens: looked },
    })
    expect(await bill()).toMatchObject([
      { units: { input: 6, imageInput: looked, imageOutput: 2 * 408 }, cost: '0.000028628' },
    ])
  })

  test.each(['7', 'true'])('the prompt %s of an edit is a text', async (prompt) => {
    const { data } = await client.images.edit({ model: 'gpt-image-2', image: await picture('png'), prompt })
    expect(data).toHaveLength(1)
  })

  test('a streamed edit has event names of its own', async () => {
    const image = await picture('jpeg')
    const stream = await client.images.edit({ model: 'gpt-image-2', image, prompt, stream: true, partial_images: 1 })
    const types = (await Array.fromAsync(stream)).map(({ type }) => type)
    expect(types).toEqual(['image_edit.partial_image', 'image_edit.completed'])
  })

  test('dall-e-2 edits square images only and returns a link', async () => {
    const edited = await client.images.edit({ model: 'dall-e-2', image: await picture('png'), prompt, size: '256x256' })
    expect(edited.data?.[0]?.url).toStartWith(sandbox.url)
    const image = await picture('png', { width: 64, height: 32 })
    expect(await refusalOf({ model: 'dall-e-2', image, prompt })).toMatchObject({ status: 400 })
  })

  const text = toFile(Buffer.from('hello'), 'a.txt', { type: 'text/plain' })
  const broken = toFile(Buffer.from('hello'), 'a.png', { type: 'image/png' })

  test.each([
    ['a text file', { image: text }, 'unsupported_file_mimetype'],
    ['a file that is no image', { image: broken }, 'invalid_image_file'],
    ['a mask of another size', { mask: picture('png', { width: 32, height: 32 }, true) }, 'invalid_mask_image_format'],
    ['a mask without transparency', { mask: picture('png') }, 'invalid_mask_image_format'],
    ['a mask in webp', { mask: picture('webp', square, true) }, 'invalid_mask_image_format'],
  ])(
    'an edit with %s is refused',
    async (_, { image = picture('png'), mask }: { image?: typeof text; mask?: typeof text }, code) => {
      const files = { image: await image, ...(mask && { mask: await mask }) }
      expect(await refusalOf({ model: 'gpt-image-2', prompt, ...files })).toMatchObject({ status: 400, code })
    },
  )

  test('an edit with 17 images, without an image or in JSON is refused', async () => {
    const many = await Promise.all(Array.from({ length: 17 }, () => picture('png')))
    expect(await refusalOf({ model: 'gpt-image-2', prompt, image: many })).toMatchObject({
      code: 'array_above_max_length',
    })
    const form = new FormData()
    form.set('model', 'gpt-image-2')
    form.set('prompt', prompt)
    const path = `${sandbox.baseUrl('openai')}/images/edits`
    const none = fetch(path, { method: 'POST', headers: { authorization: 'Bearer k' }, body: form })
    expect(await errorOf(none)).toMatchObject({ status: 400, param: 'image', code: 'missing_required_parameter' })
    expect(await errorOf(post('/openai/v1/images/edits', { model: 'gpt-image-2', prompt }))).toMatchObject({
      status: 400,
    })
  })
})
