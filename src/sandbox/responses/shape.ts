import { badRequest, missing, quotedList, unknownField, type VendorError } from '../chat/errors.ts'
import { type Fields, isFields, isGiven, shown } from '../fields.ts'

/** The vendor's wording for what is wrong with the shape of a field. */

function wrongType(param: string, expected: string, value: unknown): VendorError {
  const message = `Invalid type for '${param}': expected ${expected}, but got ${kindOf(value)} instead.`
  return badRequest(message, param, 'invalid_type')
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an object'
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal number'
  return `a ${typeof value}`
}

/** The vendor refuses every field it does not know, at every depth. */
export function checkKnown(fields: Fields, known: readonly string[], at = ''): void {
  const other = Object.keys(fields).find((name) => !known.includes(name))
  if (other !== undefined) throw unknownField(at === '' ? other : `${at}.${other}`)
}

export function fieldsAt(value: unknown, param: string): Fields {
  if (!isFields(value)) throw wrongType(param, 'an object', value)
  return value
}

export function listAt(value: unknown, param: string): readonly unknown[] {
  if (!Array.isArray(value)) throw wrongType(param, 'an array', value)
  return value
}

/** A required text. */
export function textAt(value: unknown, param: string, charactersMax = Infinity): string {
  if (!isGiven(value)) throw missing(param)
  if (typeof value !== 'string') throw wrongType(param, 'a string', value)
  if (value.length > charactersMax) {
    const message = `Invalid '${param}': string too long. Expected a string with maximum length ${charactersMax}, but got a string with length ${value.length} instead.`
    throw badRequest(message, param, 'string_above_max_length')
  }
  return value
}

const namePattern = /^[a-zA-Z0-9_-]+$/
const nameCharactersMax = 64

export function nameAt(value: unknown, param: string): string {
  const name = textAt(value, param, nameCharactersMax)
  if (namePattern.test(name)) return name
  const message = `Invalid '${param}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`
  throw badRequest(message, param, 'invalid_value')
}

export function checkText(value: unknown, param: string, charactersMax = Infinity): void {
  if (isGiven(value)) textAt(value, param, charactersMax)
}

export function checkSwitch(value: unknown, param: string): void {
  if (isGiven(value) && typeof value !== 'boolean') throw wrongType(param, 'a boolean', value)
}

export function checkOneOf(value: unknown, supported: readonly string[], param: string): void {
  if (typeof value === 'string' && supported.includes(value)) return
  const message = `Invalid value: '${shown(value)}'. Supported values are: ${quotedList(supported)}.`
  throw badRequest(message, param, 'invalid_value')
}

const pairsMax = 16

export function checkMetadata(metadata: unknown): void {
  if (!isGiven(metadata)) return
  const pairs = Object.entries(fieldsAt(metadata, 'metadata'))
  if (pairs.length > pairsMax) {
    const message = `Invalid 'metadata': too many properties. Expected an object with at most ${pairsMax} properties, but got an object with ${pairs.length} properties instead.`
    throw badRequest(message, 'metadata', 'object_above_max_properties')
  }
  for (const [name, value] of pairs) {
    textAt(name, 'metadata', 64)
    textAt(value, `metadata.${name}`, 512)
  }
}
