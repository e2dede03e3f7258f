/** What may come next, in the words of a message. */
const expectations = {
  value: 'a value',
  'first-item': 'a value or `]`',
  item: 'another value',
  'first-name': 'a name in double quotes or `}`',
  name: 'another name in double quotes',
  colon: 'a colon',
  'next-item': 'a comma or `]`',
  'next-member': 'a comma or `}`',
  end: 'nothing more',
} as const

type Wanted = keyof typeof expectations

type Fault = { readonly at: number; readonly says: (place: string) => string }

/**
 * Says where a text stops being JSON and what was expected there; undefined if it is JSON. The runtime's parser names
 * no place, so a text that it has refused is read again here, in one pass. Of the text, one character is shown at most.
 */
export function whyNotJson(text: string): string | undefined {
  const fault = faultIn(text)
  return fault?.says(placeOf(text, fault.at))
}

function faultIn(text: string): Fault | undefined {
  const around: Around = []
  let wanted: Wanted = 'value'
  let at = afterSpaces(text, 0)
  for (; at < text.length; at = afterSpaces(text, at)) {
    const follows: Wanted | undefined = afterSign(text.charAt(at), wanted, around)
    if (follows !== undefined) {
      wanted = follows
      at++
    } else if (text[at] === '"' && (takesValue(wanted) || takesName(wanted))) {
      const end = endOfText(text, at)
      if (typeof end !== 'number') return end
      wanted = takesName(wanted) ? 'colon' : afterValue(around)
      at = end
    } else {
      scalar.lastIndex = at
      if (!takesValue(wanted) || !scalar.test(text)) return unexpected(text, at, wanted)
      wanted = afterValue(around)
      at = scalar.lastIndex
    }
  }
  if (wanted === 'end') return undefined
  const missing = expectations[wanted]
  return { at, says: (place) => `it ends at ${place}, where ${missing} is expected` }
}

const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

/** The lists and objects that are open, from the outermost. */
type Around = ('list' | 'object')[]

/** Follows a bracket, a comma or a colon; undefined if the sign is none of these, or has no place here. */
function afterSign(sign: string, wanted: Wanted, around: Around): Wanted | undefined {
  switch (sign) {
    case '[':
      if (!takesValue(wanted)) return undefined
      around.push('list')
      return 'first-item'
    case '{':
      if (!takesValue(wanted)) return undefined
      around.push('object')
      return 'first-name'
    case ']':
      return wanted === 'first-item' || wanted === 'next-item' ? afterEnd(around) : undefined
    case '}':
      return wanted === 'first-name' || wanted === 'next-member' ? afterEnd(around) : undefined
    case ',':
      return wanted === 'next-item' ? 'item' : wanted === 'next-member' ? 'name' : undefined
    case ':':
      return wanted === 'colon' ? 'value' : undefined
    default:
      return undefined
  }
}

function afterEnd(around: Around): Wanted {
  around.pop()
  return afterValue(around)
}

function afterValue(around: Around): Wanted {
  const inside = around.at(-1)
  if (inside === undefined) return 'end'
  return inside === 'list' ? 'next-item' : 'next-member'
}

function takesValue(wanted: Wanted): boolean {
  return wanted === 'value' || wanted === 'first-item' || wanted === 'item'
}

function takesName(wanted: Wanted): boolean {
  return wanted === 'first-name' || wanted === 'name'
}

// What `isSpace` is not. Megabytes of spaces are searched three times as fast as they are looked at one by one.
const notSpace = /[^ \t\n\r]/g

/** The index after the spaces at `start`, if there are any. */
export function afterSpaces(text: string, start: number): number {
  if (!isSpace(text.charCodeAt(start))) return start
  notSpace.lastIndex = start
  return notSpace.test(text) ? notSpace.lastIndex - 1 : text.length
}

const tab = 9
const lineFeed = 10
const carriageReturn = 13
const space = 32
const quote = 34
const backslash = 92

function isSpace(code: number): boolean {
  return code === space || code === lineFeed || code === carriageReturn || code === tab
}

// By number: taking the characters out of the text takes several times as long, more than a second in 32 MB of escapes.
const shortEscapes = new Set(Buffer.from('"\\/bfnrt'))
const numberedEscape = 117 // u
const hexDigits = new Set(Buffer.from('0123456789abcdefABCDEF'))

/** Whether the backslash at `at` begins an escape such as `\u00e9`, of which a text that is cut off has only a part. */
function isNumberedEscape(text: string, at: number): boolean {
  if (text.charCodeAt(at + 1) !== numberedEscape) return false
  const end = Math.min(at + 6, text.length)
  for (let digit = at + 2; digit < end; digit++) if (!hexDigits.has(text.charCodeAt(digit))) return false
  return true
}

/** The index after the text in quotes that begins at `start`, or what is wrong with it. */
function endOfText(text: string, start: number): number | Fault {
  let at = start + 1
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (code === quote) return at + 1
    if (code < space) return bareControl(at, code)
    if (code !== backslash) at++
    else if (shortEscapes.has(text.charCodeAt(at + 1))) at += 2
    else if (isNumberedEscape(text, at)) at += 6
    else if (at + 1 === text.length) at++
    else return { at, says: (place) => `${place} has a backslash that begins no escape: write it as \\\\` }
  }
  return { at: start, says: (place) => `${place} begins a text that has no closing quote` }
}

function bareControl(at: number, code: number): Fault {
  const written = JSON.stringify(String.fromCodePoint(code)).slice(1, -1)
  return { at, says: (place) => `${place} has ${show(code)} inside a text: write it as ${written}` }
}

function unexpected(text: string, at: number, wanted: Wanted): Fault {
  const found = show(text.codePointAt(at) ?? 0)
  const advice = adviceOn(text.charAt(at), wanted)
  return { at, says: (place) => `${place} has ${found} where ${expectations[wanted]} is expected${advice}` }
}

/** For the mistakes that are made most, how to mend them. */
function adviceOn(found: string, wanted: Wanted): string {
  if (found === '\ufeff') return '; send the body without a byte order mark'
  if (found === '/') return '; JSON has no comments'
  if (/[\]}]/.test(found) && (wanted === 'item' || wanted === 'name')) return '; JSON has no comma after the last one'
  if (/['\u2018-\u201f]/.test(found)) return '; names and texts are in straight double quotes'
  const isWord = takesValue(wanted) && /[a-z]/i.test(found)
  return isWord ? '; the only words without quotes are true, false and null' : ''
}

/** A character that could break a log line, or look like another, is shown by its number. */
function show(code: number): string {
  if (code > space && code < 127) return `\`${String.fromCodePoint(code)}\``
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}

// Nobody looks for a line in more than this, and counting the lines of megabytes would stall everybody else.
const linesCountedMax = 1_000_000

/** Columns count characters from 1, an emoji as one. */
function placeOf(text: string, index: number): string {
  if (index > linesCountedMax) return `character ${index + 1}`
  let line = 1
  let column = 1
  for (let at = 0; at < index; at++) {
    const code = text.charCodeAt(at)
    if (code === lineFeed) {
      line++
      column = 1
    } else if (!isSecondHalf(code)) column++
  }
  return `line ${line}, column ${column}`
}

/** Whether this is the second half of a surrogate pair: bodies are UTF-8, so that no half stands alone. */
function isSecondHalf(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff
}
