import { copyInto, type Bytes } from '../spliced.ts'

const cr = 13
const lf = 10
const hexDigits = Buffer.from('0123456789abcdef')

/** The most bytes that a chunk's frame takes: eight digits and two line ends. */
export const chunkRoom = 12

/**
 * Writes bytes as one chunk at the beginning of `into`, which has room for them and the frame; gives its length. Never
 * of no bytes: that would be the last chunk, which ends the body.
 */
export function frameChunk(bytes: Bytes, into: Uint8Array): number {
  const { length } = bytes
  let digits = 1
  for (let left = length >>> 4; left > 0; left >>>= 4) digits++
  // Digit by digit, because a native call takes longer than these few bytes.
  for (let at = digits - 1, left = length; at >= 0; at--, left >>>= 4) into[at] = hexDigits[left & 15] ?? 0
  into[digits] = cr
  into[digits + 1] = lf
  copyInto(bytes, into, digits + 2)
  into[digits + length + 2] = cr
  into[digits + length + 3] = lf
  return digits + length + 4
}

/** Bytes as one chunk of its own. */
export function chunkOf(bytes: Bytes): Uint8Array {
  const chunk = Buffer.allocUnsafe(bytes.length + chunkRoom)
  return chunk.subarray(0, frameChunk(bytes, chunk))
}
