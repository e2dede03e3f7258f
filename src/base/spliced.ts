import { equalBytes } from './bytes.ts'

const { copy } = Buffer.prototype

/**
 * Bytes with a part replaced. They are copied only where they are written, to their place there: memory of their own
 * for every event of a stream cost a twentieth of what the event costs in all.
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
export type Piece = Uint8Array | Spliced

/** The bytes with those from `start` to `end` replaced, or the same array where the value is there already. */
export function spliced(bytes: Uint8Array, start: number, end: number, value: Uint8Array): Piece {
  return equalBytes(bytes, start, end, value) ? bytes : new Spliced(bytes, start, end, value)
}

/** The bytes as one array, for whoever keeps or reads them. */
export function wholeOf(piece: Piece): Uint8Array {
  if (piece instanceof Uint8Array) return piece
  const whole = Buffer.allocUnsafe(piece.length)
  piece.copyTo(whole, 0)
  return whole
}

/** Writes the bytes into `target`, from `at` on. */
export function copyPiece(piece: Piece, target: Uint8Array, at: number): void {
  if (piece instanceof Uint8Array) target.set(piece, at)
  else piece.copyTo(target, at)
}
