import { pick, type Seeded } from './seeded.ts'

const openings = [
  'Happy to help with',
  'Good question about',
  'Here is a short answer to',
  'Thank you for asking about',
  'Let us look at',
] as const

// prettier-ignore
const words = [
  'the', 'road', 'opens', 'early', 'and', 'every', 'gate', 'keeps', 'a', 'small', 'lamp', 'for', 'those', 'who', 'pass',
  'while', 'quiet', 'rivers', 'carry', 'light', 'over', 'stones', 'toward', 'green', 'fields', 'where', 'birds', 'rest',
  'then', 'clouds', 'drift', 'above', 'old', 'towns', 'with', 'warm', 'bread', 'on', 'wooden', 'tables', 'some',
  'paths', 'turn', 'north', 'others', 'follow', 'water', 'until', 'night', 'brings', 'stars', 'near', 'as', 'simple',
  'songs', 'travel', 'far', 'beyond', 'hills', 'to', 'meet', 'morning', 'again',
] as const

/** Combining marks, surrogate pairs, joiners and flags, which break when a text is cut in the wrong place. */
const unicodeWords = ['naïve', 'e\u0301te\u0301', '你好世界', '日本語', '🚀', '👩‍👩‍👧', '🇪🇺', 'Ω≈ç', 'नमस्ते', 'ก็'] as const

export type ProseOptions = {
  random: Seeded
  quoted: string
  wordsMin: number
  unicode: boolean
}

/** A friendly text of whole sentences that quotes the user and has at least `wordsMin` generated words. */
export function writeProse({ random, quoted, wordsMin, unicode }: ProseOptions): string {
  let text = quoted === '' ? 'Hello, traveller.' : `${pick(random, openings)} "${quoted}".`
  for (let count = 0; count < wordsMin;) {
    const length = 5 + Math.floor(random() * 6)
    for (let index = 0; index < length; index += 1) {
      const word = unicode && index % 2 === 1 ? pick(random, unicodeWords) : pick(random, words)
      text += index === 0 ? ` ${word.charAt(0).toUpperCase()}${word.slice(1)}` : ` ${word}`
    }
    text += '.'
    count += length
  }
  return text
}

/** The beginning of a text on one line, never cut inside a character. */
export function shorten(text: string): string {
  const line = text.slice(0, 1_000).replaceAll(/\s+/g, ' ').trim().toWellFormed()
  const start = firstCharacters.exec(line)?.[0] ?? ''
  return start.length === line.length ? line : `${start.trimEnd()}...`
}

const firstCharacters = /^.{0,48}/u
