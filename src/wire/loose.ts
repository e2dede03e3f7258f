import { isObject, parseBounded, type Json, type JsonObject } from '../base/json.ts'

/** Parses what a vendor sent, without trust: text that is not valid JSON reads as absent. */
export function parseLoosely(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

// Far above any real answer. Tighter limits would protect nothing: an attacker who controls a vendor's answers has
// other means to do harm.
const exactLimits = { depthMax: 512, keysMax: 1_000_000 }

/** Like `parseLoosely`, for JSON with a tool's input: numbers that a double cannot hold keep their own text. */
export function parseExactly(text: string): Json | undefined {
  try {
    return parseBounded(text, exactLimits)
  } catch {
    return parseLoosely(text)
  }
}

// Bounds like those of a body: a text is not scanned with the body that it came in, and what nests far deeper stops the
// gateway for seconds.
const writtenLimits = { depthMax: 512, keysMax: 100_000, replacesHalves: true }

/** The object that a text spells, such as a call's arguments or a tool's result; undefined if it spells none. */
export function objectWrittenIn(text: string): JsonObject | undefined {
  try {
    const parsed = parseBounded(text, writtenLimits)
    return isObject(parsed) ? parsed : undefined
  } catch {
    return undefined
  }
}

/** A call's arguments as the object that vendors require. Arguments that the model broke off are kept as text. */
export function argumentsIn(text: string): JsonObject {
  if (text.trim() === '') return {}
  return objectWrittenIn(text) ?? { unparsed_arguments: text }
}

/** Whether a call's arguments are complete: a complete object takes no more text. */
export function isWholeObject(text: string): boolean {
  return text.trimEnd().endsWith('}') && isObject(parseLoosely(text))
}

export function objectIn(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {}
}

export function itemsIn(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : []
}

export function objectsIn(value: Json | undefined): readonly JsonObject[] {
  return itemsIn(value).filter(isObject)
}

/** Like `objectsIn`, with each object's index in the list, for errors that name it to the client. */
export function placedObjectsIn(value: Json | undefined): readonly (readonly [index: number, item: JsonObject])[] {
  const placed: [number, JsonObject][] = []
  itemsIn(value).forEach((item, index) => {
    if (isObject(item)) placed.push([index, item])
  })
  return placed
}

export function textIn(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

// More than any model can produce, and small enough that the sum of millions of counts is still an exact integer. A
// server that counts wrong does so every time, and a sum beyond the exact integers would break every report.
const countMax = 1_000_000_000

/** Vendors have sent negative, fractional and absurdly large counts; a count is an integer from 0 to `countMax`. */
export function countIn(value: Json | undefined): number {
  return typeof value === 'number' && value > 0 ? Math.min(Math.floor(value), countMax) : 0
}
