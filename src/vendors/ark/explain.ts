import type { JsonObject } from '../../base/json.ts'
import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { explain as explainCommon } from '../compatible/explain.ts'
import type { BadResponse, Verdict } from '../vendor.ts'

/**
 * Elsewhere the word for an account that has run dry. Here it is that of a free quota, and also of too many films in line,
 * which its status stands for: a customer who orders many must not lay the key to rest for all that others ask of it.
 */
const tooManyQueued = 'QuotaExceeded'

export function explain(response: BadResponse, secrets: { baseUrl: string; credential: string }): Verdict {
  const { code } = objectIn(objectIn(parseLoosely(response.body))['error'])
  const isRate = response.status === 429 && textIn(code) === tooManyQueued
  return explainCommon(isRate ? { ...response, body: '' } : response, secrets)
}

/** Its types of errors, by the statuses that they come with. */
const statuses: ReadonlyMap<string, number> = new Map([
  ['BadRequest', 400],
  ['Unauthorized', 401],
  ['Forbidden', 403],
  ['NotFound', 404],
  ['TooManyRequests', 429],
])

/** What an error comes with where it has a status of its own. */
export function statusOf({ type }: JsonObject): number {
  return statuses.get(textIn(type)) ?? 500
}
