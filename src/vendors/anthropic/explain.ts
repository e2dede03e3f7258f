import { GatewayError } from '../../base/errors.ts'
import { withoutSecrets } from '../../base/scrub.ts'
import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { tooLarge } from '../too-large.ts'
import type { BadResponse, Verdict } from '../vendor.ts'

const failed = "The model's vendor did not answer as it should."

// A refused key stays refused until an operator acts; a minute keeps the log readable and recovery quick.
const refusedKeySeconds = 60
const retryAfterSecondsUsual = 1

/** An empty account, and a limit that its owner has set, come as the request's fault; only the words tell. */
const outOfCredit = /credit balance is too low|reached your specified (?:api|workspace) usage limits/i

/**
 * The vendor's refusal. What is the request's fault passes on as it came, since its command-line tool matches the words;
 * what is the operator's fault (a bad key, no credit, a model the account does not have) is ours to answer for.
 */
export function explain(response: BadResponse, secrets: { baseUrl: string; credential: string }): Verdict {
  const { status } = response
  const error = objectIn(objectIn(parseLoosely(response.body))['error'])
  const type = textIn(error['type'])
  const said = textIn(error['message'])
  if (status === 401 || status === 402 || status === 403 || type === 'billing_error' || outOfCredit.test(said)) {
    return { ...failure('upstream-failed', failed), restCredentialSeconds: refusedKeySeconds }
  }
  if (status === 429) {
    const retryAfterSeconds = response.retryAfterSeconds ?? retryAfterSecondsUsual
    const message = 'The model is receiving too many requests now. Please try again shortly.'
    return { ...failure('too-many', message, retryAfterSeconds), restCredentialSeconds: retryAfterSeconds }
  }
  if (status === 529 || type === 'overloaded_error') {
    const retryAfterSeconds = response.retryAfterSeconds ?? retryAfterSecondsUsual
    return failure('overloaded', "The model's vendor is overloaded. Please try again shortly.", retryAfterSeconds)
  }
  if (status === 408 || status === 504) {
    return failure('upstream-timeout', "The model's vendor did not answer in time.")
  }
  if (status === 413 && said === '') return tooLarge()
  // The only thing it does not find is the model, and which models there are is the catalogue's affair.
  if (status === 404 || status >= 500 || said === '') return failure('upstream-failed', failed)
  const message = withoutSecrets(said, secrets)
  const refusal = { protocol: 'anthropic', status, body: withoutSecrets(response.body, secrets) }
  return { error: new GatewayError('upstream-rejected', message, { refusal }), retryable: false }
}

function failure(kind: GatewayError['kind'], message: string, retryAfterSeconds?: number): Verdict {
  const details = retryAfterSeconds === undefined ? {} : { retryAfterSeconds }
  return { error: new GatewayError(kind, message, details), retryable: true }
}
