import { GatewayError } from '../../base/errors.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import { withoutSecrets } from '../../base/scrub.ts'
import { nativeProtocol } from '../../wire/native/errors.ts'
import { parseLoosely, textIn } from '../../wire/loose.ts'
import { explain as explainCommon } from '../compatible/explain.ts'
import type { BadResponse, Verdict } from '../vendor.ts'
import { contentRefused, rejected } from '../verdicts.ts'

/** Codes for which the operator's key or account is at fault; they come with several statuses. */
const operatorFaultCodes =
  /^(?:InvalidApiKey|Arrearage|\w*BillOverdue|CommodityNotPurchased|(?:Workspace\.)?AccessDenied(?!\.Unpurchased))/
/** Codes of a missing model. A free quota belongs to one model, so a model that has used it up counts as missing. */
const unknownModel =
  /^(?:ModelNotFound|Model\.AccessDenied|AccessDenied\.Unpurchased|AllocationQuota\.FreeTierOnly|WorkSpaceNotFound)/
/** The prompt or the result did not pass the vendor's content inspection. */
const refusedContent = 'DataInspectionFailed'
/** At other vendors an account out of credit; in DashScope's common protocol, too many tokens a minute. */
const tokenRate = 'insufficient_quota'

/**
 * Alibaba speaks two protocols and refuses in the one that it was called in. Its own has a `code` at the top level and
 * no error object; that code is judged here as if it had come in the common protocol.
 */
export function explain(response: BadResponse, secrets: { baseUrl: string; credential: string }): Verdict {
  const json = parseLoosely(response.body)
  if (response.status === 429 && isObject(json) && isObject(json['error']) && json['error']['code'] === tokenRate)
    return explainCommon({ ...response, body: '' }, secrets)
  if (!isObject(json) || typeof json['code'] !== 'string' || isObject(json['error'])) {
    return explainCommon(response, secrets)
  }
  const status = operatorFaultCodes.test(json['code']) ? 401 : unknownModel.test(json['code']) ? 404 : response.status
  const verdict = explainCommon({ ...response, status, body: commonBody(json) }, secrets)
  const { refusal } = verdict.error.details
  if (refusal === undefined) return verdict
  const body = withoutSecrets(response.body, secrets)
  const { error } = rejected(verdict.error.message, { protocol: nativeProtocol, status: response.status, body })
  const details = { ...error.details, ...(json['code'] === refusedContent && { code: contentRefused }) }
  return { ...verdict, error: new GatewayError(error.kind, error.message, details) }
}

function commonBody(json: JsonObject): string {
  return JSON.stringify({ error: { message: textIn(json['message']), code: json['code'] } })
}

/** The status that a code stands for where it came with a 2xx. */
export function statusOf(code: string): number {
  if (/^(?:Internal|System)Error|^ModelUnavailable/.test(code)) return 500
  if (code.startsWith('RequestTimeOut')) return 408
  return code.startsWith('Throttling') ? 429 : 400
}
