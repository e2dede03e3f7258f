import type { GradientImage } from './image.ts'

/**
 * A baseline JPEG of uniform blocks: only the mean of each is written, so a block takes a few bits. Both Huffman tables
 * are minimal: "no change" and "end of block" take one bit each.
 */
export function encodeJpeg({ width, height, from, to }: GradientImage): Uint8Array<ArrayBuffer> {
  const frame = [8, height >> 8, height & 255, width >> 8, width & 255, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]
  return new Uint8Array(
    Buffer.concat([
      Buffer.from([0xff, 0xd8]),
      segment(0xe0, [...Buffer.from('JFIF\0'), 1, 1, 0, 0, 1, 0, 1, 0, 0]),
      // All coefficients are divided by 8, which makes a block's first coefficient its mean.
      segment(0xdb, [0, ...Array.from({ length: 64 }, () => 8)]),
      segment(0xc0, frame),
      // One code of one bit for "no change", eleven of five bits for changes of up to eleven bits.
      segment(0xc4, [0x00, 1, 0, 0, 0, 11, ...zeros(11), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
      segment(0xc4, [0x10, 1, ...zeros(15), 0]),
      segment(0xda, [3, 1, 0, 2, 0, 3, 0, 0, 63, 0]),
      scan(Math.ceil(width / 8), Math.ceil(height / 8), toYcc(from), toYcc(to)),
      Buffer.from([0xff, 0xd9]),
    ]),
  )
}

const zeros = (count: number): number[] => Array.from({ length: count }, () => 0)

function segment(marker: number, body: readonly number[]): Buffer {
  const length = body.length + 2
  return Buffer.from([0xff, marker, length >> 8, length & 255, ...body])
}

function toYcc([red = 0, green = 0, blue = 0]: readonly number[]): readonly [number, number, number] {
  return [
    Math.round(0.299 * red + 0.587 * green + 0.114 * blue) - 128,
    Math.round(-0.1687 * red - 0.3313 * green + 0.5 * blue),
    Math.round(0.5 * red - 0.4187 * green - 0.0813 * blue),
  ]
}

/** The colour changes from one row of blocks to the next. Within a row every block says "no change". */
function scan(columns: number, rows: number, from: readonly number[], to: readonly number[]): Buffer {
  // One byte for each block, which takes six bits, and 16 for the changes of a row. Stuffing at most doubles that.
  const bytes = Buffer.alloc(rows * (columns + 16) * 2)
  let size = 0
  let pending = 0
  let count = 0
  function put(value: number, bits: number): void {
    pending = (pending << bits) | value
    count += bits
    while (count >= 8) {
      count -= 8
      const byte = (pending >> count) & 255
      bytes[size] = byte
      // A byte of ones is followed by a zero, so that it does not look like a marker.
      size += byte === 255 ? 2 : 1
    }
    pending &= (1 << count) - 1
  }
  let before: readonly number[] = [0, 0, 0]
  for (let row = 0; row < rows; row += 1) {
    const now = from.map((start, at) => Math.round(start + (((to[at] ?? 0) - start) * row) / rows))
    for (const [at, value] of now.entries()) {
      putChange(value - (before[at] ?? 0), put)
      put(endOfBlock, 1)
    }
    before = now
    for (let column = 1; column < columns; column += 1) put(0, 6)
  }
  if (count > 0) put((1 << (8 - count)) - 1, 8 - count)
  return bytes.subarray(0, size)
}

const endOfBlock = 0

function putChange(change: number, put: (value: number, bits: number) => void): void {
  if (change === 0) return put(0, 1)
  const bits = 32 - Math.clz32(Math.abs(change))
  put(0b10000 + bits - 1, 5)
  put(change > 0 ? change : change + (1 << bits) - 1, bits)
}
