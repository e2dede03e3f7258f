import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { drawPicture } from '../sandbox/files/picture.ts'
import { pngHasAlpha, readBase64Head, readImageHead } from './image-head.ts'

const picture = (format: 'png' | 'jpeg' | 'webp', isTransparent = false) =>
  drawPicture({ width: 300, height: 200, format, seed: 1, isTransparent })

describe('a head says what a picture is', () => {
  test.each(['png', 'jpeg', 'webp'] as const)('%s', (format) => {
    const head = { mediaType: `image/${format}`, width: 300, height: 200 } as const
    expect(readImageHead(picture(format))).toEqual(head)
    expect(readBase64Head(picture(format).toString('base64'))).toEqual(head)
  })

  test.each(['png', 'jpeg', 'webp'] as const)('a %s that breaks off is broken', (format) => {
    expect(readImageHead(picture(format).subarray(0, 17))).toBe('broken')
  })

  test('a picture without a side is broken', () => {
    const flat = picture('png')
    flat.writeUInt32BE(0, 16)
    expect(readImageHead(flat)).toBe('broken')
  })

  test.each(['GIF89a\x01\x00\x01\x00', '<svg/>', '%PDF-1.7', '', 'RIFF\0\0\0\0WAVE'])('%p is none', (text) => {
    expect(readImageHead(Buffer.from(text, 'latin1'))).toBeUndefined()
  })

  test('rubbish behind a good beginning does no harm', () => {
    fc.assert(
      fc.property(fc.constantFrom('png', 'jpeg', 'webp'), fc.uint8Array({ maxLength: 200 }), (format, rubbish) => {
        const head = readImageHead(Buffer.concat([picture(format).subarray(0, 12), rubbish]))
        if (head !== 'broken') expect(head).toMatchObject({ mediaType: `image/${format}` })
      }),
    )
  })
})

test('transparency of a PNG stands in its head', () => {
  expect(pngHasAlpha(picture('png', true))).toBe(true)
  expect(pngHasAlpha(picture('png', false))).toBe(false)
  expect(pngHasAlpha(picture('png', true).subarray(0, 20))).toBe(false)
})
