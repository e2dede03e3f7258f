import { type Fields, isGiven } from '../fields.ts'
import { invalidParameter } from '../dashscope/errors.ts'
import type { CodedRefusal } from '../refusal.ts'

/** A broken rule. Wan 2.5 refuses it at once; in later versions the running task fails. */
export const mismatch = invalidParameter

export function required(path: string): CodedRefusal {
  return mismatch(`Field required: ${path}`)
}

export function notOneOf(path: string, words: readonly string[]): CodedRefusal {
  const quoted = words.map((word) => (/^\d+$/.test(word) ? word : `'${word}'`))
  return mismatch(`Input should be ${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}: ${path}`)
}

export function optionalBoolean(parameters: Fields, name: string): boolean | undefined {
  const value = parameters[name]
  if (!isGiven(value)) return undefined
  if (typeof value === 'boolean') return value
  throw mismatch(`Input should be a valid boolean: parameters.${name}`)
}

/** A number in quotes is refused. */
export function optionalInteger(parameters: Fields, name: string, least: number, most: number): number | undefined {
  const value = parameters[name]
  if (!isGiven(value)) return undefined
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    throw mismatch(`Input should be a valid integer: parameters.${name}`)
  }
  if (value < least) throw mismatch(`Input should be greater than or equal to ${least}: parameters.${name}`)
  if (value > most) throw mismatch(`Input should be less than or equal to ${most}: parameters.${name}`)
  return value
}

/** One of the words, case-sensitive: `720p` is not `720P`. */
export function optionalWord(parameters: Fields, name: string, words: readonly string[]): string | undefined {
  const value = parameters[name]
  if (!isGiven(value)) return undefined
  if (typeof value === 'string' && words.includes(value)) return value
  throw notOneOf(`parameters.${name}`, words)
}
