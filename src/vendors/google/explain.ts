import { GatewayError } from '../../base/errors.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { withoutSecrets } from '../../base/scrub.ts'
import { objectIn, objectsIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { tooLarge } from '../too-large.ts'
import type { BadResponse, Verdict } from '../vendor.ts'

const failed = "The model's vendor did not answer as it should."

// A refused key stays refused until an operator acts; a minute keeps the log readable and recovery quick.
const refusedKeySeconds = 60
const rateLimitedSecondsDefault = 1

/** Reasons and words by which a 400 says that the operator's key or account is at fault, and not the request. */
const refusedKey = /API_KEY_(?:INVALID|EXPIRED|SERVICE_BLOCKED)|\bapi key (?:not valid|not found|expired)/i
const refusedAccount = /location is not supported|\bbilling\b|free tier/i
// Imagen and Veo, for an account that pays for nothing: the others it has.
const billedOnly = /only accessible to billed users/i
// Nothing but the message tells used-up credit from a rate limit, and that one speaks of billing as well.
const outOfCredit =
  /\bcredits?\b.*\b(?:depleted|exhausted|used up)|\bprepa(?:id|yment)\b|\bspend(?:ing)? (?:cap|limit)/i

/**
 * Google's refusal. What is the request's fault passes on; what is the operator's (a bad key, which comes as a 400, a
 * closed region, no credit, a model that is not there) is ours to answer for.
 */
export function explain(response: BadResponse, secrets: { baseUrl: string; credential: string }): Verdict {
  const { status } = response
  const error = readError(response.body)
  const message = textIn(error['message'])
  const details = objectsIn(error['details'])
  const said = `${details.map(({ reason }) => textIn(reason)).join(' ')} ${message}`

  if (status === 401 || status === 402 || status === 403 || (status === 400 && isOperators(error['status'], said))) {
    return operators()
  }
  if (status === 429) return outOfCredit.test(message) ? operators() : tooMany(response, details)
  if (status === 408 || status === 504) {
    const timeout = new GatewayError('upstream-timeout', "The model's vendor did not answer in time.")
    return { error: timeout, retryable: true }
  }
  if (status === 413 && message === '') return tooLarge()
  // A model it does not have, or not for this account, a conflict and a cancelled call say nothing about the request.
  const isRejection =
    status >= 400 && status < 500 && ![404, 409, 499].includes(status) && message !== '' && !billedOnly.test(message)
  if (!isRejection) return { error: new GatewayError('upstream-failed', failed), retryable: true }
  const refusal = { protocol: 'gemini', status, body: withoutSecrets(response.body, secrets) }
  return {
    error: new GatewayError('upstream-rejected', withoutSecrets(message.trim(), secrets), { refusal }),
    retryable: false,
  }
}

function isOperators(status: Json | undefined, said: string): boolean {
  return refusedKey.test(said) || (status === 'FAILED_PRECONDITION' && refusedAccount.test(said))
}

function operators(): Verdict {
  return {
    error: new GatewayError('upstream-failed', failed),
    retryable: true,
    restCredentialSeconds: refusedKeySeconds,
  }
}

function tooMany(response: BadResponse, details: readonly JsonObject[]): Verdict {
  const retryAfterSeconds = readDelay(details) ?? response.retryAfterSeconds ?? rateLimitedSecondsDefault
  const message = 'The model is receiving too many requests now. Please try again shortly.'
  return {
    error: new GatewayError('too-many', message, { retryAfterSeconds }),
    retryable: true,
    restCredentialSeconds: retryAfterSeconds,
  }
}

/** `34.4s`, in the detail of type RetryInfo. */
function readDelay(details: readonly JsonObject[]): number | undefined {
  const told = details.map(({ retryDelay }) => /^(\d+(?:\.\d+)?)s$/.exec(textIn(retryDelay))?.[1])
  const seconds = told.find((delay) => delay !== undefined)
  return seconds === undefined ? undefined : Number(seconds)
}

/** The error object; where a stream was asked for it can stand in a list of one. */
function readError(body: string): JsonObject {
  const json = parseLoosely(body)
  const [first] = objectsIn(Array.isArray(json) ? json : [json ?? null])
  return objectIn(first?.['error'])
}
