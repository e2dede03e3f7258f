/** The words in a prompt that make the simulator misbehave on purpose. `sandbox.ts` lists what each does. */
export type Steering = {
  has(word: Switch): boolean
  /** The value as it was written. */
  text(word: Setting): string | undefined
  /** The value as a whole number, clamped to the word's bounds; undefined if it is not a number. */
  number(word: Setting): number | undefined
  /** The steering words alone, from which the same steering can be read again. */
  words(): string
}

type Switch =
  | 'nousage'
  | 'html'
  | 'error200'
  | 'zero'
  | 'dated'
  | 'inline-usage'
  | 'crlf'
  | 'endless'
  | 'malformed'
  | 'midstream-error'
  | 'headers'
  | 'gzip'
  | 'unicode'
  | 'leak'
  | 'redacted'
  | 'refusal'
  | 'pause'
  | 'no-events'
  | 'start-usage'
  | 'double-start'
  | 'blocked'
  | 'error-array'
  | 'expired'
  | 'lost'
  | 'vanish'
  | 'stuck'
  | 'expire'
  | 'no-video'
  | 'no-callback'
  | 'double-callback'

/** The bounds keep a stray prompt from tying up the simulator: ten minutes, a million tokens, 256 MB. */
const settings = {
  fail: [0, 0],
  tool: [0, 0],
  finish: [0, 0],
  'odd-state': [0, 0],
  'fail-image': [1, 100],
  status: [200, 599],
  delay: [0, 600_000],
  pace: [0, 600_000],
  queued: [0, 600_000],
  slow: [0, 600_000],
  seconds: [1, 600],
  'poll-status': [400, 599],
  'file-status': [400, 599],
  cut: [0, 1_000_000],
  eof: [0, 1_000_000],
  tokens: [0, 1_000_000],
  'charge-then-fail': [400, 599],
  usage: [-1_000_000_000, 1_000_000_000],
  drip: [1, 1_000_000],
  big: [1, 256_000_000],
} as const satisfies Record<string, readonly [least: number, most: number]>

type Setting = keyof typeof settings

const pattern = /sandbox:([a-z0-9]+(?:-[a-z0-9]+)*)(?:=([\w.:-]*\w))?/g

const unsteered: Steering = { has: () => false, text: () => undefined, number: () => undefined, words: () => '' }

/** Reads the steering words of all texts. Where a word occurs more than once, the last occurrence wins. */
export function readSteering(...texts: readonly string[]): Steering {
  if (!texts.some((text) => text.includes('sandbox:'))) return unsteered
  const found = new Map<string, string>()
  for (const text of texts) for (const [, word = '', value = ''] of text.matchAll(pattern)) found.set(word, value)
  return {
    has: (word) => found.has(word),
    text: (word) => found.get(word) || undefined,
    number(word) {
      const value = found.get(word)
      if (value === undefined || !/^-?\d{1,12}$/.test(value)) return undefined
      const [least, most] = settings[word]
      return Math.min(most, Math.max(least, Number(value)))
    },
    words: () => [...found].map(([word, value]) => `sandbox:${word}${value === '' ? '' : `=${value}`}`).join(' '),
  }
}

/** The text without its steering words: what the answer quotes and what tools are matched against. */
export function withoutSteering(text: string): string {
  return text.includes('sandbox:') ? text.replaceAll(pattern, '') : text
}

/**
 * The request's text as this vendor sees it. `sandbox:only=VENDOR` hides all steering words from every other vendor.
 */
export function readBy(vendor: string, text: string): string {
  if (!text.includes('sandbox:only=')) return text
  const [, addressed] = /sandbox:only=([\w-]+)/.exec(text) ?? []
  return addressed === vendor ? text : withoutSteering(text)
}
