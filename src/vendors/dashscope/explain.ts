import { GatewayError } from '../../base/errors.ts'
import { isObject } from '../../base/json.ts'
import { withoutSecrets } from '../../base/scrub.ts'
import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { nativeProtocol } from '../../wire/native/errors.ts'
import { explain as explainCommon } from '../compatible/explain.ts'
import type { BadResponse, Secrets, Verdict } from '../vendor.ts'
import { contentRefused, overRate, rejected } from '../verdicts.ts'

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
export function explain(response: BadResponse, secrets: Secrets): Verdict {
  const { code, message, error: common } = objectIn(parseLoosely(response.body))
  if (response.status === 429 && objectIn(common)['code'] === tokenRate) return overRate(response)
  if (typeof code !== 'string' || isObject(common)) return explainCommon(response, secrets)
  const status = commonStatusOf(code) ?? response.status
  const asCommon = JSON.stringify({ error: { message: textIn(message), code } })
  const verdict = explainCommon({ ...response, status, body: asCommon }, secrets)
  const { refusal } = verdict.error.details
  if (refusal === undefined) return verdict
  const body = withoutSecrets(response.body, secrets)
  const { error } = rejected(verdict.error.message, { protocol: nativeProtocol, status: response.status, body })
  const details = { ...error.details, ...(code === refusedContent && { code: contentRefused }) }
  return { ...verdict, error: new GatewayError(error.kind, error.message, details) }
}

/** The status of such a refusal in the common protocol, where it has one of its own. */
function commonStatusOf(code: string): number | undefined {
  if (operatorFaultCodes.test(code)) return 401
  return unknownModel.test(code) ? 404 : undefined
}

/** The status that a code stands for where it came with a 2xx. */
export function statusOf(code: string): number {
  if (/^(?:Internal|System)Error|^ModelUnavailable/.test(code)) return 500
  if (code.startsWith('RequestTimeOut')) return 408
  return code.startsWith('Throttling') ? 429 : 400
}
