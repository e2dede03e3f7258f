import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { crc32 } from 'node:zlib'
import { drawImage } from '../../src/sandbox/files/image.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { refusedForFree } from '../support/refused.ts'
import { errorOf } from '../support/streams.ts'

// Forms that no honest client sends (B-02, B-11, B-12, B-13): refused in the usual shape and free of charge. How long
// that takes: `stalls.test.ts`.

let gateway: TestGateway

beforeAll(async () => {
  gateway = await startTestGateway({ yaml: 'limits: { editsBodyBytesMax: 2097152 }' })
})
afterAll(async () => {
  await gateway.assertBooks()
  await gateway.close()
})

const boundary = 'the-boundary'
const formType = `multipart/form-data; boundary=${boundary}`
const field = (name: string, value: string, head = '') =>
  `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${head}\r\n\r\n${value}\r\n`
const end = `--${boundary}--\r\n`
const picture = drawImage({ width: 64, height: 64, format: 'png', seed: 1 }).toString('latin1')
const file = (name = 'image') => field(name, picture, '; filename="a.png"\r\nContent-Type: image/png')
const good = field('model', 'gpt-image-2') + field('prompt', 'a hat') + file()

function send(body: string | ReadableStream<Uint8Array>, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${gateway.url}/v1/images/edits`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': formType, ...headers },
    body: typeof body === 'string' ? Buffer.from(body, 'latin1') : body,
  })
}

async function refused(body: string | ReadableStream<Uint8Array>, headers?: Record<string, string>) {
  return errorOf(await refusedForFree(gateway, () => send(body, headers)))
}

/** The text a few bytes at a time, as over a slow network. */
function inPieces(text: string, bytes: number): ReadableStream<Uint8Array> {
  const all = Buffer.from(text, 'latin1')
  let at = 0
  return new ReadableStream({
    pull(controller) {
      if (at >= all.length) return controller.close()
      controller.enqueue(all.subarray(at, (at += bytes)))
    },
  })
}

const withMark = (mark: string) =>
  send((good + end).replaceAll(boundary, mark), { 'content-type': `multipart/form-data; boundary=${mark}` })

test('a field by which a relay would have another model answer is refused', async () => {
  expect(await refused(good + field('fallbacks', 'gpt-5-pro') + end)).toMatchObject({ status: 400, param: 'fallbacks' })
})

/** One character longer than a boundary may be. */
const longMark = Array.from({ length: 71 }, (_, at) => ((at * at) % 36).toString(36)).join('')

describe('a valid form', () => {
  test('a boundary of 70 characters is accepted', async () => {
    expect((await withMark(longMark.slice(1))).status).toBe(200)
  })

  test.each([1, 3, 7, 64, 1000])('a form in pieces of %d bytes is accepted', async (bytes) => {
    expect((await send(inPieces(good + end, bytes))).status).toBe(200)
  })

  test('a quoted boundary and text after the end are accepted', async () => {
    const quoted = { 'content-type': `multipart/form-data; boundary="${boundary}"; charset=utf-8` }
    expect((await send(`${good}${end}epilogue`, quoted)).status).toBe(200)
    expect((await send(inPieces(`${good}${end}epilogue`, 5))).status).toBe(200)
  })

  test('line ends before the first boundary are accepted', async () => {
    for (const ends of ['\r\n', '\r\n\r\n']) {
      expect((await send(`${ends}${good}${end}`)).status).toBe(200)
      expect((await send(inPieces(`${ends}${good}${end}`, 1))).status).toBe(200)
    }
  })

  test('images with a type and no file name are accepted', async () => {
    const text = field('model', 'gpt-image-2') + field('prompt', 'a hat')
    for (const type of ['image/png', 'IMAGE/PNG', 'application/octet-stream']) {
      const image = field('image', picture, `\r\nContent-Type: ${type}`)
      expect([type, (await send(text + image + end)).status]).toEqual([type, 200])
    }
  })

  test('the boundaries that common clients generate are accepted', async () => {
    for (const mark of [
      '----WebKitFormBoundary7MA4YWxkTrZu0gW',
      '------------------------d74496d66958873e',
      '-------------------------000000000000000000000001',
      '0123456789abcdef0123456789abcdef',
      `made-up-${'0'.repeat(10)}`,
      'b',
    ]) {
      expect({ mark, status: (await withMark(mark)).status }).toEqual({ mark, status: 200 })
    }
  })

  // Searching for it would take as many steps a byte as it repeats itself: `stalls.test.ts`.
  test('a boundary that only repeats itself is refused', async () => {
    for (const mark of ['-'.repeat(26), 'a'.repeat(70), `made-up-${'0'.repeat(11)}`, 'ab'.repeat(20)]) {
      const error = await errorOf(await withMark(mark))
      expect(error).toMatchObject({ status: 400, code: 'invalid_multipart' })
    }
  })
})

describe('an invalid form', () => {
  test.each<[name: string, body: string, contentType: string, code?: string]>([
    ['no boundary', good + end, 'multipart/form-data'],
    [
      'a boundary of 71 characters',
      (good + end).replaceAll(boundary, longMark),
      `multipart/form-data; boundary=${longMark}`,
    ],
    ['an empty boundary', good + end, 'multipart/form-data; boundary='],
    ['another boundary', good + end, 'multipart/form-data; boundary=other'],
    ['no last boundary', good, formType],
    ['a last field that is cut off', good + field('n', '2').slice(0, -1), formType],
    ['an empty body', '', formType],
    [
      'a megabyte of dashes after the boundary',
      `--${boundary}${'-'.repeat(1_000_000)}`,
      formType,
      'missing_required_parameter',
    ],
    ['ten thousand parts', Array.from({ length: 10_000 }, (_, at) => field(`f${at}`, '')).join('') + end, formType],
    ['forty-nine parts', good + Array.from({ length: 46 }, (_, at) => field(`f${at}`, '')).join('') + end, formType],
    ['an endless part header', `--${boundary}\r\nX: ${'x'.repeat(100_000)}`, formType],
    ['a part header of 9 KiB', field('model', 'x', `\r\nX: ${'x'.repeat(9 * 1024)}`) + good + end, formType],
    ['another form inside it', `${good}${field('more', '', '\r\nContent-Type: multipart/mixed')}${end}`, formType],
    ['a part without a name', `${good}--${boundary}\r\nContent-Type: text/plain\r\n\r\nx\r\n${end}`, formType],
    ['a field named __proto__', good + field('__proto__', '{}') + end, formType],
    ['a field that is not UTF-8', good + field('user', '\xff\xfe') + end, formType, 'invalid_utf8'],
    ['a field of 65 KiB', good + field('user', 'x'.repeat(65 * 1024)) + end, formType, 'invalid_value'],
    ['eighteen files', good + file('image').repeat(17) + end, formType],
  ])('a form with %s is a 400', async (_name, body, contentType, code = 'invalid_multipart') => {
    const error = await refused(body, { 'content-type': contentType })
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error', code })
  })

  test('a duplicate field is refused', async () => {
    const twice = await refused(good + field('model', 'gpt-image-1.5') + end)
    expect(twice).toMatchObject({ status: 400, param: 'model' })
    expect(await refused(good + field('n', '1') + field('n', '2') + end)).toMatchObject({ status: 400, param: 'n' })
  })

  test('a JSON or compressed body is a 415', async () => {
    const message =
      'The Content-Type must be multipart/form-data, with each image as a file and every other field as text.'
    expect(await refused('{}', { 'content-type': 'application/json' })).toMatchObject({ status: 415, message })
    expect(await refused(good + end, { 'content-encoding': 'gzip' })).toMatchObject({ status: 415 })
  })
})

// B-15, B-16; B-17: `test/spec/edits.test.ts`.
describe('an invalid image', () => {
  const formats = ['png', 'jpeg', 'webp'] as const
  const draw = (format: (typeof formats)[number], isTransparent = false) =>
    drawImage({ width: 64, height: 64, format, seed: 1, isTransparent })
  const asFile = (bytes: Buffer, name = 'image') =>
    field(name, bytes.toString('latin1'), '; filename="a.png"\r\nContent-Type: image/png')
  const fields = field('model', 'gpt-image-2') + field('prompt', 'a hat')
  const refusedFile = (bytes: Buffer) => refused(fields + asFile(bytes) + end)

  test.each(formats)('a %s cut off in its head, in its middle or before its end is refused', async (format) => {
    const file = draw(format)
    for (const bytes of [14, 20, file.length >> 1, file.length - 1]) {
      const { status, param, code } = await refusedFile(file.subarray(0, bytes))
      expect({ bytes, status, param, code }).toEqual({ bytes, status: 400, param: 'image', code: 'invalid_image' })
    }
  })

  test.each([
    ['gif', 'GIF89a\x40\x00\x40\x00\x00\x00\x00;'],
    ['bmp', 'BM\x3a\x00\x00\x00'],
    ['tiff', 'II*\x00\x08\x00\x00\x00'],
    ['avif', '\x00\x00\x00\x1cftypavif'],
    ['zip', 'PK\x03\x04'],
    ['svg', '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'],
    ['wav, which begins as a WebP does', 'RIFF\x24\x00\x00\x00WAVEfmt '],
  ])('a %s sent as a PNG is refused', async (_name, text) => {
    expect(await refusedFile(Buffer.from(text, 'latin1'))).toMatchObject({
      status: 400,
      param: 'image',
      code: 'invalid_image_format',
    })
  })

  test('absurd dimensions are refused in every format', async () => {
    const png = draw('png')
    png.writeUInt32BE(0xffff_ffff, 16)
    png.writeUInt32BE(0xffff_ffff, 20)
    const jpeg = draw('jpeg')
    const frame = jpeg.indexOf(Buffer.from([0xff, 0xc0]))
    jpeg.writeUInt16BE(0xffff, frame + 5)
    jpeg.writeUInt16BE(0xffff, frame + 7)
    const webp = Buffer.alloc(30)
    webp.write('RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0', 'latin1')
    webp.fill(0xff, 24)
    const flat = draw('png')
    flat.writeUInt32BE(0, 20)
    for (const file of [png, jpeg, webp, flat]) {
      expect(await refusedFile(file)).toMatchObject({ status: 400, param: 'image', code: 'invalid_image' })
    }
  })

  test('an image of one long line of pixels, thousands of tiles to a vendor, is refused', async () => {
    const line = draw('png')
    line.writeUInt32BE(16_777_216, 16)
    line.writeUInt32BE(1, 20)
    line.writeUInt32BE(crc32(line.subarray(12, 29)), 29)
    const { status, code } = await refusedFile(line)
    expect([status, code]).toEqual([400, 'invalid_image'])
  })

  test('a WebP that declares fewer bytes than it needs is refused', async () => {
    const file = draw('webp').subarray(0, -4)
    file.writeUInt32LE(file.length - 8, 4)
    expect(await refusedFile(file)).toMatchObject({ status: 400, code: 'invalid_image' })
  })

  test('an image whose size lies behind too long a head is refused', async () => {
    const file = draw('jpeg')
    const segment = Buffer.alloc(65_537)
    segment.set([0xff, 0xe2, 0xff, 0xff])
    const filled = Buffer.concat([file.subarray(0, 2), ...Array.from({ length: 20 }, () => segment), file.subarray(2)])
    const { status, code } = await refusedFile(filled)
    expect([status, code]).toEqual([400, 'invalid_image'])
  })

  test('a mask that is cut off is refused', async () => {
    const mask = draw('png', true)
    for (const bytes of [20, mask.length >> 1, mask.length - 1]) {
      const body = fields + asFile(draw('png')) + asFile(mask.subarray(0, bytes), 'mask') + end
      expect(await refused(body)).toMatchObject({ status: 400, param: 'mask', code: 'invalid_mask' })
    }
  })
})

describe('a form that is too large', () => {
  test('a form whose length is beyond the limit is refused', async () => {
    const large = field('user', 'x'.repeat(3 * 1024 * 1024))
    expect(await refused(good + large + end)).toMatchObject({ status: 413, code: 'request_too_large' })
  })

  test('an endless form without a length is refused soon after the limit', async () => {
    const piece = new Uint8Array(64 * 1024)
    let sent = 0
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += piece.length
        controller.enqueue(sent === piece.length ? Buffer.from(good + file('image').slice(0, 200), 'latin1') : piece)
        if (sent > 64 * 1024 * 1024) controller.close()
      },
    })
    expect(await refused(endless)).toMatchObject({ status: 413 })
    expect(sent).toBeLessThan(32 * 1024 * 1024)
  })
})
