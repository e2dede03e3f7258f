import { readBody, readKey } from '../chat/read-call.ts'
import { badRequest, missing, modelNotFound, quotedList, VendorError, writeError } from '../chat/errors.ts'
import { refusalsFor } from '../chat/faults.ts'
import { type Fields, isGiven, shown, textIn } from '../fields.ts'
import type { Call } from '../protocol.ts'
import { hashText, seededId } from '../seeded.ts'
import { splitTokens } from '../tokens.ts'
import type { Dialect, Opened } from '../serve.ts'

/** The dialect of OpenAI's protocol, which most vendors share. */
export const commonDialect: Dialect<VendorError> = {
  readKey,
  isRefusal: (error) => error instanceof VendorError,
  writeRefusal: (call, refusal) => writeError(call.vendor, refusal, call.text),
  unknownModel: modelNotFound,
  wrongModel: (model) =>
    badRequest(`The model '${model}' is not supported on this endpoint.`, 'model', 'invalid_value'),
  refusalsFor,
}

export function openJson({ text }: Call): Opened<Fields> {
  const body = readBody(text)
  return { model: textIn(body.model), body }
}

export function commonHeaders(call: Pick<Call, 'text'>, contentType?: string): Record<string, string> {
  return headersFor(seededId('req_', hashText(call.text)), contentType)
}

export function headersFor(requestId: string, contentType = 'application/json'): Record<string, string> {
  return { 'content-type': contentType, 'x-request-id': requestId, 'openai-version': '2020-10-01' }
}

/** The headers of a stream of events. */
export function eventHeadersFor(requestId: string): Record<string, string> {
  return { ...headersFor(requestId, 'text/event-stream; charset=utf-8'), 'cache-control': 'no-cache' }
}

export const countTokens = (text: string): number => splitTokens(text).length

/** The text of a required field. */
export function requiredText(body: Fields, name: string, charactersMax: number): string {
  const text = body[name]
  if (!isGiven(text)) throw missing(name)
  if (typeof text !== 'string') {
    throw badRequest(`Invalid type for '${name}': expected a string.`, name, 'invalid_type')
  }
  if (text === '') {
    const message = `Invalid '${name}': empty string. Expected a string with minimum length 1, but got an empty string instead.`
    throw badRequest(message, name, 'empty_string')
  }
  const { length } = Array.from(text)
  if (length > charactersMax) {
    const message = `Invalid '${name}': string too long. Expected a string with maximum length ${charactersMax}, but got a string with length ${length} instead.`
    throw badRequest(message, name, 'string_above_max_length')
  }
  return text
}

/** One of the values that the vendor lists; the first is the default. */
export function oneOf<Word extends string>(body: Fields, name: string, words: readonly [Word, ...Word[]]): Word {
  const given = body[name] ?? words[0]
  const found = words.find((word) => word === given)
  if (found !== undefined) return found
  const message = `Invalid value: '${shown(given)}'. Supported values are: ${quotedList(words)}.`
  throw badRequest(message, name, 'invalid_value')
}
