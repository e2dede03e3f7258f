import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { unixSeconds } from '../../base/moment.ts'

// Standard Webhooks asks for 24 to 64 bytes.
const secretBytes = 32

export function makeWebhookSecret(): string {
  return `whsec_${randomBytes(secretBytes).toString('base64')}`
}

/**
 * The headers of Standard Webhooks, with one signature for every secret that is valid now: while a secret is being
 * replaced, receivers that have the old one and receivers that have the new one can both verify.
 */
export function signedHeaders(
  event: { readonly id: string; readonly payload: string },
  secrets: readonly string[],
  now: number,
): Record<string, string> {
  const at = new Date(now)
  return {
    'content-type': 'application/json',
    'webhook-id': event.id,
    'webhook-timestamp': String(unixSeconds(now)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(event.id, at, event.payload)).join(' '),
  }
}
