import { badRequest } from './errors.ts'
import { afterSpaces, whyNotJson } from './json-fault.ts'

export type Json = string | number | boolean | null | readonly Json[] | JsonObject
export type JsonObject = { readonly [key: string]: Json | undefined }

export type JsonLimits = {
  /** How deep arrays and objects may nest: 10^6 brackets stall a parser for seconds. */
  readonly depthMax: number
  /** How many object keys a body may hold: a million of them stall the loop for over a second. */
  readonly keysMax: number
  /**
   * How many items its lists may hold in total; `keysMax` if absent. 32 MB of `0,` are 16 million items, in which a
   * schema takes a minute to find the mistake.
   */
  readonly itemsMax?: number
  /**
   * Whether half of a surrogate pair becomes U+FFFD. Clients that cut a text within an emoji send one, and while some
   * vendors read it that way, Anthropic and others refuse the whole request.
   */
  readonly replacesHalves?: boolean
}

// A double keeps 15 digits for sure; longer numbers, and exponents that may overflow, keep the client's own text.
const inexactNumber = /[\d.]{16}|[eE][+-]?\d{3}/

// Only as an escape can half of a pair be in a body at all: as bytes it is not UTF-8.
const surrogate = /\\u[dD][89a-fA-F]/

const inexactBodies = new WeakSet<object>()

/** Whether a number in this parsed body may have kept its own text. */
export function mayKeepNumbers(body: unknown): boolean {
  return isObject(body) && inexactBodies.has(body)
}

/** Parses a request body. The refusal of one that is not JSON says where it stops being so. */
export function parseBody(text: string, limits: JsonLimits): Json {
  try {
    return parseBounded(text, limits)
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown
    // From the end: whether megabytes of spaces have something behind them is seen there at once.
    throw text.trimEnd() === '' ? noBody() : notJson(text)
  }
}

/**
 * Parses a text within its limits, or throws. What we and the vendor might read differently is settled here: numbers
 * that a double cannot hold keep their own text, half of a surrogate pair is replaced where that is wanted, and an own
 * `__proto__` key is refused.
 */
export function parseBounded(text: string, limits: JsonLimits): Json {
  const { isExact } = scan(text, limits)
  const parsed = (isExact ? JSON.parse(text) : JSON.parse(text, reviveExactly)) as Json
  const body = limits.replacesHalves === true && surrogate.test(text) ? withWholeCharacters(parsed) : parsed
  if (!isExact && isObject(body)) inexactBodies.add(body)
  return body
}

function withWholeCharacters(value: Json): Json {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return value.map(withWholeCharacters)
  if (!isObject(value) || exact.isRawJSON(value)) return value
  const whole: Record<string, Json> = {}
  for (const name in value) whole[name.toWellFormed()] = withWholeCharacters(value[name] ?? null)
  return whole
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** In a body, null means that the field is absent. */
export function isGiven<T>(value: T): value is NonNullable<T> {
  return value !== null && value !== undefined
}

export function withoutNull<V>(object: Readonly<Record<string, V>>): Record<string, NonNullable<V>> {
  const kept: Record<string, NonNullable<V>> = {}
  for (const [name, value] of Object.entries(object)) if (isGiven(value)) kept[name] = value
  return kept
}

/** A copy of an object without some of its fields. */
export function without(object: JsonObject, fields: ReadonlySet<string>): JsonObject {
  const kept: Record<string, Json | undefined> = {}
  for (const [field, value] of Object.entries(object)) if (!fields.has(field)) kept[field] = value
  return kept
}

function noBody() {
  return badRequest('The request has no body: send one in JSON.', undefined, 'invalid_json')
}

function notJson(text: string) {
  const why = whyNotJson(text)
  const says = why === undefined ? '' : `: ${why}`
  return badRequest(`We could not parse the JSON body of your request${says}.`, undefined, 'invalid_json')
}

/** `JSON.rawJSON` and the reviver's third argument are in the runtime, not yet in the library types. */
const exact = JSON as unknown as {
  rawJSON(text: string): Json
  isRawJSON(value: unknown): value is { readonly rawJSON: string }
}

/** For fields that take fractions: turns a number that kept its own text into the nearest double. */
export function asDouble(value: Json | undefined): Json | undefined {
  return exact.isRawJSON(value) ? Number(value.rawJSON) : value
}

/** A copy of a value in which each number that kept its own text is 0, for a check that there is a number at all. */
export function withZeros(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withZeros)
  if (!isObject(value)) return value
  if (exact.isRawJSON(value)) return 0
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, withZeros(part)]))
}

/** The same text for equal values: no spaces, keys sorted. Numbers that kept their own text are written with it. */
export function canonical(value: Json): string {
  return JSON.stringify(value, (_key, part: Json) => {
    if (!isObject(part) || exact.isRawJSON(part)) return part
    return Object.fromEntries(Object.entries(part).toSorted(([one], [other]) => (one < other ? -1 : 1)))
  })
}

