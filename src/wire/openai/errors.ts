import { GatewayError, refusedInside, type ErrorKind } from '../../base/errors.ts'
import type { RequestId } from '../../base/ids.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import type { WireError } from '../../capabilities/errors.ts'
import { errorHeaders } from '../error-headers.ts'
import { countIn, objectIn, objectsIn, parseLoosely, textIn } from '../loose.ts'
import { contextLengthCode, isTooLong, saysTooLong } from '../too-long.ts'

/** Shape B of the specification. A new kind does not compile until it has a row here. */
const rows = {
  'bad-request': [400, 'invalid_request_error', 'invalid_value'],
  unauthenticated: [401, 'invalid_request_error', 'invalid_api_key'],
  'no-funds': [402, 'insufficient_balance', 'insufficient_balance'],
  'unknown-model': [404, 'invalid_request_error', 'model_not_found'],
  'wrong-capability': [400, 'invalid_request_error', 'endpoint_model_mismatch'],
  'not-found': [404, 'invalid_request_error', 'unknown_url'],
  'wrong-method': [405, 'invalid_request_error', 'method_not_supported'],
  'wrong-type': [415, 'invalid_request_error', 'unsupported_content_type'],
  conflict: [409, 'conflict_error', 'idempotency_in_progress'],
  'idempotency-mismatch': [422, 'conflict_error', 'idempotency_mismatch'],
  'too-many': [429, 'rate_limit_error', 'rate_limit_exceeded'],
  'too-large': [413, 'invalid_request_error', 'request_too_large'],
  'too-many-headers': [431, 'invalid_request_error', 'too_many_headers'],
  'upstream-rejected': [400, 'invalid_request_error', 'invalid_value'],
  'upstream-failed': [502, 'upstream_error', 'upstream_failed'],
  'upstream-timeout': [504, 'upstream_error', 'upstream_timeout'],
  overloaded: [503, 'overloaded_error', 'overloaded'],
  'client-gone': [499, 'invalid_request_error', 'client_gone'],
  bug: [500, 'server_error', 'internal_error'],
} as const satisfies Record<ErrorKind, readonly [status: number, type: string, code: string]>

/** The status of an error: the vendor's own if the vendor refused. */
export function httpStatusOf({ kind, details }: GatewayError): number {
  return details.refusal?.status ?? rows[kind][0]
}

export function writeError(error: GatewayError, requestId: RequestId): WireError {
  const { refusal } = error.details
  // A body that a vendor wrote in this protocol passes unchanged, because tools match the wording.
  const status = httpStatusOf(error)
  const body = refusal?.protocol === 'openai' ? refusal.body : JSON.stringify(shape(error))
  return { status, headers: errorHeaders(error, requestId, status), body }
}

/** An error after the first byte: an event that official clients throw on, with no `[DONE]` after it. */
export function writeStreamError(error: GatewayError): Uint8Array {
  return new TextEncoder().encode(`data: ${JSON.stringify(shape(error))}\n\n`)
}

/** On edits and speech the specification's 402 has a message and no other field. */
export function writeErrorWithPlain402(error: GatewayError, requestId: RequestId): WireError {
  const written = writeError(error, requestId)
  if (error.kind !== 'no-funds') return written
  return { ...written, body: JSON.stringify({ error: { message: error.message } }) }
}

// LiteLLM recognises a conversation that is too long by words of OpenAI's, and does not read the code.
const wordsOfLength = "This model's maximum context length is exceeded"

function shape(error: GatewayError) {
  return { error: errorObject(error) }
}

export function errorObject(error: GatewayError) {
  const { message } = error
  const { param, code: finer, refusal } = error.details
  const [, type, code] = rows[refusal?.status === rows['too-large'][0] ? 'too-large' : error.kind]
  const isLong = isTooLong(error)
  const isForeign = refusal !== undefined && refusal.protocol !== 'openai'
  return {
    message: isLong && isForeign ? `${wordsOfLength}: ${message}` : message,
    type,
    param: param ?? null,
    code: isLong ? contextLengthCode : (finer ?? code),
  }
}

/**
 * The failure that an answer or a chunk of it tells of, if it does. OpenRouter puts the failure of a model's host into
 * each choice, beside an empty message.
 */
export function failureOf(json: JsonObject): GatewayError | undefined {
  const told = failureIn(json)
  if (told !== undefined) return told
  const failures = objectsIn(json['choices']).map(failureIn)
  return failures.every((each) => each !== undefined) ? failures[0] : undefined
}

/**
 * The error in place of an answer, if there is one; xAI and others send a string instead of an object, hosts of vLLM
 * the object itself, and MiniMax a number of its own, which is zero beside an answer.
 */
export function failureIn(json: JsonObject): GatewayError | undefined {
  const { error, code, object, base_resp: base } = json
  if (isObject(error)) return readFailure(error)
  if (object === 'error') return readFailure(json)
  if (countIn(objectIn(base)['status_code']) > 0) return refusedInside({ status: 200, body: JSON.stringify(json) })
  return textIn(error) === '' ? undefined : readFailure({ message: error, code })
}

/** An event named `error` is a failure, whatever it holds. */
export function namedFailure(text: string): GatewayError {
  const json = parseLoosely(text)
  return isObject(json) ? (failureIn(json) ?? readFailure(json)) : readFailure({ message: text })
}

/**
 * The codes by which vendors report a rate limit, missing funds, a bad credential, overload, and whose fault it is.
 * What a filter holds back is the request's fault: counted as the vendor's, a customer's words would set a channel
 * aside.
 */
const statuses: readonly (readonly [RegExp, status: number])[] = [
  [
    /rate_?limit|limit_requests|throttling|too_?many_?requests|quota|credit_balance|billing_hard_limit|billing_not_active|access_terminated|arrearage|overdue|\b1113\b/i,
    429,
  ],
  [/invalid_api_key|authentication_error/, 401],
  [/overloaded|slow_down|unavailable/i, 503],
  [/server_error|internal_?(?:server_?|service_?)?error/i, 500],
  [
    /context_length|invalid_?request|content_?(?:policy|filter)|moderation_blocked|inspection|sensitive|user_error/i,
    400,
  ],
]

/** Reads an error object that came in place of an answer. Where no code tells whose fault it is, its text passes on. */
export function readFailure(error: JsonObject): GatewayError {
  const message = textIn(error['message']) || "The model's vendor reported an error."
  // LM Studio streams this error without a code, and clients have to learn of it as a refusal.
  const status = statusOf(error) ?? (saysTooLong(message) ? 400 : undefined)
  if (status === undefined) return new GatewayError('upstream-failed', message)
  return refusedInside({ status, body: JSON.stringify({ error }) }, message)
}

/** OpenRouter and others put the HTTP status itself into `code`. */
function statusOf({ code, type }: JsonObject): number | undefined {
  if (typeof code === 'number' && code >= 400 && code < 600) return code
  const words = [code, type].filter((word) => typeof word === 'string').join(' ')
  return statuses.find(([said]) => said.test(words))?.[1]
}
