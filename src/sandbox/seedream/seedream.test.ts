import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { readImageHeader } from '../files/image-header.ts'
import { bytesOf, openMedia } from '../media/testing.ts'
import { errorOf, jsonOf } from '../testing.ts'

const { sandbox, post, bill, clearBill } = openMedia()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

type Answer = {
  model: string
  data: { url?: string; b64_json?: string; size?: string; error?: { code: string } }[]
  usage: { generated_images: number; output_tokens: number; total_tokens: number }
}

const model = 'doubao-seedream-4-5-251128'
const draw = (body: object) => post('/ark/api/v3/images/generations', { model, prompt: 'a red fox', ...body })
const story = (images: number) => ({
  sequential_image_generation: 'auto',
  sequential_image_generation_options: { max_images: images },
})

describe('Seedream images', () => {
  test('an image is a link to a JPEG of 2048x2048 pixels and is billed per image', async () => {
    const { data, usage } = await jsonOf<Answer>(draw({}))
    expect(usage).toEqual({ generated_images: 1, output_tokens: 16_384, total_tokens: 16_384 })
    const header = readImageHeader(await bytesOf(fetch(data[0]?.url ?? '')))
    expect([data[0]?.size, header]).toMatchObject(['2048x2048', { width: 2048, height: 2048, format: 'jpeg' }])
    expect(await bill()).toMatchObject([{ units: { images: { count: 1, size: '2048x2048' } }, cost: '0.00004' }])
  })

  test.each([
    [model, '2K', '2048x2048'],
    [model, '4K', '4096x4096'],
    [model, '2560x1440', '2560x1440'],
    ['doubao-seedream-4-0-250828', '1K', '1024x1024'],
    ['doubao-seedream-4-0-250828', '1280x720', '1280x720'],
    ['doubao-seedream-5-0-lite', '3K', '3072x3072'],
  ])('%s at the size %s draws %s pixels', async (model, size, made) => {
    const { data } = await jsonOf<Answer>(draw({ model, size, response_format: 'b64_json' }))
    const { width, height } = readImageHeader(Buffer.from(data[0]?.b64_json ?? '', 'base64')) ?? {}
    expect([data[0]?.size, `${width}x${height}`]).toEqual([made, made])
  })

  test('a failed image of a sequence is reported among the others and costs nothing', async () => {
    const { data, usage } = await jsonOf<Answer>(draw({ prompt: 'a fox sandbox:fail-image=2', ...story(3) }))
    expect(data.map(({ url, error }) => [url !== undefined, error?.code])).toEqual([
      [true, undefined],
      [false, 'OutputImageSensitiveContentDetected'],
      [true, undefined],
    ])
    expect(usage.generated_images).toBe(2)
    expect(await bill()).toMatchObject([{ status: 200, units: { images: { count: 2 } } }])
  })

  test('input and output images together are limited to fifteen', async () => {
    const image = Array.from({ length: 10 }, (_, index) => `https://example.com/${index}.png`)
    expect((await jsonOf<Answer>(draw({ image, ...story(15) }))).data.length).toBe(5)
  })

  test('a stream sends the images one by one, then the usage and [DONE]', async () => {
    const text = await (await draw({ prompt: 'a fox sandbox:fail-image=1', stream: true, ...story(2) })).text()
    expect(text.match(/^event: .*$/gm)).toEqual([
      'event: image_generation.partial_failed',
      'event: image_generation.partial_succeeded',
      'event: image_generation.completed',
    ])
    expect(text).toEndWith('data: [DONE]\n\n')
    expect(text).toContain('"usage":{"generated_images":1,"output_tokens":16384,"total_tokens":16384}')
  })

  test.each([
    ['a size tier of another model', { size: '1K' }, 'size'],
    ['too few pixels', { size: '1280x720' }, 'size'],
    ['a size written with *', { size: '2048*2048' }, 'size'],
    ['too extreme an aspect ratio', { size: '16000x500' }, 'size'],
    ['fifteen reference images', { image: Array.from({ length: 15 }, () => 'https://example.com/a.png') }, 'image'],
    ['an image with a relative URL', { image: 'a.png' }, 'image'],
    ['a series of sixteen images', story(16), 'max_images'],
  ])('a request is refused with a 400: %s', async (_, body, param) => {
    expect(await errorOf(draw(body))).toMatchObject({
      status: 400,
      code: 'InvalidParameter',
      type: 'BadRequest',
      param,
    })
  })
})
