import { GatewayError } from '../../base/errors.ts'
import { withoutSecrets } from '../../base/scrub.ts'
import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import type { BadResponse, Verdict } from '../vendor.ts'
import { keyRefused, overRate, retryAfterSecondsUsual, timedOut, tooLarge, vendorFailed } from '../verdicts.ts'

/**
 * An empty account, and a limit that its owner has set, come as the request's fault; only the words tell. From their beginning
 * on: what is said of a request may repeat words of its own, and no customer is to lay a key to rest with those.
 */
const outOfCredit =
  /^(?:your credit balance is too low|you have reached your specified (?:api|workspace) usage limits)/i

/**
 * The vendor's refusal. What is the request's fault passes on as it came, since its command-line tool matches the words;
 * what is the operator's fault (a bad key, no credit, a model the account does not have) is ours to answer for.
 */
export function explain(response: BadResponse, secrets: { baseUrl: string; credential: string }): Verdict {
  const { status } = response
  const json = objectIn(parseLoosely(response.body))
  const error = objectIn(json['error'])
  const type = textIn(error['type'])
  const said = textIn(error['message'])
  if (status === 401 || status === 402 || status === 403 || type === 'billing_error' || outOfCredit.test(said)) {
    return keyRefused()
  }
  if (status === 429) return overRate(response)
  if (status === 529 || type === 'overloaded_error') return overloaded(response)
  if (status === 408 || status === 504) return timedOut()
  if (status === 413 && said === '') return tooLarge()
  // The only thing it does not find is the model, and which models there are is the catalogue's affair.
  if (status === 404 || status >= 500 || said === '') return vendorFailed()
  const message = withoutSecrets(said, secrets)
  // A proxy before the vendor may speak another protocol, whose words are put into this one.
  const protocol = json['type'] === 'error' ? 'anthropic' : 'none'
  const refusal = { protocol, status, body: withoutSecrets(response.body, secrets) }
  return { error: new GatewayError('upstream-rejected', message, { refusal }), retryable: false }
}

/** All of the vendor, and not this key of it: the key need not rest. */
function overloaded({ retryAfterSeconds = retryAfterSecondsUsual }: BadResponse): Verdict {
  const message = "The model's vendor is overloaded. Please try again shortly."
  return { error: new GatewayError('overloaded', message, { retryAfterSeconds }), retryable: true }
}
