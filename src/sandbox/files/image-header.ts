import type { ImageFormat, Size } from './image.ts'

export type ImageHeader = Size & { readonly format: ImageFormat; readonly hasAlpha: boolean }

/** What the first bytes of a file say about it; undefined for anything but PNG, JPEG and WebP. */
export function readImageHeader(bytes: Uint8Array): ImageHeader | undefined {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  try {
    if (file.readUInt32BE(0) === 0x89504e47) return readPng(file)
    if (file.readUInt16BE(0) === 0xffd8) return readJpeg(file)
    if (file.toString('latin1', 0, 4) === 'RIFF' && file.toString('latin1', 8, 12) === 'WEBP') return readWebp(file)
  } catch (error) {
    // The file ends before its header does.
    if (!(error instanceof RangeError)) throw error
  }
  return undefined
}

function readPng(file: Buffer): ImageHeader {
  const [width, height, colour] = [file.readUInt32BE(16), file.readUInt32BE(20), file.readUInt8(25)]
  // Grey and full colour declare an alpha channel in the colour type, a palette in a tRNS chunk before the pixels.
  const hasAlpha = colour === 4 || colour === 6 || file.subarray(0, file.indexOf('IDAT')).includes('tRNS')
  return { width, height, format: 'png', hasAlpha }
}

function readJpeg(file: Buffer): ImageHeader {
  for (let at = 2; ;) {
    const marker = file.readUInt16BE(at)
    // Frame headers are C0 to CF, except C4, C8 and CC.
    if (marker === 0xffc0 || (marker > 0xffc0 && marker < 0xffd0 && marker % 4 !== 0)) {
      return { width: file.readUInt16BE(at + 7), height: file.readUInt16BE(at + 5), format: 'jpeg', hasAlpha: false }
    }
    at += 2 + file.readUInt16BE(at + 2)
  }
}

function readWebp(file: Buffer): ImageHeader | undefined {
  const format = 'webp'
  switch (file.toString('latin1', 12, 16)) {
    case 'VP8L': {
      const bits = file.readUInt32LE(21)
      return {
        width: (bits & 0x3fff) + 1,
        height: ((bits >> 14) & 0x3fff) + 1,
        format,
        hasAlpha: (bits >> 28) % 2 !== 0,
      }
    }
    case 'VP8X':
      return { width: file.readUIntLE(24, 3) + 1, height: file.readUIntLE(27, 3) + 1, format, hasAlpha: true }
    case 'VP8 ':
      return { width: file.readUInt16LE(26) & 0x3fff, height: file.readUInt16LE(28) & 0x3fff, format, hasAlpha: false }
    default:
      return undefined
  }
}
