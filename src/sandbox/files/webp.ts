import type { GradientImage } from './image.ts'

/**
 * A lossless WebP of one colour. Each of its five Huffman codes has a single symbol, which takes no bits, so that an
 * image of any size is just its header.
 */
export function encodeWebp({ width, height, from, isTransparent }: GradientImage): Uint8Array<ArrayBuffer> {
  const [red = 0, green = 0, blue = 0] = from
  const fields: [value: number, bits: number][] = [
    [width - 1, 14],
    [height - 1, 14],
    [isTransparent ? 1 : 0, 1],
    [0, 3], // version
    [0, 3], // no transform, no colour cache, one group of codes
    ...[green, red, blue, isTransparent ? 0 : 255].flatMap((symbol): [number, number][] => [
      [0b101, 3], // simple, one symbol, of eight bits
      [symbol, 8],
    ]),
    [0b0001, 4], // the distance code: simple, one symbol of one bit, which is 0
  ]
  const body = lowestFirst(fields)
  const file = Buffer.alloc(21 + body.length + ((body.length + 1) % 2))
  file.write('RIFF', 0, 'latin1')
  file.writeUInt32LE(file.length - 8, 4)
  file.write('WEBPVP8L', 8, 'latin1')
  file.writeUInt32LE(body.length + 1, 16)
  file[20] = 0x2f
  file.set(body, 21)
  return new Uint8Array(file)
}

/** Unlike all other formats here, WebP fills its bytes from the lowest bit. */
function lowestFirst(fields: readonly (readonly [value: number, bits: number])[]): number[] {
  const bytes: number[] = []
  let at = 0
  for (const [value, bits] of fields) {
    for (let bit = 0; bit < bits; bit += 1, at += 1) {
      if (at % 8 === 0) bytes.push(0)
      bytes[at >> 3] = (bytes[at >> 3] ?? 0) | (((value >> bit) & 1) << (at & 7))
    }
  }
  return bytes
}
