import { equalBytes } from './bytes.ts'

const { copy } = Buffer.prototype

/**
 * Bytes with a part replaced, which are copied when they are written: nearly every event of a stream goes from here
 * right into its chunk. With memory of its own, from which it was copied once more, it cost a twentieth more in all.
 * Neither the bytes nor the value may change after this.
 */
export class Spliced {
  readonly length: number
  readonly #bytes: Uint8Array
  readonly #start: number
  readonly #end: number
  readonly #value: Uint8Array

  /** The bytes from `start` to `end` are replaced by the value. */
  constructor(bytes: Uint8Array, start: number, end: number, value: Uint8Array) {
    this.length = bytes.length - (end - start) + value.length
    this.#bytes = bytes
    this.#start = start
    this.#end = end
    this.#value = value
  }

  /** Writes them into `target`, from `at` on. */
  copyTo(target: Uint8Array, at: number): void {
    const start = at + this.#start
    // Buffer's native copy on plain arrays: a view of each part would cost more than all the copies.
    copy.call(this.#bytes, target, at, 0, this.#start)
    target.set(this.#value, start)
    copy.call(this.#bytes, target, start + this.#value.length, this.#end)
  }
}

/** Bytes on their way to where they are written. */
export type Bytes = Uint8Array | Spliced

/** The bytes with those from `start` to `end` replaced, or the same array where the value is there already. */
export function withReplaced(bytes: Uint8Array, start: number, end: number, value: Uint8Array): Bytes {
  return equalBytes(bytes, start, end, value) ? bytes : new Spliced(bytes, start, end, value)
}

/** The bytes as one array, for whoever reads them. */
export function wholeOf(piece: Bytes): Uint8Array {
  if (piece instanceof Uint8Array) return piece
  const whole = Buffer.allocUnsafe(piece.length)
  piece.copyTo(whole, 0)
  return whole
}

/** Writes the bytes into `target`, from `at` on. */
export function copyInto(piece: Bytes, target: Uint8Array, at: number): void {
  if (piece instanceof Uint8Array) target.set(piece, at)
  else piece.copyTo(target, at)
}
