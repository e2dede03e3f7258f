import { type Fields, isFields, isGiven, textIn } from '../fields.ts'
import { invalid } from './errors.ts'

/** The vendor's checks of shapes, in the wording of its validator. A place is a path such as `messages.0.role`. */

export function fieldsAt(place: string, value: unknown): Fields {
  if (isFields(value)) return value
  throw invalid(place, value === undefined ? 'Field required' : 'Input should be a valid dictionary')
}

export function listAt(place: string, value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw invalid(place, value === undefined ? 'Field required' : 'Input should be a valid list')
}

export function textAt(place: string, value: unknown): string {
  if (typeof value === 'string') return value
  throw invalid(place, value === undefined ? 'Field required' : 'Input should be a valid string')
}

export function wholeAt(place: string, value: unknown, least: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    throw invalid(place, value === undefined ? 'Field required' : 'Input should be a valid integer')
  }
  if (value < least) throw invalid(place, `Input should be greater than or equal to ${least}`)
  return value
}

export function checkWithin(place: string, value: unknown, least: number, most: number): void {
  if (typeof value !== 'number') throw invalid(place, 'Input should be a valid number')
  if (value < least) throw invalid(place, `Input should be greater than or equal to ${least}`)
  if (value > most) throw invalid(place, `Input should be less than or equal to ${most}`)
}

export function checkFlag(place: string, value: unknown): void {
  if (isGiven(value) && typeof value !== 'boolean') throw invalid(place, 'Input should be a valid boolean')
}

export function checkOneOf(place: string, value: unknown, allowed: readonly string[]): void {
  if (typeof value === 'string' && allowed.includes(value)) return
  throw invalid(place, value === undefined ? 'Field required' : `Input should be ${spoken(allowed)}`)
}

export function checkTag(place: string, type: unknown, tags: readonly string[]): void {
  if (typeof type === 'string' && tags.includes(type)) return
  if (type === undefined) throw invalid(`${place}.type`, 'Field required')
  const list = tags.map((tag) => `'${tag}'`).join(', ')
  const message = `Input tag '${textIn(type)}' found using 'type' does not match any of the expected tags: ${list}`
  throw invalid(place, message)
}

/** The vendor refuses every field it does not know, so fields that a translation forgot to remove are noticed. */
export function checkExtras(place: string, fields: Fields, known: readonly string[]): void {
  for (const name of Object.keys(fields)) {
    if (!known.includes(name)) throw extra(place === '' ? name : `${place}.${name}`)
  }
}

export function extra(place: string): Error {
  return invalid(place, 'Extra inputs are not permitted')
}

export function checkPattern(place: string, value: unknown, pattern: RegExp): void {
  if (!pattern.test(textAt(place, value))) throw invalid(place, `String should match pattern '${pattern.source}'`)
}

function spoken(allowed: readonly string[]): string {
  const quoted = allowed.map((name) => `'${name}'`)
  return quoted.length === 1 ? quoted.join('') : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`
}
