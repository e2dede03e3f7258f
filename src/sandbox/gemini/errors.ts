import { ownIn } from '../fields.ts'
import { edgePage } from '../odd-answers.ts'

/** The typed (`@type`) objects that make an error machine-readable. */
type Detail = Readonly<Record<string, unknown>>

type ErrorFacts = { status: number; name?: string; message: string; details?: readonly Detail[] }

/** A refusal as Google words it: an HTTP status, the name of its gRPC code, a message, and details. */
export class GoogleError extends Error {
  readonly status: number
  readonly code: string
  readonly details: readonly Detail[]

  constructor({ status, name, message, details = [] }: ErrorFacts) {
    super(message)
    this.status = status
    this.code = name ?? nameOf(status)
    this.details = details
  }
}

const names: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

function nameOf(status: number): string {
  return names[status] ?? (status >= 500 ? 'UNKNOWN' : 'FAILED_PRECONDITION')
}

export function invalid(message: string): GoogleError {
  return new GoogleError({ status: 400, message })
}

/** An error about one field, in the wording of the vendor's validator. */
export function invalidField(path: string, message: string): GoogleError {
  return invalid(`* GenerateContentRequest.${path}: ${message}\n`)
}

/** All faults that the parser found, in one error. */
export function invalidPayload(violations: readonly { field: string; description: string }[]): GoogleError {
  const message = violations.map(({ description }) => description).join('\n')
  const details = [{ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: violations }]
  return new GoogleError({ status: 400, message, details })
}

function errorInfo(reason: string): Detail {
  return {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason,
    domain: 'googleapis.com',
    metadata: { service: 'generativelanguage.googleapis.com' },
  }
}

export function badKey(message = 'API key not valid. Please pass a valid API key.'): GoogleError {
  const localized = { '@type': 'type.googleapis.com/google.rpc.LocalizedMessage', locale: 'en-US', message }
  return new GoogleError({ status: 400, message, details: [errorInfo('API_KEY_INVALID'), localized] })
}

export function modelNotFound(model: string, method: string): GoogleError {
  const message = `models/${model} is not found for API version v1beta, or is not supported for ${method}. Call ListModels to see the list of available models and their supported methods.`
  return new GoogleError({ status: 404, message })
}

// A fraction, because clients that expect whole seconds would fail on it.
const retryDelay = '1.2s'

const exhausted: ErrorFacts = {
  status: 429,
  message: `You exceeded your current quota, please check your plan and billing details. Please retry in ${retryDelay}.`,
  details: [
    {
      '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
      violations: [
        {
          quotaMetric: 'generativelanguage.googleapis.com/generate_content_paid_tier_input_token_count',
          quotaId: 'GenerateContentPaidTierInputTokensPerModelPerMinute',
        },
      ],
    },
    {
      '@type': 'type.googleapis.com/google.rpc.Help',
      links: [{ description: 'Learn more', url: 'https://ai.google.dev/gemini-api/docs/rate-limits' }],
    },
    { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay },
  ],
}

const messages: Readonly<Record<number, string>> = {
  400: 'Request contains an invalid argument.',
  401: 'Request had invalid authentication credentials.',
  403: 'The caller does not have permission',
  404: 'Requested entity was not found.',
  500: 'An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting',
  503: 'The model is overloaded. Please try again later.',
  504: 'Deadline expired before operation could complete.',
}

/** The usual refusal of a status. */
export function errorForStatus(status: number): GoogleError {
  if (status === 429) return new GoogleError(exhausted)
  return new GoogleError({ status, message: messages[status] ?? 'The request was refused.' })
}

/** The reasons that `sandbox:fail=CODE` knows, besides the names of the gRPC codes. */
const byReason: Readonly<Record<string, ErrorFacts>> = {
  // Credit is used up. Only the message distinguishes this from a rate limit.
  CREDITS_DEPLETED: {
    status: 429,
    message: 'Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing.',
  },
  BILLING_DISABLED: {
    status: 403,
    message: 'This API method requires billing to be enabled.',
    details: [errorInfo('BILLING_DISABLED')],
  },
  SERVICE_DISABLED: {
    status: 403,
    message: 'Generative Language API has not been used in this project before or it is disabled.',
    details: [errorInfo('SERVICE_DISABLED')],
  },
  FAILED_PRECONDITION: {
    status: 400,
    name: 'FAILED_PRECONDITION',
    message: 'User location is not supported for the API use.',
  },
}

export function errorForCode(code: string): GoogleError {
  if (code === 'API_KEY_INVALID') return badKey()
  const known = ownIn(byReason, code)
  if (known) return new GoogleError(known)
  const named = Object.entries(names).find(([, name]) => name === code)
  if (named) return errorForStatus(Number(named[0]))
  const message = `The sandbox was asked to fail with ${code}.`
  return new GoogleError({ status: 400, message, details: [errorInfo(code)] })
}

export function errorBody({ status, message, code, details }: GoogleError): unknown {
  return { error: { code: status, message, status: code, ...(details.length > 0 && { details }) } }
}

/** Where the answer would have been a JSON array, the error is its only element. A 504 is the vendor's own. */
export function writeError(error: GoogleError, asArray: boolean): Response {
  const { status } = error
  const body = writeJson(asArray ? [errorBody(error)] : errorBody(error))
  return edgePage(status, { also: [413] }) ?? new Response(body, { status, headers: { 'content-type': jsonType } })
}

export const jsonType = 'application/json; charset=UTF-8'

/** Google indents JSON that it does not stream. */
export function writeJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
