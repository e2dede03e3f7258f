import { MalformedMessageError } from './malformed-message-error.ts'

const colon = 58
const upperBit = 32

/** By the code of a character: 1 where it may be in a name, 2 in a value, 3 in both. */
const allowed = new Uint8Array(256)
for (const character of "!#$%&'*+.^_`|~0123456789-") allowed[character.charCodeAt(0)] = 1
for (let code = 65; code <= 90; code++) allowed[code] = allowed[code | upperBit] = 1
// No control characters: some readers take a lone CR or LF for a line end, and some skip what is invisible.
for (let code = 32; code < 256; code++) if (code !== 127) allowed[code] = (allowed[code] ?? 0) | 2
allowed[9] = 2

/** The headers of a message, checked once and kept as text: there may be two dozen, and four or five are read. */
export class HeaderLines {
  readonly #text: string
  /** Three numbers for each line: where it starts, where its colon is, where it ends. */
  readonly #places: number[] = []

  /** `text` has the lines from `start` on, each but the last followed by CR LF. */
  constructor(text: string, start: number) {
    this.#text = text
    for (let at = start; at <= text.length;) at = this.#readLine(at) + 2
  }

  get count(): number {
    return this.#places.length / 3
  }

  /** Each line's name, as it was sent, and value. */
  *[Symbol.iterator](): Generator<[name: string, value: string]> {
    for (let i = 0; i < this.#places.length; i += 3) {
      yield [this.#text.slice(this.#places[i], this.#places[i + 1]), this.#valueAt(i)]
    }
  }

  /** The values of a header that came several times are joined. */
  get(name: string): string | undefined {
    let found: string | undefined
    for (let i = 0; i < this.#places.length; i += 3) {
      if (!this.#isNamed(i, name)) continue
      const value = this.#valueAt(i)
      found = found === undefined ? value : `${found}, ${value}`
    }
    return found
  }

  has(name: string): boolean {
    for (let i = 0; i < this.#places.length; i += 3) if (this.#isNamed(i, name)) return true
    return false
  }

  /** Checks one line and gives where it ends. */
  #readLine(start: number): number {
    const text = this.#text
    const found = text.indexOf('\r\n', start)
    const end = found === -1 ? text.length : found
    let at = start
    while (at < end && isInName(text.charCodeAt(at))) at++
    if (at === start || text.charCodeAt(at) !== colon) throw new MalformedMessageError('a header without a name')
    this.#places.push(start, at, end)
    for (at++; at < end; at++)
      if (!isInValue(text.charCodeAt(at))) throw new MalformedMessageError('a header with a control character')
    return end
  }

  /** `name` is in lower case. */
  #isNamed(line: number, name: string): boolean {
    const start = this.#places[line] ?? 0
    if ((this.#places[line + 1] ?? 0) - start !== name.length) return false
    for (let i = 0; i < name.length; i++) {
      if (lowered(this.#text.charCodeAt(start + i)) !== name.charCodeAt(i)) return false
    }
    return true
  }

  /** Not `trim`, which removes more than HTTP allows: a length that only some readers understand is not valid. */
  #valueAt(line: number): string {
    let start = (this.#places[line + 1] ?? 0) + 1
    let end = this.#places[line + 2] ?? 0
    while (start < end && isBlank(this.#text.charCodeAt(start))) start++
    while (end > start && isBlank(this.#text.charCodeAt(end - 1))) end--
    return this.#text.slice(start, end)
  }
}

/**
 * A line of a head that is to be written. A line end in a name or a value would let its author begin another header, or
 * another message.
 */
export function headerLine(name: string, value: string): string {
  if (!isName(name) || !isValue(value)) throw new Error(`the header ${name} has a character that no header may have`)
  return `${name}: ${value}\r\n`
}

function isName(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (!isInName(text.charCodeAt(i))) return false
  return text !== ''
}

function isValue(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (!isInValue(text.charCodeAt(i))) return false
  return true
}

/** Whether a byte may be in the name of a header. */
export function isInName(byte: number): boolean {
  return ((allowed[byte] ?? 0) & 1) !== 0
}

export function isInValue(byte: number): boolean {
  return ((allowed[byte] ?? 0) & 2) !== 0
}

function lowered(code: number): number {
  return code >= 65 && code <= 90 ? code | upperBit : code
}

function isBlank(code: number): boolean {
  return code === 32 || code === 9
}
