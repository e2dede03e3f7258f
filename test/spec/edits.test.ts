import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { crc32 } from 'node:zlib'
import { readBase64Head } from '../../src/base/image-head.ts'
import { drawImage, type ImageSpec } from '../../src/sandbox/files/image.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { recordOf } from '../support/records.ts'
import { refusedForFree } from '../support/refused.ts'

// `POST /v1/images/edits`, row by row of the specification.

let gateway: TestGateway

beforeAll(async () => {
  gateway = await startTestGateway({
    yaml: `models:
  - { id: maskless, from: gpt-image-1.5, images: { sizes: [auto], alwaysBytes: true, qualities: [auto, low], edits: { sizes: [auto], references: { min: 1, max: 16 }, mask: false } } }
  - { id: own-editor, capability: edits, vendor: openai, prices: { perImage: "0.01" } }`,
  })
})
afterEach(() => gateway.assertBooks())
afterAll(() => gateway.close())

const path = '/v1/images/edits'
const newer = ['gpt-image-1', 'gpt-image-1-mini', 'gpt-image-1.5', 'gpt-image-2']
const older = 'dall-e-2'

function image(wish: Partial<ImageSpec> = {}): Buffer<ArrayBuffer> {
  return drawImage({ width: 256, height: 256, format: 'png', seed: 1, ...wish })
}

type Head = { width?: number; height?: number; depth?: number; colour?: number; sum?: number }

/** A PNG whose header is overwritten; its checksum is recomputed unless one is given. */
function withHead({ width = 256, height = 256, depth, colour, sum }: Head): Buffer<ArrayBuffer> {
  const file = image()
  file.writeUInt32BE(width, 16)
  file.writeUInt32BE(height, 20)
  if (depth !== undefined) file[24] = depth
  if (colour !== undefined) file[25] = colour
  file.writeUInt32BE(sum ?? crc32(file.subarray(12, 29)), 29)
  return file
}

type Part = string | Uint8Array<ArrayBuffer>
type Fields = readonly (readonly [name: string, value: Part])[]

const plain: Fields = [
  ['model', 'gpt-image-2'],
  ['prompt', 'Add a hat'],
  ['image', image()],
]

/** The plain form with some of its fields replaced; an empty list leaves a field out. */
function form(changes: Readonly<Record<string, Part | readonly Part[]>> = {}): FormData {
  const built = new FormData()
  const kept = plain.filter(([name]) => changes[name] === undefined)
  const changed = Object.entries(changes).flatMap(([name, value]) =>
    [value].flat().map((each) => [name, each] as const),
  )
  for (const [name, value] of [...kept, ...changed]) {
    if (typeof value === 'string') built.append(name, value)
    else built.append(name, new File([value], 'ignored.png', { type: 'image/png' }))
  }
  return built
}

function send(body: FormData, key = gateway.key, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(gateway.url + path, { method: 'POST', headers: { authorization: `Bearer ${key}`, ...headers }, body })
}

type Made = {
  created: number
  data: { b64_json?: string; url?: string }[]
  background: string
  output_format: string
  quality: string
  size: string
  usage: {
    input_tokens: number
    input_tokens_details: { text_tokens: number; image_tokens: number }
    output_tokens: number
    total_tokens: number
  }
}

async function made(response: Response): Promise<Made> {
  if (response.status !== 200) throw new Error(await response.text())
  return (await response.json()) as Made
}

/** The text fields that the vendor was sent last, and the names and types of files. */
async function lastSent(): Promise<{ fields: Record<string, string>; files: string[]; text: string }> {
  const text = (await gateway.calls()).at(-1)?.text ?? ''
  const parts = [...text.matchAll(/name="([^"]+)"(?:; filename="([^"]+)"\r\nContent-Type: (\S+))?\r\n\r\n([^\r]*)/g)]
  const files = parts.filter(([, , file]) => file !== undefined)
  return {
    text,
    fields: Object.fromEntries(
      parts.filter((part) => !files.includes(part)).map(([, name, , , value]) => [name ?? '', value ?? '']),
    ),
    files: files.map(([, name, file, type]) => `${name} ${file} ${type}`),
  }
}

