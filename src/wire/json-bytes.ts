import { BoundedMap } from '../base/bounded-map.ts'
import { equalBytes } from '../base/bytes.ts'
import { wholeOf, withReplaced } from '../base/spliced.ts'

/** The place of a value in some bytes: `[start, end)`. */
export type Span = { readonly start: number; readonly end: number }

const quote = 34
const backslash = 92
const comma = 44
const colon = 58
const openBracket = 91
const closeBracket = 93
const openBrace = 123
const closeBrace = 125

/**
 * The span between the quotes of a string under `key` at the top level of the JSON object that starts at `from`.
 * Walks over the bytes instead of parsing them, and stops at the key, which is near the start of every chunk.
 */
export function findTopLevelString(bytes: Uint8Array, from: number, key: Uint8Array): Span | undefined {
  let depth = 0
  let expectsKey = false
  for (let i = from; i < bytes.length; i++) {
    const byte = bytes[i]
    if (byte === quote) {
      const end = endOfString(bytes, i)
      if (depth === 1 && expectsKey && equalBytes(bytes, i + 1, end, key)) return stringValueAt(bytes, end + 1)
      expectsKey = false
      i = end
    } else if (byte === openBrace || byte === openBracket) {
      depth++
      expectsKey = depth === 1
    } else if (byte === closeBrace || byte === closeBracket) {
      if (--depth === 0) return undefined
    } else if (byte === comma) {
      expectsKey = depth === 1
    }
  }
  return undefined
}

const { indexOf } = Buffer.prototype

/** `Buffer`'s native search on a plain Uint8Array: wrapping the bytes in a Buffer would cost more than the search. */
export function indexOfBytes(bytes: Uint8Array, wanted: Buffer, from = 0): number {
  return indexOf.call(bytes, wanted, from)
}

/** The first byte of the value after `"key":`, found anywhere; 0 where the key is absent. A hint, to be parsed. */
export function valueByteAfter(bytes: Uint8Array, quotedKey: Buffer): number {
  for (let found = indexOfBytes(bytes, quotedKey); found !== -1;) {
    const colonAt = skipSpace(bytes, found + quotedKey.length)
    if (bytes[colonAt] === colon) return bytes[skipSpace(bytes, colonAt + 1)] ?? 0
    // The match was a string value equal to the key's name, since no colon follows it.
    found = indexOfBytes(bytes, quotedKey, colonAt)
  }
  return 0
}

/** The length of an event's text, found without parsing: the strings under the first of these keys that has any. */
export function wordBytesIn(event: Uint8Array, quotedKeys: readonly Buffer[]): number {
  for (const key of quotedKeys) {
    const bytes = stringBytesUnder(event, key)
    if (bytes > 0) return bytes
  }
  return 0
}

/** The total length of the strings after `"key":`. A key inside a value is not found: its quotes are escaped there. */
function stringBytesUnder(bytes: Uint8Array, quotedKey: Buffer): number {
  let length = 0
  for (let found = indexOfBytes(bytes, quotedKey); found !== -1;) {
    const after = found + quotedKey.length
    const span = stringValueAt(bytes, after)
    if (span !== undefined) length += span.end - span.start
    found = indexOfBytes(bytes, quotedKey, span?.end ?? after)
  }
  return length
}

const modelKey = Buffer.from('model')

// More than a catalogue has models.
const idsMax = 2_000
const ids = new BoundedMap<string, Uint8Array>(idsMax)
const encoder = new TextEncoder()

/** The bytes of our id, remembered: writing them takes as long as finding where they belong in an answer. */
export function modelBytes(id: string): Uint8Array {
  const remembered = ids.get(id)
  if (remembered !== undefined) return remembered
  const bytes = encoder.encode(id)
  ids.set(id, bytes)
  return bytes
}

/** A vendor's JSON with `model` replaced by our id. `from` is where the object that contains `model` starts. */
export function withModel(bytes: Uint8Array, from: number, model: Uint8Array): Uint8Array {
  const span = findTopLevelString(bytes, from, modelKey)
  return span === undefined ? bytes : wholeOf(withReplaced(bytes, span.start, span.end, model))
}

function stringValueAt(bytes: Uint8Array, after: number): Span | undefined {
  const colonAt = skipSpace(bytes, after)
  if (bytes[colonAt] !== colon) return undefined
  const valueAt = skipSpace(bytes, colonAt + 1)
  if (bytes[valueAt] !== quote) return undefined
  return { start: valueAt + 1, end: endOfString(bytes, valueAt) }
}

function skipSpace(bytes: Uint8Array, from: number): number {
  let i = from
  while (bytes[i] === 32 || bytes[i] === 9 || bytes[i] === 10 || bytes[i] === 13) i++
  return i
}

function endOfString(bytes: Uint8Array, start: number): number {
  for (let i = start + 1; i < bytes.length; i++) {
    if (bytes[i] === backslash) i++
    else if (bytes[i] === quote) return i
  }
  return bytes.length
}
