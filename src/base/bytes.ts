// Up to here the runtime keeps bytes beside their object. A view would make it move them into a buffer of their own first,
// which costs three times the copy, and would keep all of that for its part.
const copiedBytesMax = 1_000

/** A part of some bytes that nobody changes: all of them as they are, a small part as a copy, a large one as a view. */
export function partOf(bytes: Uint8Array, start: number, end = bytes.length): Uint8Array {
  if (start === 0 && end === bytes.length) return bytes
  if (end - start > copiedBytesMax) return bytes.subarray(start, end)
  return Uint8Array.prototype.slice.call(bytes, start, end) // a Buffer's own would be a view
}
