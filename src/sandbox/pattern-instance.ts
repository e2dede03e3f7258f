/** Thrown for what a text cannot be built from: references to groups, and looking ahead or behind. */
class Unbuildable extends Error {}
class TooLong extends Unbuildable {}

// Tried first, because they read well. They are short, so that even a pattern with catastrophic backtracking ends soon.
const words =
  'a A 1 road Road ROAD AB ABC 12 123 1234 12345 123456 ab12 AB-12 ABC-123 a_b a-b #00ff00 +15550100 555-0100 2026-01-02 03:04 1.5 a@b.co 1.2.3 /road'.split(
    ' ',
  )

// A longer pattern would take seconds to read, or be nested too deeply.
const patternCharactersMax = 2_000
// A pattern such as `(a{999}){999}` would otherwise make megabytes.
const charactersMax = 10_000
const repetitionsMax = 1_000

/** A text of that length that the pattern matches; undefined where the pattern is invalid or too intricate. */
export function patternInstance(pattern: string, least: number, most: number): string | undefined {
  const isFitting = (text: string): boolean => text.length >= least && text.length <= most
  try {
    const wanted = compile(pattern)
    const word = words.find((text) => isFitting(text) && wanted.test(text))
    if (word !== undefined || pattern.length > patternCharactersMax) return word
    const text = build(pattern, repetitionsFor(pattern, least))
    if (isFitting(text)) return text
  } catch (error) {
    if (!(error instanceof Unbuildable || error instanceof SyntaxError)) throw error
  }
  return undefined
}

/** How often that which may be repeated has to be, so that the text is long enough: texts only grow with it. */
function repetitionsFor(pattern: string, least: number): number {
  let [low, high] = [0, Math.min(least, repetitionsMax)]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (isLongEnough(pattern, middle, least)) high = middle
    else low = middle + 1
  }
  return low
}

function isLongEnough(pattern: string, more: number, least: number): boolean {
  try {
    return build(pattern, more).length >= least
  } catch (error) {
    if (error instanceof TooLong) return true
    throw error
  }
}

/** Many patterns escape characters that need no escape, which only the older mode allows. */
function compile(pattern: string): RegExp {
  try {
    return new RegExp(pattern, 'u')
  } catch {
    return new RegExp(pattern)
  }
}

/** A text that the pattern matches, in which everything optional occurs `more` times. */
function build(pattern: string, more: number): string {
  let at = 0

  function union(): string {
    const first = sequence()
    while (pattern[at] === '|') {
      at += 1
      sequence()
    }
    return first
  }

  function sequence(): string {
    let text = ''
    while (at < pattern.length && pattern[at] !== '|' && pattern[at] !== ')') {
      const part = atom()
      const times = repetitions()
      if (text.length + part.length * times > charactersMax) throw new TooLong()
      text += part.repeat(times)
    }
    return text
  }

  function atom(): string {
    const [source = ''] = /^(?:\[(?:\\.|[^\]\\])*\]|\\[pP]\{[^}]*\}|\\.|[^])/u.exec(pattern.slice(at)) ?? []
    at += source.length
    if (source === '(') return group()
    if (source === '^' || source === '$' || source === '\\b') return ''
    if (/^\\[1-9kxuc]/.test(source)) throw new Unbuildable()
    return source.length === 1 && source !== '.' ? source : characterOf(source)
  }

  function group(): string {
    const [opening = ''] = /^\?(?::|<\w+>)/.exec(pattern.slice(at)) ?? []
    at += opening.length
    if (pattern[at] === '?') throw new Unbuildable()
    const text = union()
    at += 1
    return text
  }

  /** How often the part before is repeated. A trailing `?` only makes the repetition lazy. */
  function repetitions(): number {
    const found = /^(?:([*+?])|\{(\d+)(,(\d*))?\})\??/.exec(pattern.slice(at))
    if (found === null) return 1
    at += found[0].length
    const [, sign, low, open, high] = found
    const least = low === undefined ? (sign === '+' ? 1 : 0) : Number(low)
    const bounded = high === undefined || high === '' ? Infinity : Number(high)
    const most = sign === '?' ? 1 : low !== undefined && open === undefined ? least : bounded
    return Math.min(most, least + more, charactersMax)
  }

  return union()
}

const probes = Array.from(
  'aA1bB2-_ .,:;/@#+=%&!?\'"()[]{}<>*|~^$\\`cdefghijklmnopqrstuvwxyzCDEFGHIJKLMNOPQRSTUVWXYZ03456789\n\té中',
)

/** A character that matches a class, an escape or the dot. */
function characterOf(source: string): string {
  const one = compile(`^${source}$`)
  const found = probes.find((character) => one.test(character))
  if (found === undefined) throw new Unbuildable()
  return found
}
