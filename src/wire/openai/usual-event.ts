import { equalBytes } from '../../base/bytes.ts'

/**
 * The keys of a delta that hold output: text, reasoning (two names), function and custom tool input, refusal, part. An
 * event's text is under the first of these that has any.
 */
export const wordKeys = ['content', 'reasoning_content', 'reasoning', 'arguments', 'input', 'refusal', 'text'] as const

const words = wordKeys.map((key) => Buffer.from(key))
const model = Buffer.from('model')

// What a key is: one of `wordKeys`, by its place there, or one of these, which are above.
const isOther = 9
const isModel = 10
/** Its value says more than the walk can tell, unless it is null. */
const isTelling = 11

const lf = 10
const space = 32
const quote = 34
const comma = 44
const colon = 58
const openBracket = 91
const backslash = 92
const closeBracket = 93
const nullStart = 110
const openBrace = 123
const closeBrace = 125

/**
 * What nearly every read of a stream is: one event in one line, with some text, the model's name, and nothing else to
 * be known of it. It is found in a single walk, which gives up at anything else. A search for each key takes as long in
 * a hot loop; but between two events of a stream the core has slept or served others, and has to fetch again whatever
 * is called, the runtime's own functions most of all.
 *
 * What it accepts is forwarded as the searches would have it, except where these are mistaken: in broken JSON, and
 * where a key has a quote in it.
 */
export class UsualEvent {
  /** Where the model's name stands, without its quotes. */
  modelStart = 0
  modelEnd = 0
  /** The length of the text. */
  wordBytes = 0

  /** Whether these bytes are such an event, which the fields then describe. */
  read(bytes: Uint8Array): boolean {
    const last = bytes.length - 3
    if (fourAt(bytes, 0) !== data || bytes[4] !== colon || bytes[5] !== space || bytes[6] !== openBrace) return false
    // The walk stays inside: no text goes on beyond a line end, and a backslash hides at most the brace before them.
    if (bytes[last] !== closeBrace || bytes[last + 1] !== lf || bytes[last + 2] !== lf) return false
    this.modelStart = 0
    let wordBytes = 0
    let wordKey = isOther
    let depth = 1
    let at = 7
    for (; depth > 0; at++) {
      const byte = bytes[at] ?? 0
      if (byte === quote) {
        const start = at + 1
        at = endOfText(bytes, start)
        if (at === -1) return false
        if (bytes[at + 1] !== colon) {
          if (isAfterValue(bytes[at + 1])) continue
          return false
        }
        const key = kindOf(bytes, start, at)
        at += bytes[at + 2] === space ? 2 : 1
        const value = bytes[at + 1]
        if (value !== quote) {
          if (key === isModel || (key === isTelling && value !== nullStart)) return false
          continue
        }
        const valueStart = at + 2
        at = endOfText(bytes, valueStart)
        if (at === -1 || key === isTelling || !isAfterValue(bytes[at + 1])) return false
        if (key === isModel) {
          if (depth > 1 || this.modelStart > 0) continue
          this.modelStart = valueStart
          this.modelEnd = at
        } else if (at > valueStart && key < isOther && key <= wordKey) {
          wordBytes = at - valueStart + (key === wordKey ? wordBytes : 0)
          wordKey = key
        }
      } else if (byte >= openBracket) {
        if (byte === openBrace || byte === openBracket) depth++
        else if (byte === closeBrace || byte === closeBracket) depth--
      } else if (byte < space || byte === colon) return false // behind its key a colon is passed over
    }
    this.wordBytes = wordBytes
    return at === last + 1 && wordBytes > 0 && this.modelStart > 0
  }
}

/** Where the text ends that starts here; -1 if there is a control character in it. */
function endOfText(bytes: Uint8Array, start: number): number {
  for (let at = start; ; at++) {
    const byte = bytes[at] ?? 0
    if (byte > backslash) continue
    if (byte === quote) return at
    if (byte === backslash) at++
    else if (byte < space) return -1
  }
}

function isAfterValue(byte: number | undefined): boolean {
  return byte === comma || byte === closeBrace || byte === closeBracket
}

/** The first four letters of a key, as one number. */
function four(key: string): number {
  return fourAt(Buffer.from(key), 0)
}

function fourAt(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0)
}

const data = four('data')
const argu = four('arguments')
const cont = four('content')
const erro = four('error')
const fini = four('finish_reason')
const inpu = four('input')
const mode = four('model')
const reas = four('reasoning')
const refu = four('refusal')
const text = four('text')
const tool = four('tool_calls')
const usag = four('usage')

function kindOf(bytes: Uint8Array, start: number, end: number): number {
  switch (fourAt(bytes, start)) {
    case cont:
      return wordAt(bytes, start, end, 0)
    case reas:
      return wordAt(bytes, start, end, 1) === isOther ? wordAt(bytes, start, end, 2) : 1
    case argu:
      return wordAt(bytes, start, end, 3)
    case inpu:
      return wordAt(bytes, start, end, 4)
    case refu:
      return wordAt(bytes, start, end, 5)
    case text:
      return wordAt(bytes, start, end, 6)
    case mode:
      return equalBytes(bytes, start, end, model) ? isModel : isOther
    // Other keys that begin like one of these only make the event go the careful way.
    case erro:
    case fini:
    case tool:
    case usag:
      return isTelling
    default:
      return isOther
  }
}

function wordAt(bytes: Uint8Array, start: number, end: number, key: number): number {
  const word = words[key]
  return word !== undefined && equalBytes(bytes, start, end, word) ? key : isOther
}
