import { GatewayError } from '../../base/errors.ts'
import { withoutSecrets } from '../../base/scrub.ts'
import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import type { BadResponse, Secrets, Verdict } from '../vendor.ts'
import {
  credentialRefused,
  isAboutWay,
  isOfFirewall,
  overRate,
  rejected,
  retryAfterSecondsUsual,
  timedOut,
  tooLarge,
  vendorFailed,
} from '../verdicts.ts'

/**
 * An account that is empty or closed, or a limit that its owner has set, is reported as the request's fault, and by
 * Zhipu's endpoint in this protocol as a rate limit; only the message tells. It is matched from its beginning, because
 * a message may quote the request, which must not rest a credential.
 */
const outOfCredit =
  /^(?:your credit balance is too low|you have reached your specified (?:workspace )?(?:api )?usage limits|this organization has been disabled|(?:\[1113\]\[)?insufficient balance)/i

/**
 * Judges Anthropic's refusal. What is the request's fault passes on as it came, because the vendor's command-line tool
 * matches the wording; what is the operator's fault (a bad key, no credit, a model the account lacks) is answered as an
 * upstream failure, without the vendor's words.
 */
export function explain(response: BadResponse, secrets: Secrets): Verdict {
  const { status } = response
  if (isOfFirewall(response)) return vendorFailed()
  const json = objectIn(parseLoosely(response.body))
  const error = objectIn(json['error'])
  const type = textIn(error['type'])
  const said = textIn(error['message'])
  if (status === 401 || status === 402 || status === 403 || type === 'billing_error' || outOfCredit.test(said)) {
    return credentialRefused()
  }
  if (status === 429) return overRate(response)
  if (status === 529 || type === 'overloaded_error') return overloaded(response)
  if (status === 408 || status === 504) return timedOut()
  if (status === 413 && said === '') return tooLarge()
  // A 404 is always about the model, and which models there are is for our catalogue to say, not for the request.
  if (status === 404 || isAboutWay(status) || status >= 500 || said === '') return vendorFailed()
  // A proxy in front of the vendor may speak another protocol: then only the message passes on, and not the body.
  const protocol = json['type'] === 'error' ? 'anthropic' : 'none'
  return rejected(withoutSecrets(said, secrets), { protocol, status, body: withoutSecrets(response.body, secrets) })
}

/** The whole vendor is overloaded and not only this credential, which need not rest. */
function overloaded({ retryAfterSeconds = retryAfterSecondsUsual }: BadResponse): Verdict {
  const message = "The model's vendor is overloaded. Please try again shortly."
  return { error: new GatewayError('overloaded', message, { retryAfterSeconds }), retryable: true }
}
