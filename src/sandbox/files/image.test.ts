import { describe, expect, test } from 'bun:test'
import { inflateSync } from 'node:zlib'
import { readImageHeader } from './image-header.ts'
import { drawImage, type ImageFormat, parseSize } from './image.ts'

const formats: ImageFormat[] = ['png', 'jpeg', 'webp']

// Tested by hand with Chromium 156, which shows every format here from 1x1 to 4096x4096.
describe('a drawn image', () => {
  test.each(formats)('an image in %s has the requested size in its header', (format) => {
    for (const [width, height] of [
      [1, 1],
      [17, 33],
      [1024, 768],
      [4096, 4096],
    ] as const) {
      const header = readImageHeader(drawImage({ width, height, format, seed: 7 }))
      expect(header).toEqual({ width, height, format, hasAlpha: false })
    }
  })

  test('the same seed draws the same image and another seed a different one', () => {
    const [first, again, other] = [1, 1, 2].map((seed) => drawImage({ width: 64, height: 64, format: 'png', seed }))
    expect(first).toEqual(again ?? Buffer.alloc(0))
    expect(first).not.toEqual(other ?? Buffer.alloc(0))
  })

  test('a transparent image has an alpha channel in png and webp', () => {
    const alphas = formats.map((format) =>
      readImageHeader(drawImage({ width: 8, height: 8, format, seed: 1, isTransparent: true })),
    )
    expect(alphas.map((header) => header?.hasAlpha)).toEqual([true, false, true])
  })

  test('a png file contains every row', () => {
    const file = drawImage({ width: 30, height: 20, format: 'png', seed: 3 })
    const at = file.indexOf('IDAT')
    expect(inflateSync(file.subarray(at + 4, at + 4 + file.readUInt32BE(at - 4))).length).toBe(31 * 20)
  })

  test('the scan of a jpeg file contains no markers', () => {
    const file = drawImage({ width: 500, height: 500, format: 'jpeg', seed: 3 })
    const scan = file.subarray(file.indexOf(Buffer.from([0xff, 0xda])) + 2, -2)
    for (let at = scan.indexOf(0xff); at >= 0; at = scan.indexOf(0xff, at + 1)) expect(scan[at + 1]).toBe(0)
  })
})

describe('image headers', () => {
  test('bytes that are no complete image have no header', () => {
    const whole = drawImage({ width: 8, height: 8, format: 'jpeg', seed: 1 })
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.from('GIF89a......'),
      whole.subarray(0, 30),
      Buffer.from('RIFF....WEBPVP9 '),
    ]) {
      expect(readImageHeader(bytes)).toBeUndefined()
    }
  })
})

describe('image sizes', () => {
  test.each([
    ['1024x768', 'x', { width: 1024, height: 768 }],
    ['1024*768', '*', { width: 1024, height: 768 }],
    ['1024*768', 'x', undefined],
    ['1x2x3', 'x', undefined],
    ['-1x5', 'x', undefined],
    ['auto', 'x', undefined],
  ] as const)('the size %s is parsed with the separator %s', (text, sign, size) => {
    expect(parseSize(text, sign)).toEqual(size as never)
  })
})
