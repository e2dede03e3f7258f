import { ownIn } from '../fields.ts'
import { edgePage } from '../odd-answers.ts'
import { hashText, seededId } from '../seeded.ts'

type ErrorFacts = { status: number; message: string; type?: string; errorCode?: string | undefined }

/**
 * A refusal as the vendor words it. Thrown while a request is read, and written in the vendor's envelope at the end.
 */
export class MessagesError extends Error {
  readonly status: number
  readonly type: string
  /** `error.details.error_code`: the newer, stable code of some refusals. */
  readonly errorCode: string | undefined

  constructor({ status, message, type, errorCode }: ErrorFacts) {
    super(message)
    this.status = status
    this.type = type ?? usualFor(status).type
    this.errorCode = errorCode
  }
}

/** The vendor names the faulty place in the message itself: `messages.1.content.0: …`. */
export function invalid(place: string, message: string): MessagesError {
  return new MessagesError({ status: 400, message: place === '' ? message : `${place}: ${message}` })
}

export const modelNotFound = (model: string): MessagesError =>
  new MessagesError({ status: 404, message: `model: ${model}` })

type Row = { status: number; message: string }

const byType = {
  invalid_request_error: { status: 400, message: 'Your request was refused.' },
  authentication_error: { status: 401, message: 'invalid x-api-key' },
  billing_error: { status: 402, message: 'Your account has a problem with its payment method.' },
  permission_error: { status: 403, message: 'Your API key does not have permission to use the specified resource.' },
  not_found_error: { status: 404, message: 'Not found' },
  conflict_error: { status: 409, message: 'The request conflicts with another one.' },
  request_too_large: { status: 413, message: 'Request exceeds the maximum size' },
  rate_limit_error: {
    status: 429,
    message: 'This request would exceed your organization’s rate limit of 50 requests per minute.',
  },
  api_error: { status: 500, message: 'Internal server error' },
  timeout_error: { status: 504, message: 'Request timed out' },
  overloaded_error: { status: 529, message: 'Overloaded' },
} as const satisfies Record<string, Row>

/** Refusals that share a type with others and differ only in their message. */
const byCode: Readonly<Record<string, Row>> = {
  ...byType,
  credit_balance_too_low: {
    status: 400,
    message:
      'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.',
  },
  prompt_too_long: { status: 400, message: 'prompt is too long: 200001 tokens > 200000 maximum' },
  content_filter: { status: 400, message: 'Output blocked by content filtering policy' },
}

/** `sandbox:fail=CODE`: the vendor's error types and the refusals above. Any other code is the stable code of a 400. */
export function errorForCode(code: string): MessagesError {
  const row = ownIn(byCode, code)
  if (row) return new MessagesError(row)
  return new MessagesError({
    status: 400,
    message: `The sandbox was asked to fail with ${code}.`,
    errorCode: code,
  })
}

/** The usual refusal of a status. */
export function errorForStatus(status: number): MessagesError {
  return new MessagesError({ status, message: usualFor(status).message })
}

/** The type and the message of a status; one that has none of its own shares those of its class. */
function usualFor(status: number): { readonly type: string; readonly message: string } {
  const shared = status >= 500 ? 'api_error' : 'invalid_request_error'
  const own = Object.entries(byType).find(([, row]) => row.status === status)
  const [type, { message }] = own ?? [shared, byType[shared]]
  return { type, message }
}

export function writeError(error: MessagesError, seed: string): Response {
  const { status } = error
  const requestId = seededId('req_', hashText(seed))
  const isWorthARetry = status === 408 || status === 409 || status === 429 || status >= 500
  const headers: Record<string, string> = { 'request-id': requestId, 'x-should-retry': String(isWorthARetry) }
  if (status === 429) headers['retry-after'] = '1'
  return edgePage(status, { headers }) ?? Response.json(errorBody(error, requestId), { status, headers })
}

/** The vendor's error envelope. In a stream it has no request id. */
export function errorBody({ type, message, errorCode }: MessagesError, requestId?: string): unknown {
  const details = errorCode === undefined ? undefined : { error_code: errorCode }
  return { type: 'error', error: { type, message, details }, request_id: requestId }
}
