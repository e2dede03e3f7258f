import { GatewayError } from '../../base/errors.ts'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { withoutSecrets } from '../../base/log.ts'
import type { BadResponse, Verdict } from '../vendor.ts'

const failed = "The model's vendor did not answer as it should."

// A refused key stays refused until an operator acts; a minute keeps the log readable and recovery quick.
const refusedKeySeconds = 60
const rateLimitedSecondsDefault = 1

/** Codes by which vendors say, under several statuses, that the operator's account has run dry. */
const outOfCredit =
  /insufficient_quota|credit_balance|billing_hard_limit|Arrearage|AccountOverdue|ServiceOverdue|QuotaExceeded/i
const unknownModel = /model_not_found|ModelNotOpen|InvalidEndpointOrModel|model_not_supported/i

/**
 * A common-protocol vendor's refusal. What is the request's fault passes on as it came; what is the operator's fault
 * (a bad key, no credit, a model the account does not have) is ours to answer for.
 */
export function explain(response: BadResponse, secrets: { baseUrl: string; credential: string }): Verdict {
  const { status } = response
  const error = errorObject(response.body)
  const code = `${textOf(error?.['code'])} ${textOf(error?.['type'])}`

  if (status === 401 || status === 402 || status === 403 || outOfCredit.test(code)) {
    return {
      error: new GatewayError('upstream-failed', failed),
      retryable: true,
      restCredentialSeconds: refusedKeySeconds,
    }
  }
  if (status === 404 || unknownModel.test(code))
    return { error: new GatewayError('upstream-failed', failed), retryable: true }
  if (status === 429) {
    const retryAfterSeconds = response.retryAfterSeconds ?? rateLimitedSecondsDefault
    const message = 'The model is receiving too many requests now. Please try again shortly.'
    return {
      error: new GatewayError('too-many', message, { retryAfterSeconds }),
      retryable: true,
      restCredentialSeconds: retryAfterSeconds,
    }
  }
  if (status === 408 || status === 504) {
    return {
      error: new GatewayError('upstream-timeout', "The model's vendor did not answer in time."),
      retryable: true,
    }
  }
  if (status >= 400 && status < 500 && error !== undefined) {
    const body = withoutSecrets(response.body, secrets)
    const message = withoutSecrets(textOf(error['message']) || 'The request was refused.', secrets)
    return {
      error: new GatewayError('upstream-rejected', message, { refusal: { protocol: 'openai', status, body } }),
      retryable: false,
    }
  }
  return { error: new GatewayError('upstream-failed', failed), retryable: true }
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

function errorObject(body: string): JsonObject | undefined {
  try {
    const json: unknown = JSON.parse(body)
    return isObject(json) && isObject(json['error']) ? json['error'] : undefined
  } catch {
    return undefined
  }
}
