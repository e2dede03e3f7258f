import { badRequest } from './errors.ts'

export type Json = string | number | boolean | null | readonly Json[] | JsonObject
export type JsonObject = { readonly [key: string]: Json | undefined }

export type JsonLimits = {
  /** How deep arrays and objects may nest: 10^6 brackets stall a parser for seconds. */
  readonly depthMax: number
  /** How many object keys a body may hold: a million of them stall the loop for over a second. */
  readonly keysMax: number
}

// A double keeps 15 digits for sure; longer numbers, and exponents that may overflow, are kept as the client wrote them.
const inexactNumber = /[\d.]{16}|[eE][+-]?\d{3}/
const suspectKey = /__proto__|\\u/

/**
 * A request body from text to value. What would be read one way by us and another way by the vendor is settled here:
 * numbers a double cannot hold keep their own text, and an own `__proto__` key is refused.
 */
export function parseBody(text: string, limits: JsonLimits): Json {
  scan(text, limits)
  try {
    if (suspectKey.test(text) || inexactNumber.test(text)) return JSON.parse(text, reviveExactly) as Json
    return JSON.parse(text) as Json
  } catch (thrown) {
    if (thrown instanceof SyntaxError) throw notJson()
    throw thrown
  }
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function notJson() {
  return badRequest('We could not parse the JSON body of your request.', undefined, 'invalid_json')
}

/** `JSON.rawJSON` and the reviver's third argument are in the runtime, not yet in the library types. */
const exact = JSON as unknown as {
  rawJSON(text: string): Json
  isRawJSON(value: unknown): value is { readonly rawJSON: string }
}

/** For fields that take a fraction: a number that kept its own text, as the double nearest to it. */
export function asDouble(value: Json | undefined): Json | undefined {
  return exact.isRawJSON(value) ? Number(value.rawJSON) : value
}

function reviveExactly(this: unknown, key: string, value: Json, context?: { source?: string }): Json {
  if (key === '__proto__') throw badRequest('"__proto__" is not allowed as a key.', '__proto__', 'invalid_value')
  if (typeof value !== 'number') return value
  const source = context?.source
  return source !== undefined && inexactNumber.test(source) && JSON.stringify(value) !== source
    ? exact.rawJSON(source)
    : value
}

const quote = 34
const backslash = 92
const colon = 58
const openBracket = 91
const closeBracket = 93
const openBrace = 123
const closeBrace = 125

/** Depth and key count in one pass over the text, before the parser sees it. Strings are skipped by native search. */
function scan(text: string, limits: JsonLimits): void {
  let depth = 0
  let keys = 0
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case quote:
        i = endOfString(text, i)
        break
      case openBracket:
      case openBrace:
        if (++depth > limits.depthMax) {
          throw badRequest(`The body nests deeper than ${limits.depthMax} levels.`, undefined, 'body_too_deep')
        }
        break
      case closeBracket:
      case closeBrace:
        depth--
        break
      case colon:
        if (++keys > limits.keysMax) {
          throw badRequest(`The body holds more than ${limits.keysMax} keys.`, undefined, 'too_many_keys')
        }
        break
    }
  }
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
