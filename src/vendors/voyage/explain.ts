import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { explain as explainCommon } from '../compatible/explain.ts'
import type { BadResponse, Verdict } from '../vendor.ts'

/** Every refusal is one sentence in `detail`: the same as the common protocol's, but for that name. */
export function explain(response: BadResponse, secrets: { baseUrl: string; credential: string }): Verdict {
  const detail = textIn(objectIn(parseLoosely(response.body))['detail'])
  return explainCommon(detail === '' ? response : { ...response, body: JSON.stringify({ message: detail }) }, secrets)
}
