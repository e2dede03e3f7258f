import { describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { drawImage } from '../../src/sandbox/files/image.ts'
import { gatewayForTests } from '../support/gateway.ts'
import { refusedForFree } from '../support/refused.ts'
import { errorOf } from '../support/streams.ts'

// What a 400 about images says: the field at fault, and what would be accepted in its place.

const gateway = gatewayForTests()

const path = '/v1/images/generations'

async function complaint(body: object) {
  return errorOf(await refusedForFree(gateway, () => gateway.post(path, { prompt: 'A cat', ...body })))
}

/** In the native form, whose errors can name the field only in their message. */
async function nativeComplaint(model: string, content: readonly object[], parameters: object = {}): Promise<string> {
  const body = { model, input: { messages: [{ role: 'user', content }] }, parameters }
  const response = await refusedForFree(gateway, () => gateway.post(path, body))
  expect(response.status).toBe(400)
  return ((await response.json()) as { message: string }).message
}

test('n sent as a string is refused with a message that asks for the number', async () => {
  const said = await nativeComplaint('x-image-2.0', [{ text: 'A cat' }], { n: '1' })
  expect(said).toBe("Invalid 'parameters.n': expected the number 1.")
})

describe('the message for an unsupported size', () => {
  test('a model with free sizes states its rules instead of a list', async () => {
    const { message, param } = await complaint({ model: 'gpt-image-2', size: 'big' })
    expect([param, message]).toEqual([
      'size',
      "Invalid 'size': 'big' is not WIDTHxHEIGHT or 'auto': multiples of 16, sides of at most 3840, the long one at most 3 times the short one.",
    ])
    expect((await complaint({ model: 'qwen-image-2.0', size: '1024*1024' })).message).toBe(
      "Invalid 'size': '1024*1024' is not WIDTHxHEIGHT: at least 262144 pixels, at most 4194304 pixels.",
    )
  })

  test('a model with fixed sizes lists them', async () => {
    expect((await complaint({ model: 'gpt-image-1', size: 'big' })).message).toContain(
      "Supported values are: 'auto', '1024x1024', '1536x1024', '1024x1536'.",
    )
  })
})

describe('a linked image that cannot be fetched', () => {
  const model = 'gemini-2.5-flash-image'
  const image = 'https://pictures.invalid/a.png'
  const why = 'the host in the URL cannot be reached.'

  test('the common form names image, with the index in a list', async () => {
    expect(await complaint({ model, image })).toMatchObject({
      status: 400,
      param: 'image',
      code: 'invalid_url',
      message: `Invalid 'image': ${why}`,
    })
    const drawn = drawImage({ width: 64, height: 64, format: 'png', seed: 1 }).toString('base64')
    expect(await complaint({ model, image: [`data:image/png;base64,${drawn}`, image] })).toMatchObject({
      param: 'image[1]',
      message: `Invalid 'image[1]': ${why}`,
    })
  })

  test('an image at a private address is refused without a connection', async () => {
    let connections = 0
    const near = createServer((socket) => {
      connections++
      socket.destroy()
    }).listen(0, '127.0.0.1')
    await once(near, 'listening')
    const { port } = near.address() as AddressInfo
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, 'localhost', '169.254.169.254', '[::1]']) {
      const said = await complaint({ model, image: `https://${host}/a.png` })
      expect(said).toMatchObject({ status: 400, param: 'image', code: 'invalid_url' })
    }
    near.close()
    expect(connections).toBe(0)
  })

  test('the native form names the path of the content block', async () => {
    const said = await nativeComplaint(model, [{ text: 'A cat' }, { image }])
    expect(said).toBe(`Invalid 'input.messages[0].content[1].image': ${why}`)
  })

  test('a video request names input.img_url or input.media', async () => {
    const video = { model: 'veo-3.1-generate-preview', input: { prompt: 'A cat', img_url: image } }
    const named = await refusedForFree(gateway, () => gateway.post('/v1/videos/generations', video))
    expect(await errorOf(named)).toMatchObject({
      status: 400,
      param: 'input.img_url',
      message: expect.stringContaining(why),
    })
    const listed = { ...video, input: { prompt: 'A cat', media: [{ type: 'first_frame', url: image }] } }
    const second = await refusedForFree(gateway, () => gateway.post('/v1/videos/generations', listed))
    expect(await errorOf(second)).toMatchObject({ status: 400, param: 'input.media' })
  })
})

test.each(['dall-e-2', 'dall-e-3', 'imagen-4.0-generate-001'])(
  '%s accepts the backgrounds that its refusal lists',
  async (model) => {
    const { message } = await complaint({ model, background: 'transparent' })
    expect(message).toContain("Supported values are: 'auto', 'opaque'.")
    for (const background of ['auto', 'opaque']) {
      const body = { model, prompt: 'A cat', background, moderation: 'low', output_compression: 100 }
      expect((await gateway.post(path, body)).status).toBe(200)
    }
  },
)
