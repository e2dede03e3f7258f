/** The structure of an MP4 file: named boxes within boxes, and big-endian numbers. */
export const boxHeadBytes = 8

export function box(name: string, ...parts: readonly Uint8Array[]): Uint8Array {
  const body = join(parts)
  return join([u32(body.length + boxHeadBytes), text(name), body])
}

export function u16(value: number): Uint8Array {
  return Uint8Array.of(value >>> 8, value)
}

export function u32(value: number): Uint8Array {
  return Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value)
}

export function zeros(count: number): Uint8Array {
  return new Uint8Array(count)
}

export function text(value: string): Uint8Array {
  return new TextEncoder().encode(value)
}

export function join(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(parts.reduce((bytes, part) => bytes + part.length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}
