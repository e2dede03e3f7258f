import type { Json } from '../../base/json.ts'
import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { explain as explainCommon } from '../compatible/explain.ts'
import type { BadResponse, Secrets, Verdict } from '../vendor.ts'

/**
 * PixVerse's error numbers and the statuses that they stand for. They are from its list of errors, except for 500043
 * and those about keys and about files that are no image, which are general knowledge.
 */
const statuses: ReadonlyMap<number, number> = new Map([
  // An expired or unknown key.
  [10001, 401],
  [10005, 401],
  [400012, 401],
  [500020, 403],
  // The credits are used up.
  [500043, 402],
  [500090, 402],
  // As many videos are being made as the plan allows, or as the vendor can make.
  [500044, 429],
  [500069, 429],
  // The prompt or an image is not allowed.
  [500052, 400],
  [500054, 400],
  [500063, 400],
  // An image that is too large, or a file that is no image.
  [500030, 400],
  [500031, 400],
  [500032, 400],
  [500033, 400],
  // Unknown or deleted.
  [500008, 404],
  [500064, 404],
])

/**
 * The error fields of a response: a number other than zero is an error, whatever the status. Where moderation holds an
 * image back, the names of the fields are in lower case.
 */
function errorIn(json: Json | undefined): { readonly code: number; readonly message: string } {
  const { err_code, err_msg, ErrCode: code = err_code, ErrMsg: message = err_msg } = objectIn(json)
  return { code: typeof code === 'number' ? code : 0, message: textIn(message) }
}

/** Numbers from 400000 to 400999 are about parameters, whether they are on the list or not. */
function knownStatusOf(code: number): number | undefined {
  return statuses.get(code) ?? (code >= 400_000 && code < 401_000 ? 400 : undefined)
}

/** The status that an error stands for; an unknown number becomes a 500, because the task may have been created. */
export function statusOf(json: Json | undefined): number | undefined {
  const { code } = errorIn(json)
  return code === 0 ? undefined : (knownStatusOf(code) ?? 500)
}

export function explain(response: BadResponse, secrets: Secrets): Verdict {
  const { code, message } = errorIn(parseLoosely(response.body))
  if (code === 0) return explainCommon(response, secrets)
  const status = knownStatusOf(code) ?? (response.status >= 400 ? response.status : 500)
  const said = message === '' ? `The vendor says: ${code}.` : message
  return explainCommon({ ...response, status, body: JSON.stringify({ message: said }) }, secrets)
}
