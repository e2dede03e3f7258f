import { bearerOf } from '../bearer.ts'
import { type Fields, fieldsIn, isFields, parseFields, textIn } from '../fields.ts'
import type { Dialect, Opened } from '../serve.ts'
import type { Call } from '../protocol.ts'
import { CodedRefusal } from '../refusal.ts'
import { badKey, invalidParameter, modelNotFound, refusalsFor, requestIdFor, writeRefusal } from './errors.ts'

/** A request in Alibaba's own protocol: what to work on, and how. */
export type Native = { readonly input: Fields; readonly parameters: Fields }

export const nativeDialect: Dialect<CodedRefusal> = {
  readKey(request) {
    const key = bearerOf(request.headers)
    if (key === undefined) throw badKey('No API-key provided.')
    if (key === 'bad-key') throw badKey()
    return key
  },
  isRefusal: (error) => error instanceof CodedRefusal,
  writeRefusal: ({ request, text }, refusal) => writeRefusal(request, text, refusal),
  unknownModel: modelNotFound,
  wrongModel: () => invalidParameter('url error, please check url！'),
  refusalsFor,
}

export function openNative({ request, text }: Call): Opened<Native> {
  if (request.headers.get('x-dashscope-async') === 'enable') {
    throw new CodedRefusal(403, 'AccessDenied', 'current user api does not support asynchronous calls.')
  }
  const body = parseFields(text)
  if (!body) throw invalidParameter('Required body invalid, please check the request body format.')
  if (!isFields(body.input)) throw invalidParameter('Field required: input')
  return { model: textIn(body.model), body: { input: body.input, parameters: fieldsIn(body.parameters) } }
}

export function nativeHeaders({ text }: Call, contentType = 'application/json'): Record<string, string> {
  return { 'content-type': contentType, 'x-request-id': requestIdFor(text) }
}
