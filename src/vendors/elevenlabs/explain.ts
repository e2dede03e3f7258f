import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { explain as explainCommon } from '../compatible/explain.ts'
import type { BadResponse, Secrets, Verdict } from '../vendor.ts'

/**
 * ElevenLabs' error words and the statuses that they stand for, because it has used several statuses for the same word.
 * An error about a voice is the client's affair and rests no credential, even where the operator's plan lacks it.
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
export function explain(response: BadResponse, secrets: Secrets): Verdict {
  const { detail } = objectIn(parseLoosely(response.body))
  const { status: word, code } = objectIn(detail)
  const known = statuses.get(textIn(word)) ?? statuses.get(textIn(code))
  // A 5xx stays a failure of the vendor, whatever the word.
  const status = response.status < 500 ? (known ?? response.status) : response.status
  return explainCommon({ ...response, status }, secrets)
}
