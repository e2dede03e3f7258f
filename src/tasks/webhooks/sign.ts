import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { unixSeconds } from '../../base/moment.ts'

// The specification asks for 24 to 64.
const secretBytes = 32

export function makeWebhookSecret(): string {
  return `whsec_${randomBytes(secretBytes).toString('base64')}`
}

/**
 * The headers of Standard Webhooks. One signature for every secret that is valid now: while a secret is replaced, a
 * receiver that has the old one and one that has the new one both find theirs.
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
