/** Collects fields of any width, highest bit first, as most media formats store them. */
export type BitWriter = {
  put(value: number, bits: number): void
  /** All bytes so far. The rest of the last byte is filled with `filler` bits. */
  bytes(filler?: 0 | 1): Uint8Array<ArrayBuffer>
}

export function createBitWriter(): BitWriter {
  const written: number[] = []
  let pending = 0
  let count = 0
  function put(value: number, bits: number): void {
    for (let bit = bits - 1; bit >= 0; bit -= 1) {
      // Shifts are limited to 32 bits, and some fields are wider.
      pending = (pending << 1) | (Math.floor(value / 2 ** bit) & 1)
      count += 1
      if (count < 8) continue
      written.push(pending)
      pending = 0
      count = 0
    }
  }
  return {
    put,
    bytes(filler = 0) {
      while (count > 0) put(filler, 1)
      return Uint8Array.from(written)
    },
  }
}

type CrcOptions = { readonly polynomial: number; readonly bits: 8 | 16 | 32 }

/** A checksum that takes the highest bit first and starts at 0, as both of FLAC's and Ogg's do. */
export function crc(bytes: Uint8Array, { polynomial, bits }: CrcOptions): number {
  const top = 2 ** (bits - 1)
  let sum = 0
  for (const byte of bytes) {
    sum ^= byte << (bits - 8)
    for (let bit = 0; bit < 8; bit += 1) sum = (sum & top) !== 0 ? (sum << 1) ^ polynomial : sum << 1
  }
  return (bits === 32 ? sum : sum & (2 ** bits - 1)) >>> 0
}
