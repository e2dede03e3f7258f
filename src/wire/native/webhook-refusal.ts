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

// Where it may not lead. Anything else is wrong with the URL itself, under any rule.
const ofPlace: ReadonlySet<RefusalReason> = new Set([
  'scheme',
  'port',
  'not-public',
  'unresolved',
  'lookup-slow',
  'unreachable',
])

/**
 * A `webhook_url` that no event would go to, with the rule that it breaks. The rule is the operator's, and the same for every
 * host: whether a name exists inside, and where it leads, it does not say.
 */
export function webhookRefusal(refusal: GuardRefusal, policy: GuardPolicy, param: string): GatewayError {
  const { kind, reason, message, details } = refusal
  const takesHttp = policy.schemes === 'https-and-http'
  const why = reason === 'scheme' && takesHttp ? 'The URL must begin with https:// or http://.' : message
  const said = ofPlace.has(reason) ? `${why} ${rules[policy.addresses]}` : why
  return new GatewayError(kind, said, { ...details, param })
}
