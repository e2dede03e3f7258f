import { GatewayError } from '../base/errors.ts'
import type { BadResponse, Verdict } from './vendor.ts'

// A refused key stays refused until an operator acts; a minute keeps the log readable and recovery quick.
const refusedKeySeconds = 60

/** How long to leave a vendor alone that wants to be left alone and does not say for how long. */
export const retryAfterSecondsUsual = 1

/** The common protocol's code for what a vendor will not make, whatever the vendor calls it. */
export const contentRefused = 'content_policy_violation'

/** The vendor is at fault, or has not what was asked for: another may do better. */
export function vendorFailed(): Verdict {
  return {
    error: new GatewayError('upstream-failed', "The model's vendor did not answer as it should."),
    retryable: true,
  }
}

/** The operator's key or account is at fault, which no client is told. */
export function keyRefused(): Verdict {
  return { ...vendorFailed(), restCredentialSeconds: refusedKeySeconds }
}

export function overRate({
  retryAfterSeconds = retryAfterSecondsUsual,
}: Pick<BadResponse, 'retryAfterSeconds'>): Verdict {
  const message = 'The model is receiving too many requests now. Please try again shortly.'
  const error = new GatewayError('too-many', message, { retryAfterSeconds })
  return { error, retryable: true, restCredentialSeconds: retryAfterSeconds }
}

export function timedOut(): Verdict {
  return {
    error: new GatewayError('upstream-timeout', "The model's vendor did not answer in time."),
    retryable: true,
  }
}

/**
 * A body that a vendor's door turned away, with a page or nothing at all: what it is too large for says its status. Where
 * the vendor has words for it, those pass.
 */
export function tooLarge(): Verdict {
  const message = "The request is larger than the model's vendor takes."
  return { error: new GatewayError('too-large', message), retryable: false }
}
