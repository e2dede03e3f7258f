import { isObject, parseBody, type Json, type JsonObject } from '../base/json.ts'

/** What a vendor sent, read without trust: whatever is not what it should be reads as absent. */
export function parseLoosely(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

// Whoever can make a vendor answer with more than this has other means.
const exactLimits = { depthMax: 512, keysMax: 1_000_000 }

/** The same for what holds a tool's input: numbers that a double cannot hold keep their own text. */
export function parseExactly(text: string): Json | undefined {
  try {
    return parseBody(text, exactLimits)
  } catch {
    return parseLoosely(text)
  }
}

/** A call's arguments as the object that vendors want. What a model broke off, or never closed, is kept as text. */
export function argumentsIn(text: string): JsonObject {
  if (text.trim() === '') return {}
  const parsed = parseExactly(text)
  return isObject(parsed) ? parsed : { unparsed_arguments: text }
}

/** Whether a call's arguments are all there: a complete object takes no more text. */
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

/** The same with the place of each in the list, for whoever names it to the client. */
export function placedObjectsIn(value: Json | undefined): readonly (readonly [index: number, item: JsonObject])[] {
  return itemsIn(value).flatMap((item, index) => (isObject(item) ? [[index, item] as const] : []))
}

export function textIn(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

// More than any model can have made, and little enough that millions of them still add up to a whole number: a server that
// counts wrong does so every time, and a sum that is none cannot be read by any report.
const countMax = 1_000_000_000

/** Vendors have sent negative, fractional and absurd counts; a count is a whole number from zero up. */
export function countIn(value: Json | undefined): number {
  return typeof value === 'number' && value > 0 ? Math.min(Math.floor(value), countMax) : 0
}
