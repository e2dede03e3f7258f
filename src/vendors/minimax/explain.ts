import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { explain as explainCommon } from '../compatible/explain.ts'
import type { BadResponse, Secrets, Verdict } from '../vendor.ts'
import { rejected } from '../verdicts.ts'

/** The error numbers that tell more than a status: the prompt or the video was filtered, or a parameter is wrong. */
export const numbers = { input: 1026, output: 1027, parameter: 2013 } as const

/** MiniMax's error numbers and the statuses that they stand for. */
const statuses: ReadonlyMap<number, number> = new Map([
  [numbers.input, 400],
  [numbers.output, 400],
  [numbers.parameter, 400],
  // A refused key; an unknown one, which is most often a key of the vendor's other region.
  [1004, 401],
  [2049, 401],
  // No balance, or the plan's quota for some hours is used up.
  [1008, 402],
  [2056, 402],
  // Too many requests, tokens or connections, or a number of requests that grows too fast.
  [1002, 429],
  [1039, 429],
  [1041, 429],
  [2045, 429],
  // Too many invisible characters, which cannot be spoken.
  [1042, 400],
  // A voice of another account, or one that does not exist or does not fit.
  [2042, 400],
  [2054, 400],
  [20132, 400],
])

/** `base_resp` is in every response of MiniMax's own protocol; any number but zero is an error, whatever the status. */
export function baseIn(json: Json | undefined): { readonly code: number; readonly message: string } {
  const { status_code: code, status_msg: message } = objectIn(objectIn(json)['base_resp'])
  return { code: typeof code === 'number' ? code : 0, message: textIn(message) }
}

/** The status that an error stands for; an unknown number becomes a 500, because the task may have been created. */
export function statusOf(json: JsonObject): number | undefined {
  const { code } = baseIn(json)
  return code === 0 ? undefined : (statuses.get(code) ?? 500)
}

/** MiniMax speaks two protocols and refuses in the one it was called in: its own has a number and no error object. */
export function explain(response: BadResponse, secrets: Secrets): Verdict {
  const json = objectIn(parseLoosely(response.body))
  const { code, message } = baseIn(json)
  if (code === 0 || isObject(json['error'])) return explainCommon(response, secrets)
  const status = statuses.get(code) ?? (response.status >= 400 ? response.status : 500)
  const verdict = explainCommon({ ...response, status, body: JSON.stringify({ error: { message } }) }, secrets)
  if (verdict.error.kind !== 'upstream-rejected') return verdict
  return rejected(verdict.error.message, { protocol: 'none', status, body: '' })
}
