import { createBitWriter } from '../files/bits.ts'

/**
 * Minimal valid H.264: one picture of a single colour, then pictures in which nothing moves. A file of any size and
 * length costs one byte per macroblock and some ten per picture, and needs no encoder.
 */
export type Image = { readonly width: number; readonly height: number; readonly colour: Colour }

/** How far brightness and the two colour axes lie from grey: whole numbers from 2 to 8, or their negatives. */
export type Colour = readonly [luma: number, blue: number, red: number]

const profile = 66 // Baseline: no reordering, so pictures are stored in the order in which they are shown.
const compatibility = 0xc0
const level = 51 // The lowest level that allows 4096x2304.
const frameNumberBits = 4
const quantizerStep = 25 // From the neutral 26 to 51, the coarsest, so that small numbers make strong colours.

export const profileBytes = [profile, compatibility, level] as const

const macroblock = 16
const blocksOf = (pixels: number): number => Math.ceil(pixels / macroblock)

export function sequenceParameters({ width, height }: Image): Uint8Array {
  const bits = createBits()
  for (const byte of profileBytes) bits.fixed(byte, 8)
  bits.unsigned(0)
  bits.unsigned(frameNumberBits - 4)
  bits.unsigned(2) // Shown in the order of decoding.
  bits.unsigned(1) // One picture is kept for reference.
  bits.fixed(0, 1)
  bits.unsigned(blocksOf(width) - 1)
  bits.unsigned(blocksOf(height) - 1)
  bits.fixed(0b11, 2) // Whole frames; 8x8 direct inference.
  bits.fixed(1, 1) // Cuts off what the last macroblocks hold beyond the edge, counted in pairs of pixels.
  bits.unsigned(0)
  bits.unsigned((blocksOf(width) * macroblock - width) / 2)
  bits.unsigned(0)
  bits.unsigned((blocksOf(height) * macroblock - height) / 2)
  bits.fixed(0, 1)
  return bits.finish(0x67)
}

export function imageParameters(): Uint8Array {
  const bits = createBits()
  bits.unsigned(0)
  bits.unsigned(0)
  bits.fixed(0, 2) // Variable-length coding, no field order.
  for (let index = 0; index < 3; index += 1) bits.unsigned(0) // One slice group, one reference either way.
  bits.fixed(0, 3)
  for (let index = 0; index < 3; index += 1) bits.signed(0)
  bits.fixed(0b100, 3) // Slices say whether they are deblocked.
  return bits.finish(0x68)
}

/** The first macroblock sets the colour. All others are predicted from their neighbours without a residual. */
export function firstImage({ width, height, colour }: Image): Uint8Array {
  const bits = createBits()
  startSlice(bits, 7, 0)
  bits.unsigned(0) // The id of this random access point.
  bits.fixed(0, 2)
  bits.signed(quantizerStep)
  bits.unsigned(1) // No deblocking.
  bits.unsigned(7) // 16x16, predicted flat, colour coefficients follow.
  bits.fixed(0b11, 2)
  const [luma, blue, red] = colour
  writeFlat(bits, 0b000101, luma)
  writeFlat(bits, 0b000111, blue)
  writeFlat(bits, 0b000111, red)
  // 16x16, predicted flat, no residual: happens to be exactly one byte.
  for (let left = blocksOf(width) * blocksOf(height) - 1; left > 0; left -= 1) bits.fixed(0b0010_0111, 8)
  return bits.finish(0x65)
}

/** Every macroblock is the same as in the picture before. */
export function sameImage({ width, height }: Image, index: number): Uint8Array {
  const bits = createBits()
  startSlice(bits, 5, index)
  bits.fixed(0, 3)
  bits.signed(0)
  bits.unsigned(1)
  bits.unsigned(blocksOf(width) * blocksOf(height))
  return bits.finish(0x41)
}

function startSlice(bits: Bits, type: number, index: number): void {
  bits.unsigned(0)
  bits.unsigned(type)
  bits.unsigned(0)
  bits.fixed(index % 2 ** frameNumberBits, frameNumberBits)
}

/** One coefficient: the token that announces it, its level as a run of zeros, and that no zeros come before it. */
function writeFlat(bits: Bits, token: number, level: number): void {
  bits.fixed(token, 6)
  bits.fixed(0, 2 * (Math.abs(level) - 2) + (level < 0 ? 1 : 0))
  bits.fixed(0b11, 2)
}

type Bits = ReturnType<typeof createBits>

/** H.264's encodings of a number: one of fixed width and two of variable length. */
function createBits() {
  const writer = createBitWriter()
  function unsigned(value: number): void {
    const width = 32 - Math.clz32(value + 1)
    writer.put(value + 1, 2 * width - 1)
  }
  return {
    fixed: (value: number, width: number): void => writer.put(value, width),
    unsigned,
    signed: (value: number): void => unsigned(value > 0 ? 2 * value - 1 : -2 * value),
    /** A complete unit: its header, then the bits, closed by a one and zeros. */
    finish(header: number): Uint8Array {
      writer.put(1, 1)
      return Uint8Array.from([header, ...guarded(writer.bytes())])
    },
  }
}

/** Two zero bytes followed by a byte of 0 to 3 would look like the start of a unit, so a 3 is inserted. */
function* guarded(bytes: Uint8Array): Generator<number, void> {
  let zeros = 0
  for (const byte of bytes) {
    if (zeros === 2 && byte <= 3) {
      yield 3
      zeros = 0
    }
    yield byte
    zeros = byte === 0 ? zeros + 1 : 0
  }
}
