/**
 * The simulator's tokenizer. From left to right it takes up to six ASCII letters or up to three digits, with the space
 * before them if there is one; otherwise a run of one repeated ASCII character; otherwise one code point. Every token
 * holds at least one byte, so a text never has more tokens than UTF-8 bytes, and the first n tokens of a text are also
 * the tokens of the text they form.
 */
export function tokenEnd(text: string, start: number): number {
  const length = text.length
  let at = start
  let code = text.charCodeAt(at)
  if (code === space && at + 1 < length) {
    const next = text.charCodeAt(at + 1)
    if (isLetter(next) || isDigit(next)) {
      at += 1
      code = next
    }
  }
  if (isLetter(code)) return runEnd(text, at, Math.min(length, at + lettersMax), isLetter)
  if (isDigit(code)) return runEnd(text, at, Math.min(length, at + digitsMax), isDigit)
  if (code < 128) return repeatEnd(text, at, code)
  const isPair = code >= 0xd800 && code < 0xdc00 && at + 1 < length && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00
  return at + (isPair ? 2 : 1)
}

const space = 32
const lettersMax = 6
const digitsMax = 3

function isLetter(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90)
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57
}

function runEnd(text: string, start: number, limit: number, belongs: (code: number) => boolean): number {
  let end = start + 1
  while (end < limit && belongs(text.charCodeAt(end))) end += 1
  return end
}

function repeatEnd(text: string, start: number, code: number): number {
  let end = start + 1
  while (end < text.length && text.charCodeAt(end) === code) end += 1
  // The last of several spaces belongs to the word after it.
  const leavesLast = code === space && end - start > 1 && end < text.length
  return leavesLast && (isLetter(text.charCodeAt(end)) || isDigit(text.charCodeAt(end))) ? end - 1 : end
}

/** The tokens of a text, at most `limit` of them. */
export function splitTokens(text: string, limit = Infinity): string[] {
  const tokens: string[] = []
  for (let at = 0; at < text.length && tokens.length < limit;) {
    const end = tokenEnd(text, at)
    tokens.push(text.slice(at, end))
    at = end
  }
  return tokens
}