/** 400 with Shape B, for free. */
async function isInvalid(body: FormData, param: string | null, code?: string): Promise<string> {
  const response = await refusedForFree(gateway, () => send(body))
  const said = (await response.json()) as { error: { message: string } }
  expect([response.status, said]).toEqual([
    400,
    {
      error: { message: expect.any(String), type: 'invalid_request_error', param, code: code ?? expect.any(String) },
    } as never,
  ])
  return said.error.message
}

describe('image', () => {
  test.each(['png', 'jpeg', 'webp'] as const)('a %s file is sent with the type in its header', async (format) => {
    const answer = await made(await send(form({ image: image({ format, width: 300, height: 200 }) })))
    expect(answer).toMatchObject({
      created: expect.any(Number),
      data: [{ b64_json: expect.any(String) }],
      background: 'opaque',
      output_format: 'png',
      quality: expect.any(String),
      size: expect.stringMatching(/^\d+x\d+$/),
    })
    const { usage } = answer
    expect(usage.input_tokens_details.image_tokens).toBeGreaterThan(0)
    expect(usage.total_tokens).toBe(usage.input_tokens + usage.output_tokens)
    // The client's file name and content type are not passed on.
    expect((await lastSent()).files).toEqual([`image image-1.${format} image/${format}`])
  })

  test('several images are accepted as image[], image[0] or repeated image, up to the model’s maximum', async () => {
    const [png, jpeg] = [image(), image({ format: 'jpeg' })]
    for (const fields of [{ 'image[]': [png, jpeg] }, { image: [png, jpeg] }, { 'image[0]': png, 'image[1]': jpeg }]) {
      await made(await send(form({ image: [], ...fields })))
      expect((await lastSent()).files).toEqual(['image[] image-1.png image/png', 'image[] image-2.jpeg image/jpeg'])
    }
    await isInvalid(form({ model: older, image: [png, jpeg] }), 'image')
    const seventeen = Array.from({ length: 17 }, () => image())
    await isInvalid(form({ image: seventeen }), 'image')
  })

  test('a missing image, an image given as a URL and an unknown field are refused', async () => {
    await isInvalid(form({ image: [] }), 'image', 'missing_required_parameter')
    for (const name of ['image', 'image[0]']) await isInvalid(form({ [name]: 'https://example.com/cat.png' }), name)
    await isInvalid(form({ picture: image() }), 'picture', 'unknown_parameter')
  })

  test.each([
    ['GIF', Buffer.from('GIF89a\x01\x00\x01\x00', 'latin1')],
    ['SVG', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')],
    ['PDF', Buffer.from('%PDF-1.7')],
    ['HTML', Buffer.from('<html><script>')],
    ['an empty file', Buffer.alloc(0)],
  ])('an upload of %s is refused as invalid_image_format', (_name, image) =>
    isInvalid(form({ image }), 'image', 'invalid_image_format'),
  )

  test('a truncated image and one that declares 900 megapixels are refused', async () => {
    await isInvalid(form({ image: image().subarray(0, 18) }), 'image', 'invalid_image')
    await isInvalid(form({ image: withHead({ width: 30_000, height: 30_000 }) }), 'image', 'invalid_image')
    await isInvalid(form({ image: withHead({ width: 8_000, height: 8_000 }) }), 'image', 'invalid_image')
  })

  test.each([
    ['a horizontal line of pixels', 16_777_216, 1],
    ['a vertical line of pixels', 1, 16_777_216],
    ['a side of more than 8192', 8_193, 2_000],
    ['more than sixteen times as long as wide', 1_700, 100],
  ])('an image with extreme dimensions is refused: %s', async (_name, width, height) => {
    await isInvalid(form({ image: withHead({ width, height }) }), 'image', 'invalid_image')
  })

  test('an image of 16:1 or 1:16 is accepted and charged by the vendor’s count', async () => {
    for (const [width, height] of [
      [1_600, 100],
      [100, 1_600],
    ] as const) {
      const wish = { image: image({ width, height }), input_fidelity: 'high', quality: 'low' }
      const response = await send(form({ ...wish, model: 'gpt-image-1.5' }))
      const { usage } = await made(response)
      expect(usage.input_tokens_details.image_tokens).toBeGreaterThan(6_240)
      expect(await recordOf(gateway, response)).toMatchObject({ basis: 'vendor' })
    }
  })

  test.each([
    ['cut in half', image().subarray(0, image().length >> 1)],
    ['that ends after its header', image().subarray(0, 33)],
    ['without pixels', Buffer.concat([image().subarray(0, 33), image().subarray(-12)])],
    ['in RGB with 4 bits', withHead({ depth: 4, colour: 2 })],
    ['with a palette of 16 bits', withHead({ depth: 16, colour: 3 })],
    ['with an unknown colour type', withHead({ colour: 5 })],
    ['whose header has a wrong checksum', withHead({ sum: 1 })],
  ])('a PNG %s is refused as invalid_image', (_name, image) => isInvalid(form({ image }), 'image', 'invalid_image'))
})

describe('mask', () => {
  const mask = image({ isTransparent: true })

  test('a transparent PNG of the image’s size is accepted and sent', async () => {
    await made(await send(form({ mask })))
    expect((await lastSent()).files).toEqual(['image image-1.png image/png', 'mask mask.png image/png'])
    await made(await send(form({ model: older, mask })))
  })

  test('a mask of another size is refused as invalid_mask, with both sizes in the message', async () => {
    for (const size of ['512x256', '128x256', '256x128']) {
      const [width = 0, height = 0] = size.split('x').map(Number)
      const mask = form({ mask: image({ isTransparent: true, width, height }) })
      expect(await isInvalid(mask, 'mask', 'invalid_mask')).toMatch(RegExp(`${size}.*256x256`))
    }
  })

  test('a mask that is a JPEG, opaque, repeated, truncated or text is refused', async () => {
    await isInvalid(form({ mask: image({ format: 'jpeg' }) }), 'mask', 'invalid_mask')
    await isInvalid(form({ mask: image() }), 'mask', 'invalid_mask')
    await isInvalid(form({ mask: [mask, mask] }), 'mask')
    for (const bytes of [30, mask.length >> 1]) {
      await isInvalid(form({ mask: mask.subarray(0, bytes) }), 'mask', 'invalid_mask')
    }
    await isInvalid(form({ mask: 'text' }), 'mask')
    await isInvalid(form({ mask: Buffer.concat([mask, Buffer.alloc(4 * 1024 * 1024)]) }), 'mask', 'invalid_mask')
  })

  test('a model without mask support refuses a mask as invalid_mask', async () => {
    await made(await send(form({ model: 'maskless' })))
    await isInvalid(form({ model: 'maskless', mask }), 'mask', 'invalid_mask')
  })
})

describe('model and prompt', () => {
  test.each([...newer, older])('%s edits an image and is charged by the vendor’s count', async (model) => {
    const response = await send(form({ model }))
    expect((await made(response)).data).toHaveLength(1)
    expect(await recordOf(gateway, response)).toMatchObject({ capability: 'edits', basis: 'vendor', model })
  })

  test('a missing model or prompt, an empty prompt, and texts that were sent as files are refused', async () => {
    for (const name of ['model', 'prompt']) await isInvalid(form({ [name]: [] }), name, 'missing_required_parameter')
    for (const name of ['model', 'prompt', 'n']) await isInvalid(form({ [name]: image() }), name, 'invalid_type')
    await isInvalid(form({ prompt: '' }), 'prompt')
  })

  test('an unknown or out-of-scope model is a 404, and a model of another path a 400', async () => {
    const unknown = await refusedForFree(gateway, () => send(form({ model: 'gpt-image-0' })))
    expect([unknown.status, await unknown.json()]).toMatchObject([404, { error: { code: 'model_not_found' } }])
    const { key } = await gateway.account({ models: ['gpt-4o'] })
    const [forbidden, absent] = await refusedForFree(gateway, () =>
      Promise.all([send(form({ model: 'gpt-image-1' }), key), send(form({ model: 'gpt-image-0' }), key)]),
    )
    expect([forbidden.status, absent.status]).toEqual([404, 404])
    expect((await forbidden.text()).replaceAll('gpt-image-1', 'gpt-image-0')).toBe(await absent.text())
    await isInvalid(form({ model: 'qwen-image-edit' }), 'model', 'endpoint_model_mismatch')
    await isInvalid(form({ model: 'gpt-4o' }), 'model', 'endpoint_model_mismatch')
  })
})

describe('n', () => {
  test.each(['1', '2', '10'])('n of %s gives that many images', async (n) => {
    expect((await made(await send(form({ n, quality: 'low' })))).data).toHaveLength(Number(n))
  })
  test.each(['0', '11', '-1', '1.5', '2x', '', ' 1', '1e1'])('n of %p is refused', (n) => isInvalid(form({ n }), 'n'))
})

describe('size', () => {
  test.each(['auto', '1024x1024', '1024x1536', '1536x1024'])('a newer model accepts size %s', async (size) => {
    const answer = await made(await send(form({ size, quality: 'low' })))
    if (size !== 'auto') expect(answer.size).toBe(size)
    expect(readBase64Head(answer.data[0]?.b64_json ?? '')).toMatchObject({ mediaType: 'image/png' })
  })
  test.each(['auto', '256x256', '512x512', '1024x1024'])('the older model accepts size %s', async (size) => {
    expect((await made(await send(form({ model: older, size })))).size).toBe(size === 'auto' ? '1024x1024' : size)
  })
  test.each(newer)('%s refuses 256x256 and 512x512', async (model) => {
    for (const size of ['256x256', '512x512']) await isInvalid(form({ model, size }), 'size', 'unsupported_value')
  })
  test.each(['1536x1024', '1024x1536'])('the older model refuses size %s', (size) =>
    isInvalid(form({ model: older, size }), 'size', 'unsupported_value'),
  )
  test.each(['2048x2048', '3840x2160', '4096x4096', '2K', '4K', '1024*1024', ''])(
    'every model refuses size %p',
    async (size) => {
      for (const model of [...newer, older]) await isInvalid(form({ model, size }), 'size', 'unsupported_value')
    },
  )
})

describe('quality', () => {
  test.each([
    ['auto', 'auto'],
    ['low', 'low'],
    ['medium', 'medium'],
    ['high', 'high'],
    ['standard', 'medium'],
    ['hd', 'high'],
  ])('quality %s is sent as %s', async (quality, sent) => {
    await made(await send(form({ quality })))
    expect((await lastSent()).fields).toMatchObject({ quality: sent })
    await made(await send(form({ model: older, quality })))
  })
  test('an unknown quality is refused', () => isInvalid(form({ quality: 'best' }), 'quality'))
})

describe('response_format', () => {
  test('url is accepted on the newer models and answered with b64_json', async () => {
    for (const format of ['url', 'b64_json']) {
      expect((await made(await send(form({ response_format: format })))).data[0]).toEqual({
        b64_json: expect.any(String),
      })
    }
    expect((await lastSent()).fields).not.toHaveProperty('response_format')
  })
  test('the older model supports both formats and defaults to b64_json', async () => {
    expect((await made(await send(form({ model: older })))).data[0]).toEqual({ b64_json: expect.any(String) })
    const { data } = await made(await send(form({ model: older, response_format: 'url' })))
    expect((await fetch(data[0]?.url ?? '')).headers.get('content-type')).toBe('image/png')
  })
  test('an unknown response_format is refused', () => isInvalid(form({ response_format: 'json' }), 'response_format'))
  test.each(['gpt-image-2', older])('an empty response_format is none on %s', async (model) => {
    expect((await made(await send(form({ model, response_format: '' })))).data[0]).toHaveProperty('b64_json')
    expect((await lastSent()).fields['response_format']).not.toBe('')
  })
})

describe('output_format and background', () => {
  test.each(['png', 'jpeg', 'webp'])('output_format %s gives an image of that type', async (format) => {
    const { data } = await made(await send(form({ output_format: format })))
    expect(readBase64Head(data[0]?.b64_json ?? '')).toMatchObject({ mediaType: `image/${format}` })
  })
  test('the older model refuses output_format, and a newer one refuses gif', async () => {
    await isInvalid(form({ model: older, output_format: 'png' }), 'output_format')
    await isInvalid(form({ output_format: 'gif' }), 'output_format')
  })
  test.each(['transparent', 'opaque', 'auto'])('background %s is sent to the vendor', async (background) => {
    await made(await send(form({ background })))
    expect((await lastSent()).fields).toMatchObject({ background })
  })
  test('a transparent background needs png or webp, and an unknown background is refused', async () => {
    await made(await send(form({ background: 'transparent', output_format: 'png' })))
    await made(await send(form({ background: 'transparent', output_format: 'webp' })))
    await isInvalid(form({ background: 'transparent', output_format: 'jpeg' }), 'background')
    await isInvalid(form({ background: 'blue' }), 'background')
  })
})

describe('user, errors and Idempotency-Key', () => {
  test('user is replaced by an opaque label before the vendor sees it', async () => {
    await made(await send(form({ user: 'ada@example.com' })))
    const { fields, text } = await lastSent()
    expect(fields['user']).toMatch(/^[\w-]{20,}$/)
    expect(text).not.toContain('ada@')
  })

  test('an insufficient balance is a 402 with a message alone', async () => {
    const { key } = await gateway.account({ dollars: '0.001' })
    const response = await refusedForFree(gateway, () => send(form(), key))
    expect([response.status, await response.json()]).toEqual([
      402,
      { error: { message: expect.stringContaining('Insufficient balance') } },
    ])
  })

  test('a vendor’s refusal is passed on with its code', async () => {
    const response = await send(form({ prompt: 'sandbox:fail=moderation_blocked' }))
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: 'moderation_blocked' } })
  })

  test('an edit under the same Idempotency-Key is replayed despite another boundary and order of its fields', async () => {
    const once = { 'idempotency-key': 'edit-1' }
    const first = await send(form({ quality: 'low', n: '1' }), gateway.key, once)
    const second = await send(form({ n: '1', quality: 'low' }), gateway.key, once)
    expect(second.headers.get('idempotent-replayed')).toBe('true')
    expect(await second.text()).toBe(await first.text())
  })
})

describe('an operator’s own model that declares nothing about edits', () => {
  const model = 'own-editor'

  test('the model accepts what the specification lists and is charged per image', async () => {
    const changes = { model, mask: image({ isTransparent: true }), n: '2', size: '512x512' }
    const response = await send(form(changes))
    expect(response.headers.get('x-turnpike-cost')).toBe('0.02')
    expect((await made(response)).data).toHaveLength(2)
    await made(await send(form({ model, image: [], 'image[]': [image(), image()] })))
    await isInvalid(form({ model, size: '2048x2048' }), 'size', 'unsupported_value')
  })

  test('output_format is passed to the vendor, and the answer states the format made', async () => {
    const { output_format, size } = await made(await send(form({ model, output_format: 'webp' })))
    expect({ output_format, size }).toEqual({ output_format: 'webp', size: '1024x1024' })
    expect((await lastSent()).fields).toMatchObject({ output_format: 'webp' })
  })
})
