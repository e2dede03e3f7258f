import type { Json } from '../../base/json.ts'
import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { explain as explainCommon } from '../compatible/explain.ts'
import type { BadResponse, Verdict } from '../vendor.ts'

/**
 * Its numbers, by the statuses that they have elsewhere: from its list of errors, but for those of keys, of pictures that
 * are none, and 500043, which are general knowledge.
 */
const statuses: ReadonlyMap<number, number> = new Map([
  // A key that is over, or that nobody has.
  [10001, 401],
  [10005, 401],
  [400012, 401],
  [500020, 403],
  // The credits are used up.
  [500043, 402],
  [500090, 402],
  // As many films are being made as the plan allows, or as the vendor can make.
  [500044, 429],
  [500069, 429],
  // What was said or shown is not allowed.
  [500052, 400],
  [500054, 400],
  [500063, 400],
  // A picture that is too large, or none.
  [500030, 400],
  [500031, 400],
  [500032, 400],
  [500033, 400],
  // Not there, or deleted.
  [500008, 404],
  [500064, 404],
])

/**
 * What stands beside every answer; a number other than zero is an error, whatever the status says. Of pictures that its
 * moderation holds back it speaks in small letters.
 */
function errorIn(json: Json | undefined): { readonly code: number; readonly message: string } {
  const { err_code, err_msg, ErrCode: code = err_code, ErrMsg: message = err_msg } = objectIn(json)
  return { code: typeof code === 'number' ? code : 0, message: textIn(message) }
}

/** Its numbers that begin with 400 are of parameters, whether they are on the list or not. */
function knownStatusOf(code: number): number | undefined {
  return statuses.get(code) ?? (code >= 400_000 && code < 401_000 ? 400 : undefined)
}

/** The status that an error has elsewhere; a number that nobody knows may stand for a task that was begun. */
export function statusOf(json: Json | undefined): number | undefined {
  const { code } = errorIn(json)
  return code === 0 ? undefined : (knownStatusOf(code) ?? 500)
}

export function explain(response: BadResponse, secrets: { baseUrl: string; credential: string }): Verdict {
  const { code, message } = errorIn(parseLoosely(response.body))
  if (code === 0) return explainCommon(response, secrets)
  const status = knownStatusOf(code) ?? (response.status >= 400 ? response.status : 500)
  const said = message === '' ? `The vendor says: ${code}.` : message
  return explainCommon({ ...response, status, body: JSON.stringify({ message: said }) }, secrets)
}
