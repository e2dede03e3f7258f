import { partOf } from '../bytes.ts'
import { isInName, isInValue } from './header-lines.ts'
import { MalformedMessageError } from './malformed-message-error.ts'

/** How a message says where its body ends: by its length, in chunks, by closing, or that there is none. */
export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'until-close' }

/** What a body's bytes are given to. */
export type Receiver = { push(piece: Uint8Array): void }

/** Takes the bytes of a body out of what comes over a connection. */
export type BodyDecoder = {
  /** Whether the body's last byte has been taken. */
  readonly isOver: boolean
  /** Gives the body's bytes to `receiver`, and returns how many of `bytes` belonged to this message. */
  take(bytes: Uint8Array, receiver: Receiver): number
}

export function bodyDecoderFor(framing: Framing): BodyDecoder {
  if (framing.kind === 'chunked') return new ChunkedBody()
  if (framing.kind === 'until-close') return new MeasuredBody(Number.POSITIVE_INFINITY)
  return new MeasuredBody(framing.kind === 'none' ? 0 : framing.bytes)
}

// `isOver` is a plain field of both classes: where their bodies alternate, each read would look up an accessor anew.
class MeasuredBody implements BodyDecoder {
  isOver: boolean
  #left: number

  constructor(bytes: number) {
    this.isOver = bytes === 0
    this.#left = bytes
  }

  take(bytes: Uint8Array, receiver: Receiver): number {
    const taken = Math.min(this.#left, bytes.length)
    this.#left -= taken
    this.isOver = this.#left === 0
    if (taken > 0) receiver.push(partOf(bytes, 0, taken))
    return taken
  }
}

const cr = 13
const lf = 10
const colon = 58
const semicolon = 59
const space = 32
const tab = 9
// Eight hexadecimal digits are four gigabytes: no real chunk is larger.
const sizeDigitsMax = 8
// The limit for the extension of one chunk's size, and for the trailers: both are skipped, and must not go on for ever.
const asideBytesMax = 16 * 1024

type Place =
  | 'size'
  /** After a size: blanks, and its extension, both of which are skipped. */
  | 'blanks'
  | 'extension'
  | 'size-end'
  | 'data'
  | 'data-cr'
  | 'data-lf'
  /** After the last chunk: at the start of a trailer line, inside its name and its value, and at its end. */
  | 'trailer-start'
  | 'trailer-name'
  | 'trailer'
  | 'trailer-end'
  | 'last-lf'

class ChunkedBody implements BodyDecoder {
  isOver = false
  #place: Place = 'size'
  #size = 0
  #digits = 0
  #asideBytes = 0

  take(bytes: Uint8Array, receiver: Receiver): number {
    let i = 0
    while (i < bytes.length && !this.isOver) {
      if (this.#place === 'size' && this.#digits === 0) i = this.#sizeAtOnce(bytes, i)
      if (i === bytes.length) break
      if (this.#place === 'data') {
        const end = Math.min(bytes.length, i + this.#size)
        receiver.push(partOf(bytes, i, end))
        this.#size -= end - i
        if (this.#size === 0) this.#place = 'data-cr'
        i = end
        if (this.#place === 'data-cr' && bytes[i] === cr && bytes[i + 1] === lf) {
          this.#place = 'size'
          i += 2
        }
      } else {
        this.#step(bytes[i] as number)
        i++
      }
    }
    return i
  }

  /**
   * Takes a plain size line that is whole, and gives where the data begins. Nearly every chunk begins so.
   * Anything else is left to the steps.
   */
  #sizeAtOnce(bytes: Uint8Array, start: number): number {
    let size = 0
    let at = start
    for (; at < start + sizeDigitsMax; at++) {
      const digit = hexDigit(bytes[at] ?? 0)
      if (digit === -1) break
      size = size * 16 + digit
    }
    if (size === 0 || bytes[at] !== cr || bytes[at + 1] !== lf) return start
    this.#size = size
    this.#place = 'data'
    return at + 2
  }

  /** Takes one byte of the framing around the data. */
  #step(byte: number): void {
    switch (this.#place) {
      case 'size':
        this.#sizeDigit(byte)
        break
      case 'blanks':
        if (byte === cr) this.#place = 'size-end'
        else if (byte === semicolon) this.#place = 'extension'
        else if (byte !== space && byte !== tab) throw new MalformedMessageError("a chunk's size")
        else this.#aside(byte)
        break
      case 'extension':
        if (byte === cr) this.#place = 'size-end'
        else this.#aside(byte)
        break
      case 'size-end':
        this.#expect(byte, lf, this.#size === 0 ? 'trailer-start' : 'data')
        this.#digits = 0
        this.#asideBytes = 0
        break
      case 'data-cr':
        this.#expect(byte, cr, 'data-lf')
        break
      case 'data-lf':
        this.#expect(byte, lf, 'size')
        break
      case 'trailer-start':
        if (byte === cr) this.#place = 'last-lf'
        else this.#name(byte, 'trailer-name')
        break
      case 'trailer-name':
        if (byte === colon) this.#aside(byte, 'trailer')
        else this.#name(byte, 'trailer-name')
        break
      case 'trailer':
        if (byte === cr) this.#place = 'trailer-end'
        else this.#aside(byte)
        break
      case 'trailer-end':
        this.#expect(byte, lf, 'trailer-start')
        break
      case 'last-lf':
        this.#expect(byte, lf, 'last-lf')
        this.isOver = true
        break
      case 'data':
        break
    }
  }

  #sizeDigit(byte: number): void {
    const digit = hexDigit(byte)
    if (digit !== -1 && this.#digits < sizeDigitsMax) {
      this.#size = this.#size * 16 + digit
      this.#digits++
      return
    }
    if (this.#digits === 0 || digit !== -1) throw new MalformedMessageError("a chunk's size")
    if (byte === cr) this.#place = 'size-end'
    // Some servers leave room for a longer size and fill it with blanks.
    else if (byte === semicolon) this.#place = 'extension'
    else if (byte === space || byte === tab) this.#place = 'blanks'
    else throw new MalformedMessageError("a chunk's size")
  }

  #expect(byte: number, wanted: number, next: Place): void {
    if (byte !== wanted) throw new MalformedMessageError('the end of a chunk')
    this.#place = next
  }

  #name(byte: number, next: Place): void {
    if (!isInName(byte)) throw new MalformedMessageError('a trailer without a name')
    this.#aside(byte, next)
  }

  #aside(byte: number, next = this.#place): void {
    if (!isInValue(byte) || ++this.#asideBytes > asideBytesMax)
      throw new MalformedMessageError('what stands beside its chunks')
    this.#place = next
  }
}

/** The value of a hexadecimal digit, by its byte; -1 for every other byte. */
const hexValues = new Int8Array(256).fill(-1)
for (let value = 0; value < 16; value++) {
  const digit = value.toString(16)
  hexValues[digit.charCodeAt(0)] = hexValues[digit.toUpperCase().charCodeAt(0)] = value
}

function hexDigit(byte: number): number {
  return hexValues[byte] ?? -1
}
