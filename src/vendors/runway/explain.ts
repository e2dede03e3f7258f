import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { explain as explainCommon } from '../compatible/explain.ts'
import type { BadResponse, Secrets, Verdict } from '../vendor.ts'

// General knowledge, not verified: an empty account is reported with a 400, and only the message tells.
const outOfCredit = /\benough credits?\b|\bout of credits?\b|\binsufficient credits?\b/i

/** Every refusal is one sentence in `error`, which the common protocol's reader understands too. */
export function explain(response: BadResponse, secrets: Secrets): Verdict {
  const said = textIn(objectIn(parseLoosely(response.body))['error'])
  return explainCommon(
    response.status === 400 && outOfCredit.test(said) ? { ...response, status: 402 } : response,
    secrets,
  )
}
