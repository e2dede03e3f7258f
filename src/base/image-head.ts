import { crc32 } from 'node:zlib'
import { imageDimensionsFromData } from 'image-dimensions'

/** What an image's first bytes say about it. Nothing is decoded, because a small file can hold a very large image. */
export type ImageHead = {
  readonly mediaType: (typeof mediaTypes)[Format]
  readonly width: number
  readonly height: number
}

const mediaTypes = { png: 'image/png', jpeg: 'image/jpeg', webp: 'image/webp' } as const
type Format = keyof typeof mediaTypes

/**
 * How much of an image is looked at, the next length only if the size is not found in the one before: each is a copy. A
 * PNG or WebP states its size at once, but a JPEG may first carry a thumbnail and a colour profile.
 */
const headLengths = [4 * 1024, 64 * 1024, 1024 * 1024]

/** `broken`: an image of a known format that does not state its size. Undefined: not a PNG, JPEG or WebP. */
export function readImageHead(bytes: Uint8Array): ImageHead | 'broken' | undefined {
  return readHead((length) => bytes.subarray(0, length))
}

/** The same for an image in base64, of which only the beginning is turned into bytes. */
export function readBase64Head(base64: string): ImageHead | 'broken' | undefined {
  return readHead((length) => Buffer.from(base64.slice(0, (length / 3) * 4), 'base64'))
}

function readHead(take: (length: number) => Uint8Array): ImageHead | 'broken' | undefined {
  for (const length of headLengths) {
    const bytes = take(length)
    const format = formatOf(bytes)
    if (format === undefined) return undefined
    const found = imageDimensionsFromData(bytes)
    if (found !== undefined && found.type === format && found.width > 0 && found.height > 0) {
      return { mediaType: mediaTypes[format], width: found.width, height: found.height }
    }
  }
  return 'broken'
}

/**
 * The media type that the first twelve bytes of an image say. A GIF too, which has no head here: only chats take it.
 */
export function imageTypeOf(bytes: Uint8Array): string | undefined {
  const format = formatOf(bytes)
  if (format !== undefined) return mediaTypes[format]
  return begins(bytes, 0, [0x47, 0x49, 0x46, 0x38]) ? 'image/gif' : undefined
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

/** Grey and full-colour images declare alpha in their colour type; palettes by a tRNS chunk before the pixels. */
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

/** More than any encoder writes; a file of nothing but empty chunks would take too long to walk. */
const chunksMax = 100_000

/**
 * Whether an image is complete, as far as its own lengths tell: a PNG has a valid head and reaches its last chunk, a
 * JPEG reaches its end marker, a WebP has its pixels within its stated length. Bytes after the end are ignored, and
 * nothing is decoded. This is checked because a vendor charges for a truncated image all the same.
 */
export function isWhole(bytes: Uint8Array, { mediaType }: ImageHead): boolean {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  switch (mediaType) {
    case 'image/png':
      return pngHeadIsIntact(file) && pngEnds(file)
    case 'image/jpeg':
      return jpegEnds(file)
    case 'image/webp':
      return webpEnds(file)
  }
}

const [pngHead, pngPixels, pngEnd] = [0x49484452, 0x49444154, 0x49454e44]
const pngHeadBytes = 13
/** The bit depths that each colour type may have, by ISO 15948 table 11.1. */
const pngDepths: Readonly<Record<number, readonly number[]>> = {
  0: [1, 2, 4, 8, 16],
  2: [8, 16],
  3: [1, 2, 4, 8],
  4: [8, 16],
  6: [8, 16],
}

function pngHeadIsIntact(file: Buffer): boolean {
  const [typeAt, endAt] = [firstChunkAt + 4, firstChunkAt + 8 + pngHeadBytes]
  if (file.length < endAt + 4) return false
  if (file.readUInt32BE(firstChunkAt) !== pngHeadBytes || file.readUInt32BE(typeAt) !== pngHead) return false
  const [depth = 0, colour = 0, compression, filter, interlace = 0] = file.subarray(colourTypeAt - 1, endAt)
  const isLegal = pngDepths[colour]?.includes(depth) === true && compression === 0 && filter === 0 && interlace <= 1
  return isLegal && crc32(file.subarray(typeAt, endAt)) === file.readUInt32BE(endAt)
}

function pngEnds(file: Buffer): boolean {
  let hasPixels = false
  let at = firstChunkAt
  for (let chunks = 0; chunks < chunksMax && at + chunkFrameBytes <= file.length; chunks++) {
    const [length, type] = [file.readUInt32BE(at), file.readUInt32BE(at + 4)]
    const next = at + chunkFrameBytes + length
    if (type === pngEnd) return hasPixels && next <= file.length
    hasPixels ||= type === pngPixels && length > 0
    at = next
  }
  return false
}

const [jpegMark, jpegScan] = [0xff, 0xda]
const jpegEnd = Buffer.from([0xff, 0xd9])

/** The end marker counts only after the pixels have begun, because a thumbnail has one of its own. */
function jpegEnds(file: Buffer): boolean {
  let at = 2
  for (let segments = 0; segments < chunksMax && at + 4 <= file.length; segments++) {
    if (file[at] !== jpegMark) return false
    // Any number of fill bytes may precede a marker.
    if (file[at + 1] === jpegMark) at += 1
    else if (file[at + 1] === jpegScan) return file.lastIndexOf(jpegEnd) > at
    else at += 2 + file.readUInt16BE(at + 2)
  }
  return false
}

const webpPixels: ReadonlySet<string> = new Set(['VP8 ', 'VP8L', 'ANMF'])

function webpEnds(file: Buffer): boolean {
  const end = file.readUInt32LE(4) + 8
  if (end > file.length) return false
  let at = 12
  for (let chunks = 0; chunks < chunksMax && at + 8 <= end; chunks++) {
    const length = file.readUInt32LE(at + 4)
    // Without this, a file that states too short a length for itself would count as whole wherever it is cut off.
    if (webpPixels.has(file.toString('latin1', at, at + 4))) return at + 8 + length <= end
    at += 8 + length + (length % 2)
  }
  return false
}
