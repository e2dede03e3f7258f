import { crc32 } from 'node:zlib'
import { drawImage } from '../../src/sandbox/files/image.ts'

const endChunkBytes = 12
const chunkFrameBytes = 12

/** A PNG of exactly `bytes` bytes and few pixels: before its end it has a chunk that decoders skip. */
export function paddedPng(bytes: number): Buffer<ArrayBuffer> {
  const small = drawImage({ width: 256, height: 256, format: 'png', seed: 1 })
  const padding = Buffer.alloc(bytes - small.length - chunkFrameBytes)
  // Incompressible bytes, because a file of zeros would take less memory than a real image.
  for (let at = 0; at < padding.length; at++) padding[at] = (at * 2_654_435_761) >>> 24
  const named = Buffer.concat([Buffer.from('prIv'), padding])
  const length = Buffer.alloc(4)
  length.writeUInt32BE(padding.length)
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(named))
  const end = small.length - endChunkBytes
  return Buffer.concat([small.subarray(0, end), length, named, sum, small.subarray(end)])
}
