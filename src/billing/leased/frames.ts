import { crc32 } from 'node:zlib'

/**
 * A record on disk is: magic, length of the payload, generation of the segment, sequence number, how many bytes of the
 * segment were durable when the record was made, checksum of all these and the payload, payload. A recycled segment
 * still holds bytes of an older generation behind its end; they are never taken for records.
 */
const magic = 0x54504a31 // "TPJ1"
export const headerBytes = 36
const crcAt = 32
const checksumBytes = headerBytes - crcAt
const payloadBytesMax = 16 * 1024 * 1024

export type Frame = { readonly seq: number; readonly payload: string }

const bufferBytes = 64 * 1024
// The copy that begins a segment may have 200 MB after an outage; the records of one moment never need this much.
const keptBufferBytesMax = 1024 * 1024

/** Writes frames into one growing buffer, so that a record costs no allocation of its own. */
export class FrameWriter {
  #buffer = Buffer.allocUnsafe(bufferBytes)
  #fields = fieldsOf(this.#buffer)
  #length = 0

  get pending(): boolean {
    return this.#length > 0
  }

  add(generation: number, seq: number, durableBytes: number, payload: string): void {
    // A UTF-16 unit becomes at most three bytes of UTF-8.
    this.#reserve(headerBytes + payload.length * 3)
    const start = this.#length
    const payloadBytes = this.#buffer.write(payload, start + headerBytes)
    this.#length = start + headerBytes + payloadBytes
    // The fields are first put right before the payload, into the checksum's place, so that one call sums up both, over
    // the very bytes that will be written.
    this.#putFields(start + checksumBytes, payloadBytes, generation, seq, durableBytes)
    const checksum = crc32(this.#buffer.subarray(start + checksumBytes, this.#length))
    this.#putFields(start, payloadBytes, generation, seq, durableBytes)
    this.#fields.setUint32(start + crcAt, checksum, true)
  }

  #putFields(at: number, payloadBytes: number, generation: number, seq: number, durableBytes: number): void {
    const fields = this.#fields
    fields.setUint32(at, magic, true)
    fields.setUint32(at + 4, payloadBytes, true)
    writeUint64(fields, at + 8, generation)
    writeUint64(fields, at + 16, seq)
    writeUint64(fields, at + 24, durableBytes)
  }

  /** What was added, valid until the next `add`. It stays until `clear`, so that a failed write can be tried again. */
  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length)
  }

  clear(): void {
    this.#length = 0
    if (this.#buffer.length > keptBufferBytesMax) this.#useBuffer(Buffer.allocUnsafe(bufferBytes))
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#length + bytes))
    this.#buffer.copy(grown, 0, 0, this.#length)
    this.#useBuffer(grown)
  }

  #useBuffer(buffer: Buffer<ArrayBuffer>): void {
    this.#buffer = buffer
    this.#fields = fieldsOf(buffer)
  }
}

function fieldsOf(buffer: Buffer): DataView {
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.length)
}

/** Writes a safe integer in two halves, because in one piece it would have to become a BigInt first. */
function writeUint64(fields: DataView, at: number, value: number): void {
  fields.setUint32(at, value % 2 ** 32, true)
  fields.setUint32(at + 4, Math.floor(value / 2 ** 32), true)
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

export type Segment = {
  /** The generation of the records that the segment starts with; 0 where it starts with none. */
  readonly generation: number
  readonly frames: readonly Frame[]
  /** The highest numbers on any whole record in the file, wherever it stands: they must not be used again. */
  readonly newest: { readonly generation: number; readonly seq: number }
  /** Where durable bytes are missing, and of which generation they were. A crash cannot cause that. */
  readonly damage: { readonly generation: number; readonly offset: number } | undefined
}

/**
 * Reads the records that a segment starts with, and drops everything from the first byte on that is not one of them: a
 * crash leaves such a tail, and a power cut leaves it in pieces, since a drive writes in any order. It is damage only
 * if a whole record behind that byte says that the bytes there had been durable.
 */
export function readFrames(content: Uint8Array): Segment {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
  const generation = frameAt(bytes, 0)?.generation ?? 0
  const frames: Frame[] = []
  let offset = 0
  for (;;) {
    const frame = frameAt(bytes, offset)
    if (frame === undefined || frame.generation !== generation) break
    frames.push({ seq: frame.seq, payload: bytes.toString('utf8', offset + headerBytes, frame.end) })
    offset = frame.end
  }
  const newest = { generation, seq: frames.at(-1)?.seq ?? 0 }
  let damage: Segment['damage']
  for (const frame of framesBehind(bytes, offset)) {
    newest.seq = Math.max(newest.seq, frame.seq)
    newest.generation = Math.max(newest.generation, frame.generation)
    if (frame.generation < Math.max(generation, damage?.generation ?? 0)) continue
    // A newer generation starts at byte 0, so everything that the file starts with stands where its records should be.
    const lostFrom = frame.generation === generation ? offset : 0
    if (frame.durableBytes > lostFrom) damage = { generation: frame.generation, offset: lostFrom }
  }
  return { generation, frames, newest, damage }
}

type Found = {
  readonly generation: number
  readonly seq: number
  readonly durableBytes: number
  readonly end: number
}

function frameAt(bytes: Buffer, start: number): Found | undefined {
  if (start + headerBytes > bytes.length || bytes.readUInt32LE(start) !== magic) return undefined
  const payloadBytes = bytes.readUInt32LE(start + 4)
  const end = start + headerBytes + payloadBytes
  if (payloadBytes > payloadBytesMax || end > bytes.length) return undefined
  if (bytes.readUInt32LE(start + crcAt) !== checksum(bytes, start, payloadBytes)) return undefined
  return {
    generation: Number(bytes.readBigUInt64LE(start + 8)),
    seq: Number(bytes.readBigUInt64LE(start + 16)),
    durableBytes: Number(bytes.readBigUInt64LE(start + 24)),
    end,
  }
}

const magicBytes = Buffer.alloc(4)
magicBytes.writeUInt32LE(magic)

/** Every whole record from there on, of any generation. */
function* framesBehind(bytes: Buffer, from: number): Generator<Found> {
  for (let at = bytes.indexOf(magicBytes, from); at !== -1;) {
    const frame = frameAt(bytes, at)
    if (frame !== undefined) yield frame
    at = bytes.indexOf(magicBytes, frame?.end ?? at + 1)
  }
}

function checksum(bytes: Buffer, start: number, payloadBytes: number): number {
  const header = crc32(bytes.subarray(start, start + crcAt))
  return crc32(bytes.subarray(start + headerBytes, start + headerBytes + payloadBytes), header)
}
