import { imageDimensionsFromData } from 'image-dimensions'

/** What a picture is, as its first bytes say it. Nothing is decoded: a small file can hold a very large picture. */
export type ImageHead = {
  readonly mediaType: (typeof mediaTypes)[Format]
  readonly width: number
  readonly height: number
}

const mediaTypes = { png: 'image/png', jpeg: 'image/jpeg', webp: 'image/webp' } as const
type Format = keyof typeof mediaTypes

/** Far beyond where a PNG or WebP says its size; a JPEG may first bring a thumbnail and a colour profile. */
const headBytes = 1024 * 1024

/** `broken`: a picture of a known format that does not say its size. Undefined: not a PNG, JPEG or WebP. */
export function readImageHead(bytes: Uint8Array): ImageHead | 'broken' | undefined {
  const format = formatOf(bytes)
  if (format === undefined) return undefined
  const found = imageDimensionsFromData(bytes.subarray(0, headBytes))
  if (found === undefined || found.type !== format || found.width === 0 || found.height === 0) return 'broken'
  return { mediaType: mediaTypes[format], width: found.width, height: found.height }
}

/** The same for a picture in base64, of which only the beginning is turned into bytes. */
export function readBase64Head(base64: string): ImageHead | 'broken' | undefined {
  return readImageHead(Buffer.from(base64.slice(0, (headBytes / 3) * 4), 'base64'))
}

function formatOf(bytes: Uint8Array): Format | undefined {
  if (begins(bytes, 0, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])) return 'png'
  if (begins(bytes, 0, [0xff, 0xd8, 0xff])) return 'jpeg'
  if (begins(bytes, 0, [0x52, 0x49, 0x46, 0x46]) && begins(bytes, 8, [0x57, 0x45, 0x42, 0x50])) return 'webp'
  return undefined
}

function begins(bytes: Uint8Array, at: number, signature: readonly number[]): boolean {
  return signature.every((byte, index) => bytes[at + index] === byte)
}

const colourTypeAt = 25
const withAlpha: ReadonlySet<number> = new Set([4, 6])
const firstChunkAt = 8
const chunkFrameBytes = 12

/** Grey and full colour have an alpha channel by their colour type; a palette has one by a chunk before the pixels. */
export function pngHasAlpha(bytes: Uint8Array): boolean {
  if (withAlpha.has(bytes[colourTypeAt] ?? 0)) return true
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let at = firstChunkAt; at + chunkFrameBytes <= file.length; at += chunkFrameBytes + file.readUInt32BE(at)) {
    const type = file.toString('latin1', at + 4, at + 8)
    if (type === 'tRNS') return true
    if (type === 'IDAT') return false
  }
  return false
}
