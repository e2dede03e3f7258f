// Up to here the runtime keeps bytes beside their object. A view would make it move them into a buffer of their own first,
// which costs three times the copy, and would keep all of that for its part.
const copiedBytesMax = 1_000

/** A part of some bytes that nobody changes: all of them as they are, a small part as a copy, a large one as a view. */
export function partOf(bytes: Uint8Array, start: number, end = bytes.length): Uint8Array {
  if (start === 0 && end === bytes.length) return bytes
  return end - start <= copiedBytesMax ? copy.call(bytes, start, end) : bytes.subarray(start, end)
}

// A Buffer's own `slice` is a view.
const { slice: copy } = Uint8Array.prototype
