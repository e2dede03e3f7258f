import { badRequest, type GatewayError } from '../../base/errors.ts'
import { isGiven, type Json, type JsonObject } from '../../base/json.ts'
import type { IsOwnLink } from '../../base/untrusted-url.ts'
import type { VideoAsk } from '../../capabilities/video.ts'
import { invalid, missing } from '../issues.ts'
import { isPublicLink } from '../public-link.ts'

/** A value, and where the client wrote it: a field, or a flag inside a field (`input.prompt --fps`). */
export type Given<T> = { readonly value: T; readonly at: string }

/** Whether a field says anything: an empty text or list does not. */
export function isNonEmpty(value: Json | undefined): boolean {
  return isGiven(value) && value !== '' && !(Array.isArray(value) && value.length === 0)
}

/** Finds every place where a request gives a value under this name. */
export type Places = (name: string) => Given<Exclude<Json, null>>[]

export function placesIn(
  written: readonly { readonly fields: JsonObject; readonly at: (name: string) => string }[],
): Places {
  return (name) =>
    written.flatMap(({ fields, at }) => {
      const value = fields[name]
      return isGiven(value) ? [{ value, at: at(name) }] : []
    })
}

/** The field in which the client gave a parameter. */
export function parameterAt({ parametersAt = {} }: Pick<VideoAsk, 'parametersAt'>, name: string): string {
  return (Object.hasOwn(parametersAt, name) ? parametersAt[name] : undefined) ?? `parameters.${name}`
}

/** An error about a value. The message names the flag where the value came from one; `param` is the field around it. */
export function refusal(message: string, at: string, code?: string): GatewayError {
  return badRequest(message, at.split(' --', 1)[0], code)
}

export function wrongType(at: string, expected: string): GatewayError {
  return refusal(`Invalid '${at}': expected ${expected}.`, at, 'invalid_type')
}

export function unsupported(at: string, why: string): GatewayError {
  return refusal(`Unsupported value: '${at}' ${why}`, at, 'unsupported_value')
}

export function notOneOf(at: string, value: Json, choices: readonly (string | number)[]): GatewayError {
  const shown = (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 40)
  return unsupported(at, `does not support '${shown}' with this model. Supported values are: ${choices.join(', ')}.`)
}

/** The one value that all places agree on. Billing follows it, so two different values are an error. */
export function agreed<T>(places: readonly Given<T>[]): Given<T> | undefined {
  const [first] = places
  if (first === undefined) return undefined
  const other = places.find(({ value }) => value !== first.value)
  if (other === undefined) return first
  const message = `'${other.at}' is ${String(other.value)}, but '${first.at}' is ${String(first.value)}.`
  throw refusal(message, other.at)
}

export function optionalText(fields: JsonObject, name: string, at: string): string {
  const value = fields[name]
  if (!isGiven(value)) return ''
  if (typeof value !== 'string') throw wrongType(`${at}.${name}`, 'a string')
  checkLength(value, `${at}.${name}`)
  return value
}

// OpenAI takes the longest prompts. Vendors repeat a prompt in every record of its task; a record with one of megabytes
// could not be read, and its video would be made and paid for without ever being delivered.
const charactersMax = 32_000

export function checkLength(text: string, at: string): void {
  if (text.length <= charactersMax) return
  const message = `Invalid '${at}': string too long. Expected at most ${charactersMax} characters, but got ${text.length}.`
  throw refusal(message, at, 'string_above_max_length')
}

export function requiredText(fields: JsonObject, name: string, at: string): string {
  const text = optionalText(fields, name, at)
  if (text.trim() === '') throw missing(`${at}.${name}`)
  return text
}

export function listOf(value: Json | undefined, at: string): readonly Json[] {
  if (!isGiven(value)) return []
  if (!Array.isArray(value)) throw wrongType(at, 'an array')
  // `isArray` loses the type of the elements.
  return value as readonly Json[]
}

const inlineForm = /^data:[\w.+/-]{1,64};base64,[A-Za-z0-9+/]+={0,2}$/

/** Vendors fetch URLs themselves. `inline` lists the kinds of `data:` URL that the vendor takes as well. */
export function readUrl(
  value: Json | undefined,
  at: string,
  isOwn: IsOwnLink,
  inline: readonly ('image' | 'audio')[] = [],
): string {
  if (!isGiven(value)) throw missing(at)
  if (typeof value !== 'string') throw wrongType(at, 'a string')
  const isInline = inline.some((kind) => value.startsWith(`data:${kind}/`))
  const isTaken = isInline ? inlineForm.test(value) : isPublicLink(value, 'https-and-http') || isOwn(value)
  if (isTaken) return value
  const choices = inline.map((kind) => `, or data:${kind}/… in base64`).join('')
  throw invalid(at, `expected a public http or https URL${choices}`)
}
