import { GatewayError, refusedInside, type ErrorKind } from '../../base/errors.ts'
import type { RequestId } from '../../base/ids.ts'
import type { JsonObject } from '../../base/json.ts'
import type { WireError } from '../../capabilities/errors.ts'
import { errorHeaders } from '../error-headers.ts'
import { textIn } from '../loose.ts'
import { isTooLong } from '../too-long.ts'

/** Errors as the messages protocol shows them. A new kind does not compile until it has a row here. */
const rows = {
  'bad-request': [400, 'invalid_request_error'],
  unauthenticated: [401, 'authentication_error'],
  'no-funds': [402, 'billing_error'],
  'unknown-model': [404, 'not_found_error'],
  'wrong-capability': [400, 'invalid_request_error'],
  'not-found': [404, 'not_found_error'],
  'wrong-method': [405, 'invalid_request_error'],
  'wrong-type': [415, 'invalid_request_error'],
  conflict: [409, 'invalid_request_error'],
  'idempotency-mismatch': [422, 'invalid_request_error'],
  'too-many': [429, 'rate_limit_error'],
  'too-large': [413, 'request_too_large'],
  'too-many-headers': [431, 'invalid_request_error'],
  'upstream-rejected': [400, 'invalid_request_error'],
  'upstream-failed': [502, 'api_error'],
  'upstream-timeout': [504, 'api_error'],
  overloaded: [503, 'overloaded_error'],
  'client-gone': [499, 'invalid_request_error'],
  bug: [500, 'api_error'],
} as const satisfies Record<ErrorKind, readonly [status: number, type: string]>

export function writeError(error: GatewayError, requestId: RequestId): WireError {
  const { refusal } = error.details
  // A body that a vendor wrote in this protocol passes unchanged: its command-line tool matches the wording.
  const status = refusal?.status ?? rows[error.kind][0]
  const body =
    refusal?.protocol === 'anthropic' ? refusal.body : JSON.stringify({ ...shape(error), request_id: requestId })
  return { status, headers: { ...errorHeaders(error, requestId, status), 'request-id': requestId }, body }
}

/** An error after the first byte ends the stream: no `message_stop` follows. */
export function writeStreamError(error: GatewayError): Uint8Array {
  return new TextEncoder().encode(`event: error\ndata: ${JSON.stringify(shape(error))}\n\n`)
}

/** Codes of the vendor that its official clients act on and look for in `error.details`. */
const codesActedUpon: ReadonlySet<string> = new Set(['thread_unsupported_request'])

/** By these words the vendor's command-line tool recognises that a conversation has to be shortened. */
const wordsOfLength = 'prompt is too long'

function shape(error: GatewayError) {
  const { kind, message, details } = error
  const { code, refusal } = details
  const said = refusal?.protocol === 'openai' ? inOwnFields(message) : message
  const isLong = isTooLong(error)
  const words = isLong && !said.startsWith(wordsOfLength) ? `${wordsOfLength}: ${said}` : said
  const told = code !== undefined && codesActedUpon.has(code) ? { details: { error_code: code } } : {}
  const type = rows[refusal?.status === rows['too-large'][0] && !isLong ? 'too-large' : kind][1]
  return { type: 'error', error: { type, message: words, ...told } }
}

/** A vendor of the common protocol names the fields it was sent; this client wrote them differently. */
function inOwnFields(message: string): string {
  return message.replaceAll(/(tools\[\d+\])\.function\.(\w+)/g, (_, tool: string, field: string) => {
    return `${tool}.${field === 'parameters' ? 'input_schema' : field}`
  })
}

/** The HTTP status that each error type of the vendor has outside of a stream. */
const statuses: ReadonlyMap<string, number> = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['billing_error', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['api_error', 500],
  ['timeout_error', 504],
  ['overloaded_error', 529],
])

/** Reads a vendor's error object that came in place of an answer. */
export function readFailure(error: JsonObject): GatewayError {
  const message = textIn(error['message']) || "The model's vendor did not answer as it should."
  const status = statuses.get(textIn(error['type']))
  if (status === undefined) return new GatewayError('upstream-failed', message)
  return refusedInside({ status, body: JSON.stringify({ type: 'error', error }) }, message)
}
