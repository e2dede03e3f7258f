import { partOf } from './bytes.ts'
import { GatewayError } from './errors.ts'
import { decodeUtf8 } from './utf8.ts'

/** Up to this size, a plain copy is faster than a growing buffer. */
const smallEventBytes = 64 * 1024

const lf = 10
const cr = 13
const blankLine = Buffer.from('\n\n')

// `Buffer`'s native search on plain Uint8Arrays: wrapping the bytes in a Buffer would cost more than the search.
const { indexOf } = Buffer.prototype

/**
 * Cuts a byte stream into whole server-sent events by finding their ends: nothing is decoded, so split UTF-8 and odd
 * line ends pass unchanged. An event is never emitted before it is whole.
 */
export class EventSplitter {
  readonly #eventBytesMax: number
  #rest: Uint8Array | undefined
  /** The growing buffer of a long event; `#rest` is then the filled part of it. */
  #room: Uint8Array | undefined

  constructor(eventBytesMax: number) {
    this.#eventBytesMax = eventBytesMax
  }

  /** Whether the next byte begins an event. */
  get isAtStart(): boolean {
    return this.#rest === undefined
  }

  /**
   * Whether this chunk is one whole event, after no event that has begun, whose lines end with line feeds. Nearly every
   * read of a stream is that, and need not be pushed.
   */
  isWhole(chunk: Uint8Array): boolean {
    if (this.#rest !== undefined || chunk[chunk.length - 1] !== lf || chunk[0] === lf) return false
    return indexOf.call(chunk, blankLine) === chunk.length - 2 && indexOf.call(chunk, cr) === -1
  }

  /** The events that `chunk` completes, each with the blank line that ends it. */
  push(chunk: Uint8Array): Uint8Array[] {
    const scannedBefore = this.#rest?.length ?? 0
    const bytes = this.#rest === undefined ? chunk : this.#append(this.#rest, chunk)
    const events: Uint8Array[] = []
    let start = 0
    // A blank line may be split between two chunks: step back far enough to see all of it, but not into a CR LF.
    let i = Math.max(0, scannedBefore - 3)
    if (bytes[i] === lf && bytes[i - 1] === cr) i--
    let lineStart = i === 0 || bytes[i - 1] === lf || bytes[i - 1] === cr
    for (; i < bytes.length; i++) {
      const byte = bytes[i]
      if (byte !== lf && byte !== cr) {
        lineStart = false
        continue
      }
      // Where lines end with CR LF, a CR at the end of a chunk is half a line end: the event waits for its LF.
      if (byte === cr && i + 1 === bytes.length && lineStart && bytes[i - 1] === lf) break
      const end = byte === cr && bytes[i + 1] === lf ? i + 2 : i + 1
      if (lineStart && i > start) {
        events.push(partOf(bytes, start, end))
        start = end
      } else if (i === start) {
        start = end // a stray blank line between events carries nothing
      }
      lineStart = true
      i = end - 1
    }
    this.#rest = start === bytes.length ? undefined : bytes.subarray(start)
    if (this.#rest !== undefined && this.#rest.length > this.#eventBytesMax) {
      throw new GatewayError(
        'upstream-failed',
        `The model's vendor sent an event of more than ${this.#eventBytesMax} bytes.`,
      )
    }
    return events
  }

  /** An image is an event of megabytes: a buffer that doubles copies its bytes a few times, and not with every read. */
  #append(rest: Uint8Array, chunk: Uint8Array): Uint8Array {
    const length = rest.length + chunk.length
    if (length <= smallEventBytes) return Buffer.concat([rest, chunk])
    let room = this.#room
    // Bytes of emitted events must not be overwritten: the buffer is reused only if `rest` begins where it begins.
    const isBegun = room !== undefined && room.buffer === rest.buffer && room.byteOffset === rest.byteOffset
    if (room === undefined || !isBegun || room.length < length) {
      room = Buffer.allocUnsafeSlow(2 * length)
      room.set(rest)
      this.#room = room
    }
    room.set(chunk, rest.length)
    return room.subarray(0, length)
  }
}

const dataStart = 100 // the d of `data:`; nearly all events begin with it, and those have no name
const errorName = /^event: ?error\r?$/m

/** Whether an event is named `error`, whatever its data is: official clients throw on the name alone. */
export function isNamedError(event: Uint8Array): boolean {
  return event[0] !== dataStart && errorName.test(decodeUtf8(event))
}

/** The text of an event's `data` lines, joined with newlines as the specification of server-sent events requires. */
export function dataOf(event: Uint8Array): string {
  let joined: string | undefined
  for (const line of decodeUtf8(event).split(/\r\n|\n|\r/)) {
    if (!line.startsWith('data:')) continue
    const text = line.startsWith('data: ') ? line.slice(6) : line.slice(5)
    joined = joined === undefined ? text : `${joined}\n${text}`
  }
  return joined ?? ''
}
