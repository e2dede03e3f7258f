import type { GatewayError, ErrorKind } from '../../base/errors.ts'
import type { RequestId } from '../../base/ids.ts'
import type { WireError } from '../../capabilities/errors.ts'
import { errorHeaders } from '../error-headers.ts'
import { isTooLong, contextLengthCode } from '../too-long.ts'

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

export function writeError(error: GatewayError, requestId: RequestId): WireError {
  const { refusal } = error.details
  // A body that a vendor wrote in this protocol passes unchanged, because tools match the wording.
  const status = refusal?.status ?? rows[error.kind][0]
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
