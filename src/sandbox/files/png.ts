import { crc32, deflateSync } from 'node:zlib'
import type { GradientImage } from './image.ts'

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/** 256 bands from one colour to the other, at one byte per pixel, which compress to a few kilobytes at any size. */
export function encodePng({ width, height, from, to, isTransparent }: GradientImage): Uint8Array<ArrayBuffer> {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, indexedColour], 8)
  const shades = Array.from({ length: 256 }, (_, shade) => from.map((start, at) => blend(start, to[at] ?? 0, shade)))
  const rows = Buffer.alloc((width + 1) * height)
  for (let y = 0; y < height; y += 1) {
    // The first byte of a row is its filter, here none.
    const start = y * (width + 1)
    rows.fill(Math.floor((y * 256) / height), start + 1, start + 1 + width)
  }
  return new Uint8Array(
    Buffer.concat([
      signature,
      chunk('IHDR', header),
      chunk('PLTE', Buffer.from(shades.flat())),
      // The first half of the shades is transparent.
      ...(isTransparent ? [chunk('tRNS', Buffer.alloc(128))] : []),
      chunk('IDAT', deflateSync(rows, { level: 1 })),
      chunk('IEND', Buffer.alloc(0)),
    ]),
  )
}

const indexedColour = 3

function blend(from: number, to: number, shade: number): number {
  return Math.round(from + ((to - from) * shade) / 255)
}

function chunk(type: string, body: Uint8Array): Buffer {
  const framed = Buffer.alloc(body.length + 12)
  framed.writeUInt32BE(body.length, 0)
  framed.write(type, 4, 'latin1')
  framed.set(body, 8)
  framed.writeUInt32BE(crc32(framed.subarray(4, body.length + 8)), body.length + 8)
  return framed
}
