import type { RequestHead } from './request-head.ts'

// Methods of Buffer for plain Uint8Arrays: making a Buffer of the bytes would cost more than what is done with them.
const { compare, latin1Slice } = Buffer.prototype

// Without zeros in front, so that a number has one spelling.
const lengthValue = /\r\ncontent-length:[ \t]*(0|[1-9]\d{0,14})\r\n/i
// With a longer head, a connection that is idle would take more than ten kilobytes.
const headBytesMax = 4 * 1024
const zero = 48
const digitsMax = 15

/**
 * The last head that came over a connection. A client sends the same head again and again, only the length of the body
 * differs, and comparing it takes a fraction of the time that reading it takes.
 */
export class HeadMemory {
  #bytes: Uint8Array | undefined
  #head: RequestHead | undefined
  /** Where in the bytes the digits of the body's length are. */
  #lengthStart = 0
  #lengthEnd = 0
  /** How long the head is that was recalled last, with the empty line after it. */
  end = 0

  /** `bytes` begin with the head, which ends, empty line included, at `end`. */
  remember(bytes: Uint8Array, end: number, head: RequestHead): void {
    if (end > headBytesMax) return
    // Buffer's own slice() would give a view, which keeps alive all that came with the head.
    this.#bytes = Uint8Array.prototype.slice.call(bytes, 0, end)
    this.#head = head
    const found = head.framing.kind === 'length' ? lengthValue.exec(latin1Slice.call(bytes, 0, end)) : null
    const length = found?.[1] ?? ''
    this.#lengthEnd = found === null ? end : found.index + found[0].length - '\r\n'.length
    this.#lengthStart = this.#lengthEnd - length.length
  }

  /** The head with which `bytes` begin; undefined if it is not the remembered one, or not whole. */
  recall(bytes: Uint8Array): RequestHead | undefined {
    const known = this.#bytes
    const head = this.#head
    if (known === undefined || head === undefined || !isSame(bytes, 0, known, 0, this.#lengthStart)) return undefined
    let at = this.#lengthStart
    let length = 0
    const isMeasured = this.#lengthEnd > this.#lengthStart
    const digitsEnd = isMeasured ? Math.min(bytes.length, at + digitsMax) : at
    for (; at < digitsEnd; at++) {
      const digit = (bytes[at] ?? 0) - zero
      if (digit < 0 || digit > 9) break
      length = length * 10 + digit
    }
    const isSpelt = at - this.#lengthStart === 1 || bytes[this.#lengthStart] !== zero
    if (isMeasured && (at === this.#lengthStart || !isSpelt)) return undefined
    if (!isSame(bytes, at, known, this.#lengthEnd, known.length)) return undefined
    this.end = at + known.length - this.#lengthEnd
    if (!isMeasured || (head.framing.kind === 'length' && head.framing.bytes === length)) return head
    return { ...head, headers: head.headers.withLength(String(length)), framing: { kind: 'length', bytes: length } }
  }
}

/** Whether `bytes` have from `at` on what `known` has from `start` to `end`. */
function isSame(bytes: Uint8Array, at: number, known: Uint8Array, start: number, end: number): boolean {
  const atEnd = at + end - start
  return atEnd <= bytes.length && compare.call(bytes, known, start, end, at, atEnd) === 0
}
