import type { JsonObject } from '../../base/json.ts'
import { withoutSecrets } from '../../base/scrub.ts'
import { responsesIn } from '../../wire/gemini/read-response.ts'
import { objectIn, objectsIn, parseLoosely, textIn } from '../../wire/loose.ts'
import type { BadResponse, Secrets, Verdict } from '../vendor.ts'
import { credentialRefused, isAboutWay, overRate, rejected, timedOut, tooLarge, vendorFailed } from '../verdicts.ts'

/** Reasons and messages of a 400 for which the operator's key or account is at fault, and not the request. */
const refusedReason = /API_KEY_(?:INVALID|EXPIRED|SERVICE_BLOCKED)/
// Matched from the beginning, because a message about a request may quote the client's own words.
const refusedKey = /^api key (?:not valid|not found|expired)/i
const refusedAccount = /location is not supported|\bbilling\b|free tier/i
// Google says this of Imagen and Veo to an account without billing, which can still use its other models.
const billedOnly = /only accessible to billed users/i
// Google says no more than this of a model that is closed to the account, or of a video on YouTube that is private.
// Where the key or the project is refused altogether, the error has a reason or a message of its own.
const closedToCaller = /^the caller does not have permission/i
const noReason = /^$|MODEL_ACCESS_DENIED$/
// Only the message tells used-up credit from a rate limit, and the message of a rate limit mentions billing too.
const outOfCredit =
  /\bcredits?\b.*\b(?:depleted|exhausted|used up)|\bprepa(?:id|yment)\b|\bspend(?:ing)? (?:cap|limit)/i

/**
 * Judges Google's refusal. What is the request's fault passes on; what is the operator's fault (a bad key, which comes
 * as a 400, a closed region, no credit, a missing model) is answered as an upstream failure, without Google's words.
 */
export function explain(response: BadResponse, secrets: Secrets): Verdict {
  const { status } = response
  const error = readError(response.body)
  const message = textIn(error['message'])
  const details = objectsIn(error['details'])

  const isClosed = closedToCaller.test(message) && details.every(({ reason }) => noReason.test(textIn(reason)))
  if (status === 403 && isClosed) return vendorFailed()
  if (status === 401 || status === 402 || status === 403 || (status === 400 && isOperators(error)))
    return credentialRefused()
  if (status === 429) {
    if (outOfCredit.test(message)) return credentialRefused()
    return overRate({ retryAfterSeconds: readDelay(details) ?? response.retryAfterSeconds })
  }
  if (status === 408 || status === 504) return timedOut()
  if (status === 413 && message === '') return tooLarge()
  // A model that is missing or closed to this account, and a conflict, say nothing about the request.
  const isOthers = status === 404 || status === 409 || isAboutWay(status) || billedOnly.test(message)
  const isRejection = status >= 400 && status < 500 && !isOthers && message !== ''
  if (!isRejection) return vendorFailed()
  const body = withoutSecrets(response.body, secrets)
  return rejected(withoutSecrets(message.trim(), secrets), { protocol: 'gemini', status, body })
}

/** The status that an error stands for where it came with a 2xx: Google's errors repeat theirs as `code`. */
export function statusOf({ code }: JsonObject): number {
  return typeof code === 'number' && code >= 400 && code < 600 ? code : 500
}

function isOperators({ status, message, details }: JsonObject): boolean {
  const said = textIn(message)
  if (objectsIn(details).some(({ reason }) => refusedReason.test(textIn(reason))) || refusedKey.test(said)) return true
  return status === 'FAILED_PRECONDITION' && refusedAccount.test(said)
}

/** `34.4s`, in the detail of type RetryInfo. */
function readDelay(details: readonly JsonObject[]): number | undefined {
  const told = details.map(({ retryDelay }) => /^(\d+(?:\.\d+)?)s$/.exec(textIn(retryDelay))?.[1])
  const seconds = told.find((delay) => delay !== undefined)
  return seconds === undefined ? undefined : Number(seconds)
}

/** The error object, which may stand in a list of one where a stream was asked for. */
function readError(body: string): JsonObject {
  const [first] = responsesIn(parseLoosely(body))
  return objectIn(first?.['error'])
}
