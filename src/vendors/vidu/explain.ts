import type { JsonObject } from '../../base/json.ts'
import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { explain as explainCommon } from '../compatible/explain.ts'
import type { BadResponse, Secrets, Verdict } from '../vendor.ts'

/**
 * Vidu's error words and the statuses that they stand for. General knowledge, not verified: a word that is missing here
 * is judged by the status that it came with.
 */
const statuses: ReadonlyMap<string, number> = new Map([
  ['CreditInsufficient', 402],
  ['ModelUnavailable', 404],
  ['TooManyRequests', 429],
  ['SystemThrottling', 429],
  ['QuotaExceeded', 429],
  ['OperationInProcess', 429],
  ['FieldInvalid', 400],
  ['TaskPromptPolicyViolation', 400],
  ['AuditSubmitIllegal', 400],
  ['InternalServiceFailure', 500],
])

/** Every refusal has a word in `reason` or `err_code`, and a sentence in `message`. */
export function explain(response: BadResponse, secrets: Secrets): Verdict {
  const json = objectIn(parseLoosely(response.body))
  const word = reasonIn(json)
  // A 5xx stays a failure of the vendor, whatever the word.
  const status = response.status < 500 ? (statuses.get(word) ?? response.status) : response.status
  const message = textIn(json['message']) || word
  return explainCommon({ ...response, status, ...(message !== '' && { body: JSON.stringify({ message }) }) }, secrets)
}

export function reasonIn({ reason, err_code: code }: JsonObject): string {
  return textIn(reason) || textIn(code)
}

/** The status that a word stands for where it came with a 2xx. */
export function statusOf(word: string): number {
  return statuses.get(word) ?? 500
}
