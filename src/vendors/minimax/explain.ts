import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { explain as explainCommon } from '../compatible/explain.ts'
import type { BadResponse, Verdict } from '../vendor.ts'
import { rejected } from '../verdicts.ts'

/** The known error numbers of MiniMax. */
export const numbers = {
  rate: 1002,
  key: 1004,
  balance: 1008,
  input: 1026,
  output: 1027,
  tokenRate: 1039,
  connections: 1041,
  invisible: 1042,
  parameter: 2013,
  foreignVoice: 2042,
  growth: 2045,
  unknownKey: 2049,
  voice: 2054,
  plan: 2056,
  wrongVoice: 20132,
} as const

/** The statuses that these errors stand for. */
const statuses: Readonly<Record<number, number>> = {
  [numbers.rate]: 429,
  [numbers.key]: 401,
  [numbers.balance]: 402,
  [numbers.input]: 400,
  [numbers.output]: 400,
  [numbers.tokenRate]: 429,
  [numbers.connections]: 429,
  // Too many invisible characters, which cannot be spoken.
  [numbers.invisible]: 400,
  [numbers.parameter]: 400,
  [numbers.foreignVoice]: 400,
  [numbers.growth]: 429,
  // Most often a key of the vendor's other region.
  [numbers.unknownKey]: 401,
  [numbers.voice]: 400,
  [numbers.wrongVoice]: 400,
  // The plan's quota for some hours is used up.
  [numbers.plan]: 402,
}

/** `base_resp` is in every response of MiniMax's own protocol; any number but zero is an error, whatever the status. */
export function baseIn(json: Json | undefined): { readonly code: number; readonly message: string } {
  const { status_code: code, status_msg: message } = objectIn(objectIn(json)['base_resp'])
  return { code: typeof code === 'number' ? code : 0, message: textIn(message) }
}

/** The status that an error stands for; an unknown number becomes a 500, because the task may have been created. */
export function statusOf(json: JsonObject): number | undefined {
  const { code } = baseIn(json)
  return code === 0 ? undefined : (statuses[code] ?? 500)
}

/** MiniMax speaks two protocols and refuses in the one it was called in: its own has a number and no error object. */
export function explain(response: BadResponse, secrets: { baseUrl: string; credential: string }): Verdict {
  const json = objectIn(parseLoosely(response.body))
  const { code, message } = baseIn(json)
  if (code === 0 || isObject(json['error'])) return explainCommon(response, secrets)
  const status = statuses[code] ?? (response.status >= 400 ? response.status : 500)
  const verdict = explainCommon({ ...response, status, body: JSON.stringify({ error: { message } }) }, secrets)
  if (verdict.error.kind !== 'upstream-rejected') return verdict
  return rejected(verdict.error.message, { protocol: 'none', status, body: '' })
}
