import { ownIn } from '../fields.ts'
import { edgePage } from '../odd-answers.ts'
import { hashText, seededId } from '../seeded.ts'

type ErrorFacts = {
  status: number
  message: string
  type?: string
  code?: string | null
  param?: string | null
  /** The code was given by name (`sandbox:fail=CODE`), so no vendor's dialect renames it. */
  verbatim?: boolean
}

/** A refusal as the vendor words it. Thrown while a request is read, and written in the vendor's dialect at the end. */
export class VendorError extends Error {
  readonly status: number
  readonly type: string
  readonly code: string | null
  readonly param: string | null
  readonly verbatim: boolean

  constructor({ status, message, type, code = null, param = null, verbatim = false }: ErrorFacts) {
    super(message)
    this.status = status
    this.type = type ?? (status >= 500 ? 'server_error' : 'invalid_request_error')
    this.code = code
    this.param = param
    this.verbatim = verbatim
  }
}

export function badRequest(message: string, param: string | null, code: string | null = null): VendorError {
  return new VendorError({ status: 400, message, param, code })
}

export function missing(param: string): VendorError {
  return badRequest(`Missing required parameter: '${param}'.`, param, 'missing_required_parameter')
}

export function unknownField(param: string): VendorError {
  return badRequest(`Unknown parameter: '${param}'.`, param, 'unknown_parameter')
}

export function unsupported(param: string): VendorError {
  return badRequest(
    `Unsupported parameter: '${param}' is not supported with this model.`,
    param,
    'unsupported_parameter',
  )
}

/** Lists accepted values in the vendor's style: `'low', 'medium', and 'high'`. */
export function quotedList(words: readonly string[]): string {
  const quoted = words.map((word) => `'${word}'`)
  return quoted.length < 2 ? quoted.join('') : `${quoted.slice(0, -1).join(', ')}, and ${quoted.at(-1)}`
}

export const modelNotFound = (model: string): VendorError =>
  new VendorError({
    status: 404,
    message: `The model \`${model}\` does not exist or you do not have access to it.`,
    code: 'model_not_found',
  })

type Row = { status: number; type?: string; message: string }

const rateLimited: Row = {
  status: 429,
  type: 'requests',
  message: 'Rate limit reached for requests. Limit: 3 / min. Please try again in 1s.',
}
const overloaded: Row = {
  status: 503,
  type: 'service_unavailable_error',
  message: 'The engine is currently overloaded.',
}
const overdue: Row = {
  status: 400,
  type: 'Arrearage',
  message: 'Access denied, please make sure your account is in good standing.',
}
const refusedContent: Row = {
  status: 400,
  message: 'Your request was rejected as a result of our safety system.',
}

/** The codes that `sandbox:fail=CODE` knows, with the status that the vendor gives them. */
const byCode: Readonly<Record<string, Row>> = {
  invalid_api_key: { status: 401, message: 'Incorrect API key provided.' },
  insufficient_quota: {
    status: 429,
    type: 'insufficient_quota',
    message: 'You exceeded your current quota, please check your plan and billing details.',
  },
  credit_balance_exhausted: { status: 429, type: 'insufficient_quota', message: 'Your credit balance is exhausted.' },
  rate_limit_exceeded: rateLimited,
  limit_requests: rateLimited,
  server_is_overloaded: overloaded,
  slow_down: overloaded,
  server_error: { status: 500, message: 'The server had an error while processing your request. Sorry about that!' },
  context_length_exceeded: {
    status: 400,
    message: "This model's maximum context length is exceeded. Please reduce the length of the messages.",
  },
  content_policy_violation: refusedContent,
  data_inspection_failed: refusedContent,
  model_not_found: { status: 404, message: 'The model does not exist or you do not have access to it.' },
  unsupported_country_region_territory: { status: 403, message: 'Country, region, or territory not supported' },
  Arrearage: overdue,
  AuthenticationError: { status: 401, message: 'The API key or AK/SK in the request is missing or invalid.' },
  AccountOverdueError: { status: 403, message: 'The request failed because your account has an overdue balance.' },
  ModelNotOpen: { status: 404, message: 'Your account has not activated the model.' },
  ServerOverloaded: { status: 429, message: 'The service is currently unable to handle additional requests.' },
  InternalServiceError: { status: 500, message: 'The service encountered an unexpected internal error.' },
}

