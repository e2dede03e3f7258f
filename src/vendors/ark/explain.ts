import type { JsonObject } from '../../base/json.ts'
import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { explain as explainCommon } from '../compatible/explain.ts'
import type { BadResponse, Secrets, Verdict } from '../vendor.ts'
import { overRate } from '../verdicts.ts'

/**
 * Other vendors use this code for an account out of credit. Ark uses it for a used-up free quota and for too many
 * queued videos, so with a 429 it is taken for a rate limit: one customer's many orders must not rest the credential as
 * if it had no credit.
 */
const tooManyQueued = 'QuotaExceeded'

export function explain(response: BadResponse, secrets: Secrets): Verdict {
  const { code } = objectIn(objectIn(parseLoosely(response.body))['error'])
  const isRate = response.status === 429 && code === tooManyQueued
  return isRate ? overRate(response) : explainCommon(response, secrets)
}

/** Ark's error types, by the statuses that they usually come with. */
const statuses: ReadonlyMap<string, number> = new Map([
  ['BadRequest', 400],
  ['Unauthorized', 401],
  ['Forbidden', 403],
  ['NotFound', 404],
  ['TooManyRequests', 429],
])

/** The status that an error stands for where it came with a 2xx. */
export function statusOf({ type }: JsonObject): number {
  return statuses.get(textIn(type)) ?? 500
}
