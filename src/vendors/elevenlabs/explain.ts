import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { explain as explainCommon } from '../compatible/explain.ts'
import type { BadResponse, Verdict } from '../vendor.ts'

/**
 * Its words, by the statuses that they have elsewhere: it has used several for the same word. What is said of a voice is
 * the client's affair, also where the operator's plan does not have it: no key is to rest for that.
 */
const statuses: ReadonlyMap<string, number> = new Map([
  ['quota_exceeded', 402],
  ['insufficient_credits', 402],
  ['voice_not_found', 400],
  ['invalid_voice_id', 400],
  ['voice_access_denied', 400],
  ['free_users_not_allowed', 400],
  ['paid_plan_required', 400],
  ['content_policy_violation', 400],
  ['model_not_found', 404],
  ['model_access_denied', 404],
  ['unsupported_model', 404],
  ['too_many_concurrent_requests', 429],
  ['concurrent_limit_exceeded', 429],
  ['rate_limit_exceeded', 429],
  ['system_busy', 429],
])

/** Every refusal is in `detail`: a word with a sentence, a list of fields, or a sentence alone. */
export function explain(response: BadResponse, secrets: { baseUrl: string; credential: string }): Verdict {
  const { detail } = objectIn(parseLoosely(response.body))
  const { status: word, code } = objectIn(detail)
  const known = statuses.get(textIn(word)) ?? statuses.get(textIn(code))
  // What failed within is not made a refusal by a word.
  const status = response.status < 500 ? (known ?? response.status) : response.status
  return explainCommon({ ...response, status }, secrets)
}