export function errorForCode(code: string): VendorError {
  const known = code === 'content_filter' ? 'content_policy_violation' : code
  const row = ownIn(byCode, known) ?? { status: 400, message: `The sandbox was asked to fail with ${code}.` }
  return new VendorError({ ...row, code: known, verbatim: true })
}

/** The usual refusal of a status. */
export function errorForStatus(status: number): VendorError {
  switch (status) {
    case 401:
      return new VendorError({ status, message: 'Incorrect API key provided.', code: 'invalid_api_key' })
    case 402:
      return new VendorError({
        status,
        message: 'Insufficient Balance',
        type: 'unknown_error',
        code: 'invalid_request_error',
      })
    case 404:
      return new VendorError({ status, message: 'The model does not exist.', code: 'model_not_found' })
    case 429:
      return new VendorError({ ...rateLimited, code: 'rate_limit_exceeded' })
    case 503:
      return new VendorError({ ...overloaded, code: 'server_is_overloaded' })
    default: {
      const message =
        status >= 500 ? 'The server had an error while processing your request.' : 'Your request was refused.'
      return new VendorError({ status, message })
    }
  }
}

/** What the proxy in front of the vendor answers besides the usual. */
const also = [413, 504]

export function writeError(vendor: string, error: VendorError, seed: string): Response {
  const requestId = seededId('req_', hashText(seed))
  const headers: Record<string, string> = { 'x-request-id': requestId }
  // DashScope does not send `retry-after`.
  if (error.status === 429 && vendor !== 'dashscope') headers['retry-after'] = '1'
  const { status } = error
  return edgePage(status, { also, headers }) ?? Response.json(errorBody(vendor, error, requestId), { status, headers })
}

export function errorBody(vendor: string, error: VendorError, requestId: string): unknown {
  const { message, type, param } = error
  if (vendor === 'ark') {
    const code = error.verbatim ? error.code : arkCode(error)
    return {
      error: { code, message: `${message} Request id: ${requestId}`, param: param ?? '', type: arkType(error.status) },
    }
  }
  if (vendor === 'dashscope') {
    const code = error.verbatim ? error.code : dashscopeCode(error)
    return { error: { message, type, param, code }, id: `chatcmpl-${requestId}`, request_id: requestId }
  }
  return { error: { message, type, param, code: error.code } }
}

function dashscopeCode({ status, code }: VendorError): string | null {
  if (code === 'rate_limit_exceeded') return 'limit_requests'
  return status === 400 ? 'invalid_parameter_error' : code
}

function arkCode({ status, code, param }: VendorError): string | null {
  if (code === 'context_length_exceeded') return 'OutofContextError'
  if (code === 'missing_required_parameter') return `MissingParameter.${param ?? ''}`
  if (status === 400) return 'InvalidParameter'
  if (status === 401) return 'AuthenticationError'
  if (status === 403) return 'AccessDenied'
  if (status === 404) return 'InvalidEndpointOrModel.NotFound'
  if (status === 429) return 'RateLimitExceeded.EndpointRPMExceeded'
  return status >= 500 ? 'InternalServiceError' : code
}

function arkType(status: number): string {
  if (status === 401) return 'Unauthorized'
  if (status === 403) return 'Forbidden'
  if (status === 404) return 'NotFound'
  if (status === 429) return 'TooManyRequests'
  return status >= 500 ? 'InternalServerError' : 'BadRequest'
}
