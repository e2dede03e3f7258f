/** Pieces as one array: the piece itself where there is only one, which is the usual case. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const [first] = pieces
  return pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces)
}

// Up to this length the runtime stores an array's bytes inline with its object. Taking a view first moves them into a
// separate buffer, which costs three times as much as a copy, and the view then keeps that whole buffer alive.
const copiedBytesMax = 1_000

/** A part of bytes that no code changes any more: the array itself if whole, a copy if small, a view if large. */
export function partOf(bytes: Uint8Array, start: number, end = bytes.length): Uint8Array {
  if (start === 0 && end === bytes.length) return bytes
  if (end - start > copiedBytesMax) return bytes.subarray(start, end)
  return Uint8Array.prototype.slice.call(bytes, start, end) // Buffer's own slice() would give a view
}

/** For functions of the web, whose types refuse memory that threads share: none of our bytes are in such memory. */
export function unshared(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes as Uint8Array<ArrayBuffer>
}

/**
 * Frees the memory of bytes that nobody reads again, which would otherwise wait for the collector; they are then empty.
 * Does nothing to a part of a larger buffer, because others may read the rest.
 */
export function discard(bytes: Uint8Array): void {
  const { buffer, length } = bytes
  if (length > 0 && length === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0)
}

/** Whether the bytes from `start` to `end` are these. */
export function equalBytes(bytes: Uint8Array, start: number, end: number, value: Uint8Array): boolean {
  if (end - start !== value.length) return false
  for (let i = 0; i < value.length; i++) if (bytes[start + i] !== value[i]) return false
  return true
}