function reviveExactly(this: unknown, _key: string, value: Json, context?: { source?: string }): Json {
  if (typeof value !== 'number') return value
  const source = context?.source
  return source !== undefined && inexactNumber.test(source) && JSON.stringify(value) !== source
    ? exact.rawJSON(source)
    : value
}

const quote = 34
const plus = 43
const comma = 44
const minus = 45
const dot = 46
const zero = 48
const nine = 57
const colon = 58
const E = 69
const openBracket = 91
const backslash = 92
const closeBracket = 93
const underscore = 95
const e = 101
const openBrace = 123
const closeBrace = 125

/**
 * Checks depth, keys and list items in one pass over the text, before the parser sees it; strings are skipped by native
 * search. `isExact` tells whether a double can hold every number.
 */
function scan(text: string, { depthMax, keysMax, itemsMax = keysMax }: JsonLimits): { isExact: boolean } {
  const isList = [false]
  let depth = 0
  let keys = 0
  let items = 0
  let isExact = true
  let [stringStart, stringEnd] = [0, 0]
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < quote) {
      i = afterSpaces(text, i + 1) - 1
      continue
    }
    switch (code) {
      case quote:
        stringStart = i
        i = stringEnd = endOfString(text, i)
        break
      case openBracket:
      case openBrace:
        if (++depth > depthMax) throw tooMuch(`nests deeper than ${depthMax} levels`, 'body_too_deep')
        isList[depth] = code === openBracket
        break
      case closeBracket:
      case closeBrace:
        if (--depth < 0) throw new SyntaxError('a bracket closes that was not opened')
        break
      case comma:
        if (isList[depth] && ++items > itemsMax) throw tooManyItems(itemsMax)
        break
      case colon:
        if (++keys > keysMax) throw tooMuch(`holds more than ${keysMax} keys`, 'too_many_keys')
        if (isPrototype(text, stringStart + 1, stringEnd)) {
          throw badRequest('"__proto__" is not allowed as a key.', '__proto__', 'invalid_value')
        }
        break
      default: {
        if (code < zero || code > nine) break
        const end = endOfNumber(text, i)
        if (end - i > numberCharactersMax) throw tooMuch('holds a number of far too many digits', 'number_too_long')
        if (isExact) isExact = !isInexact(text, i, end)
        i = end - 1
      }
    }
  }
  // Fewer items are allowed here, because the parser takes ten times as long when it has to give each number's text.
  if (!isExact && items > keysMax) throw tooManyItems(keysMax)
  return { isExact }
}

function tooMuch(what: string, code: string) {
  return badRequest(`The body ${what}.`, undefined, code)
}

function tooManyItems(itemsMax: number) {
  return tooMuch(`holds more than ${itemsMax} list items`, 'too_many_items')
}

const prototypeKey = '__proto__'
/** Written as an escape, each of its characters takes six. */
const prototypeKeyMax = 6 * prototypeKey.length

/** Whether the text between a key's quotes spells `__proto__`, with or without escapes. */
function isPrototype(text: string, start: number, end: number): boolean {
  const length = end - start
  if (length < prototypeKey.length || length > prototypeKeyMax) return false
  // Looked at before the key is cut out: hardly any key of a request begins like this one.
  const first = text.charCodeAt(start)
  if (first !== underscore && first !== backslash) return false
  const key = text.slice(start, end)
  if (!key.includes('\\')) return key === prototypeKey
  try {
    return JSON.parse(`"${key}"`) === prototypeKey
  } catch {
    return false // not JSON, as the parser will report
  }
}

/** The first index after the number that begins at `start`; its characters are checked, its grammar is not. */
function endOfNumber(text: string, start: number): number {
  let end = start + 1
  while (isNumeric(text.charCodeAt(end))) end++
  return end
}

function isNumeric(code: number): boolean {
  return (code >= zero && code <= nine) || code === dot || code === e || code === E || code === plus || code === minus
}

/** No client means a longer run of digits as a number. */
const numberCharactersMax = 10_000
/** The shortest numbers that a double may not hold, such as `1e999`, have five characters. */
const exactCharacters = 4

function isInexact(text: string, start: number, end: number): boolean {
  return end - start > exactCharacters && inexactNumber.test(text.slice(start, end))
}

/** The index of the quote that closes the string opened at `start`, or the end of the text. */
function endOfString(text: string, start: number): number {
  let end = start
  for (;;) {
    end = text.indexOf('"', end + 1)
    if (end === -1) return text.length
    let first = end
    while (text.charCodeAt(first - 1) === backslash) first--
    if ((end - first) % 2 === 0) return end
  }
}
