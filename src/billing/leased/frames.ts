import { crc32 } from 'node:zlib'

/**
 * One record on disk: magic, length, generation of the segment, sequence number, checksum of all of these and the
 * payload. A recycled segment still holds bytes of an older generation behind its end; they are never taken for records.
 */
const magic = 0x54504a31 // "TPJ1"
export const headerBytes = 28
const crcAt = 24
const payloadBytesMax = 16 * 1024 * 1024

export type Frame = { readonly seq: number; readonly payload: string }

/** Writes frames into one growing buffer: a record costs no allocation of its own. */
export class FrameWriter {
  #buffer = Buffer.allocUnsafe(64 * 1024)
  #length = 0

  get pending(): boolean {
    return this.#length > 0
  }

  add(generation: number, seq: number, payload: string): void {
    // A UTF-16 unit becomes at most three bytes of UTF-8.
    this.#reserve(headerBytes + payload.length * 3)
    const start = this.#length
    const payloadBytes = this.#buffer.write(payload, start + headerBytes)
    this.#buffer.writeUInt32LE(magic, start)
    this.#buffer.writeUInt32LE(payloadBytes, start + 4)
    this.#buffer.writeBigUInt64LE(BigInt(generation), start + 8)
    this.#buffer.writeBigUInt64LE(BigInt(seq), start + 16)
    this.#length = start + headerBytes + payloadBytes
    this.#buffer.writeUInt32LE(checksum(this.#buffer, start, payloadBytes), start + crcAt)
  }

  /** What was added, valid until the next `add`. */
  take(): Uint8Array {
    const bytes = this.#buffer.subarray(0, this.#length)
    this.#length = 0
    return bytes
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#length + bytes))
    this.#buffer.copy(grown, 0, 0, this.#length)
    this.#buffer = grown
  }
}

export class JournalCorrupt extends Error {
  constructor(segment: string, offset: number) {
    super(
      `the journal is damaged at byte ${offset} of ${segment}, with whole records behind it: nothing is replayed. ` +
        'Keep a copy of the folder, then move the segment away and run "turnpike reconcile" against the vendors\' bills.',
    )
    this.name = 'JournalCorrupt'
  }
}

/**
 * The records of a segment's newest generation. A torn tail, which a crash in the middle of a write leaves, is dropped;
 * damage with records behind it is not a crash's doing and throws.
 */
export function readFrames(segment: string, content: Uint8Array): { generation: number; frames: Frame[]; end: number } {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
  const first = frameAt(bytes, 0)
  if (first === undefined) {
    const found = nextFrame(bytes, 1, 0, 0)
    if (found !== undefined) throw new JournalCorrupt(segment, 0)
    return { generation: 0, frames: [], end: 0 }
  }
  const { generation } = first
  const frames: Frame[] = []
  let offset = 0
  for (;;) {
    const frame = frameAt(bytes, offset)
    if (frame === undefined || frame.generation !== generation) break
    frames.push({ seq: frame.seq, payload: bytes.toString('utf8', offset + headerBytes, frame.end) })
    offset = frame.end
  }
  const lastSeq = frames.at(-1)?.seq ?? 0
  if (nextFrame(bytes, offset + 1, generation, lastSeq) !== undefined) throw new JournalCorrupt(segment, offset)
  return { generation, frames, end: offset }
}

type Found = { readonly generation: number; readonly seq: number; readonly end: number }

function frameAt(bytes: Buffer, start: number): Found | undefined {
  if (start + headerBytes > bytes.length || bytes.readUInt32LE(start) !== magic) return undefined
  const payloadBytes = bytes.readUInt32LE(start + 4)
  const end = start + headerBytes + payloadBytes
  if (payloadBytes > payloadBytesMax || end > bytes.length) return undefined
  if (bytes.readUInt32LE(start + crcAt) !== checksum(bytes, start, payloadBytes)) return undefined
  return { generation: Number(bytes.readBigUInt64LE(start + 8)), seq: Number(bytes.readBigUInt64LE(start + 16)), end }
}

const magicBytes = Buffer.alloc(4)
magicBytes.writeUInt32LE(magic)

/** A whole record of this generation or a newer one that stands behind `from` and after `seq`. */
function nextFrame(bytes: Buffer, from: number, generation: number, seq: number): Found | undefined {
  for (let at = bytes.indexOf(magicBytes, from); at !== -1; at = bytes.indexOf(magicBytes, at + 1)) {
    const frame = frameAt(bytes, at)
    if (frame !== undefined && frame.generation >= generation && frame.seq > seq) return frame
  }
  return undefined
}

function checksum(bytes: Buffer, start: number, payloadBytes: number): number {
  const header = crc32(bytes.subarray(start, start + crcAt))
  return crc32(bytes.subarray(start + headerBytes, start + headerBytes + payloadBytes), header)
}
