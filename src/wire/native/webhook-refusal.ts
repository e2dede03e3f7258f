import { GatewayError } from '../../base/errors.ts'
import type { Reach } from '../../base/public-address.ts'
import type { GuardPolicy, GuardRefusal, RefusalReason } from '../../base/untrusted-url.ts'

const rules: Readonly<Record<Reach, string>> = {
  public:
    'Webhooks are sent only to public addresses, over https and on its usual ports. ' +
    'Operators can allow private addresses, http and other ports with webhooks.allowPrivate.',
  loopback:
    "In sandbox mode webhooks are sent to public addresses and to the gateway's own machine. " +
    'Operators can allow private addresses with webhooks.allowPrivate.',
  private:
    'Webhooks are sent to public and private addresses, ' +
    'but never to link-local addresses or cloud metadata services.',
}

// Refusals for where the URL leads, which the policy decides. Any other reason makes the URL wrong under every policy.
const ofPlace: ReadonlySet<RefusalReason> = new Set([
  'scheme',
  'port',
  'not-public',
  'unresolved',
  'lookup-slow',
  'unreachable',
])

/**
 * The error for a `webhook_url` to which no event would be sent, with the rule that it breaks. The rule depends only on
 * the operator's settings, so the error does not reveal whether a name exists in the internal network or where it
 * leads.
 */
export function webhookRefusal(refusal: GuardRefusal, policy: GuardPolicy, param: string): GatewayError {
  const { kind, reason, message, details } = refusal
  const takesHttp = policy.schemes === 'https-and-http'
  const why = reason === 'scheme' && takesHttp ? 'The URL must begin with https:// or http://.' : message
  const said = ofPlace.has(reason) ? `${why} ${rules[policy.addresses]}` : why
  return new GatewayError(kind, said, { ...details, param })
}
