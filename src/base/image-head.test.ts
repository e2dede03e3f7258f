import { describe, expect, test } from 'bun:test'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { drawImage } from '../sandbox/files/image.ts'
import { isWhole, pngHasAlpha, readBase64Head, readImageHead, type ImageHead } from './image-head.ts'

const image = (format: 'png' | 'jpeg' | 'webp', isTransparent = false) =>
  drawImage({ width: 300, height: 200, format, seed: 1, isTransparent })

describe('the head of an image', () => {
  test.each(['png', 'jpeg', 'webp'] as const)('the head of a %s gives its media type and size', (format) => {
    const head = { mediaType: `image/${format}`, width: 300, height: 200 } as const
    expect(readImageHead(image(format))).toEqual(head)
    expect(readBase64Head(image(format).toString('base64'))).toEqual(head)
  })

  test.each(['png', 'jpeg', 'webp'] as const)('a truncated %s is broken', (format) => {
    expect(readImageHead(image(format).subarray(0, 17))).toBe('broken')
  })

  // A segment holds 64 KB at most; the size is looked for in the first megabyte.
  test.each([
    [1, 3_000, true],
    [1, 60_000, true],
    [10, 65_000, true],
    [17, 65_000, false],
  ])('the size of a JPEG is found behind %d segments of %d bytes: %p', (segments, length, isFound) => {
    const file = image('jpeg')
    const segment = Buffer.alloc(2 + length)
    segment.set([0xff, 0xe1, length >> 8, length & 0xff])
    const before = Array.from({ length: segments }, () => segment)
    const large = Buffer.concat([file.subarray(0, 2), ...before, file.subarray(2)])
    const expected = isFound ? ({ mediaType: 'image/jpeg', width: 300, height: 200 } as const) : 'broken'
    expect(readImageHead(large)).toEqual(expected)
    expect(readBase64Head(large.toString('base64'))).toEqual(expected)
  })

  test('an image with a width of zero is broken', () => {
    const flat = image('png')
    flat.writeUInt32BE(0, 16)
    expect(readImageHead(flat)).toBe('broken')
  })

  test.each(['GIF89a\x01\x00\x01\x00', '<svg/>', '%PDF-1.7', '', 'RIFF\0\0\0\0WAVE', 'RIFX\0\0\0\0WEBP'])(
    '%p is not an image',
    (text) => {
      expect(readImageHead(Buffer.from(text, 'latin1'))).toBeUndefined()
    },
  )

  test('random bytes after a valid beginning are broken or keep the media type', () => {
    fc.assert(
      fc.property(fc.constantFrom('png', 'jpeg', 'webp'), fc.uint8Array({ maxLength: 200 }), (format, rubbish) => {
        const head = readImageHead(Buffer.concat([image(format).subarray(0, 12), rubbish]))
        if (head !== 'broken') expect(head).toMatchObject({ mediaType: `image/${format}` })
      }),
    )
  })
})

test('the transparency of a PNG is read from its head', () => {
  expect(pngHasAlpha(image('png', true))).toBe(true)
  expect(pngHasAlpha(image('png', false))).toBe(false)
  expect(pngHasAlpha(image('png', true).subarray(0, 20))).toBe(false)
})

test('a PNG with a palette is transparent if a tRNS chunk precedes its pixels', () => {
  const file = image('png')
  const chunk = Buffer.concat([Buffer.from([0, 0, 0, 1]), Buffer.from('tRNS'), Buffer.alloc(5)])
  const withOneAt = (at: number) => Buffer.concat([file.subarray(0, at), chunk, file.subarray(at)])
  expect(pngHasAlpha(withOneAt(33))).toBe(true)
  expect(pngHasAlpha(withOneAt(file.length - 12))).toBe(false)
})

describe('the check that an image is whole', () => {
  const formats = ['png', 'jpeg', 'webp'] as const
  const whole = (format: (typeof formats)[number], file: Uint8Array) =>
    isWhole(file, { mediaType: `image/${format}`, width: 300, height: 200 } satisfies ImageHead)

  test.each(formats)('a %s is whole with or without bytes after its end, and not with a byte less', (format) => {
    const file = image(format)
    expect(whole(format, file)).toBe(true)
    expect(whole(format, Buffer.concat([file, Buffer.from('more')]))).toBe(true)
    for (let bytes = 12; bytes < file.length; bytes += 1 + (file.length >> 9)) {
      expect({ bytes, isWhole: whole(format, file.subarray(0, bytes)) }).toEqual({ bytes, isWhole: false })
    }
    expect(whole(format, file.subarray(0, -1))).toBe(false)
  })

  test('a PNG with a damaged head is not whole', () => {
    for (let at = 8; at < 33; at++) {
      const file = image('png')
      file[at] = (file[at] ?? 0) ^ 0x40
      expect({ at, isWhole: whole('png', file) }).toEqual({ at, isWhole: false })
    }
  })

  // Behind the width and the height are the bit depth, the type of colour, compression, filter and interlacing.
  test.each([
    [[8, 2, 0, 0, 0], true],
    [[16, 6, 0, 0, 1], true],
    [[1, 3, 0, 0, 0], true],
    [[3, 2, 0, 0, 0], false],
    [[1, 2, 0, 0, 0], false],
    [[8, 1, 0, 0, 0], false],
    [[8, 2, 1, 0, 0], false],
    [[8, 2, 0, 1, 0], false],
    [[8, 2, 0, 0, 2], false],
  ])('a PNG whose head says %j is whole: %p', (said, isLegal) => {
    const file = image('png')
    file.set(said, 24)
    file.writeUInt32BE(crc32(file.subarray(12, 29)), 29)
    expect(whole('png', file)).toBe(isLegal)
  })

  test('the end of a thumbnail is not the end of its JPEG', () => {
    const file = image('jpeg')
    const thumbnail = Buffer.from([0xff, 0xe1, 0, 6, 0xff, 0xd8, 0xff, 0xd9])
    const withOne = Buffer.concat([file.subarray(0, 2), Buffer.from([0xff, 0xff]), thumbnail, file.subarray(2)])
    // Two fill bytes precede the marker.
    expect(whole('jpeg', withOne)).toBe(true)
    expect(whole('jpeg', withOne.subarray(0, -2))).toBe(false)
  })

  test('a PNG with more empty chunks than any encoder writes is not whole', () => {
    const file = image('png')
    const behind = (chunks: number) =>
      Buffer.concat([file.subarray(0, 33), Buffer.alloc(12 * chunks), file.subarray(33)])
    expect(whole('png', behind(99_000))).toBe(true)
    expect(whole('png', behind(100_000))).toBe(false)
  })
})
