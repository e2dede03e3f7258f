import type { GatewayError, ErrorKind } from '../../base/errors.ts'
import type { RequestId } from '../../base/ids.ts'
import type { WireError } from '../../capabilities/errors.ts'
import { errorHeaders } from '../error-headers.ts'
import { errorObject } from '../openai/errors.ts'

/** Shape A of the specification. A new kind does not compile until it has a row here. */
const rows = {
  'bad-request': [400, 'InvalidParameter'],
  unauthenticated: [401, 'InvalidApiKey'],
  'no-funds': [402, 'Arrearage'],
  'unknown-model': [400, 'InvalidParameter'], // the specification: an unknown model is a bad parameter here
  'wrong-capability': [400, 'InvalidParameter'],
  'not-found': [404, 'InvalidParameter'],
  'wrong-method': [405, 'InvalidParameter'],
  'wrong-type': [415, 'InvalidParameter'],
  conflict: [409, 'InvalidParameter'],
  'idempotency-mismatch': [422, 'InvalidParameter'],
  'too-many': [429, 'Throttling.RateQuota'],
  'too-large': [413, 'InvalidParameter'],
  'too-many-headers': [431, 'InvalidParameter'],
  'upstream-rejected': [400, 'InvalidParameter'],
  'upstream-failed': [502, 'InternalError'],
  'upstream-timeout': [504, 'InternalError'],
  overloaded: [503, 'ServiceUnavailable'],
  'client-gone': [499, 'InvalidParameter'],
  bug: [500, 'InternalError'],
} as const satisfies Record<ErrorKind, readonly [status: number, code: string]>

export const nativeProtocol = 'dashscope'

export function writeError(error: GatewayError, requestId: RequestId): WireError {
  const { refusal } = error.details
  const status = refusal?.status ?? rows[error.kind][0]
  // A vendor of the same protocol has answered in this form; its body passes unchanged because tools match the wording.
  const body = refusal?.protocol === nativeProtocol ? refusal.body : JSON.stringify(shape(error, requestId))
  return { status, headers: errorHeaders(error, requestId, status), body }
}

/** Before a request's form is known, an error has both shapes, so that both kinds of client can read it. */
export function writeEitherError(error: GatewayError, requestId: RequestId): WireError {
  const [status] = rows[error.kind]
  const body = JSON.stringify({ ...shape(error, requestId), error: errorObject(error) })
  return { status, headers: errorHeaders(error, requestId, status), body }
}

function shape(error: GatewayError, requestId: RequestId) {
  return { code: rows[error.kind][1], message: error.message, request_id: requestId }
}
