import { GatewayError, shortMessage, type Refusal } from '../base/errors.ts'
import type { BadResponse, Verdict } from './vendor.ts'

// A refused credential stays refused until an operator acts; a minute keeps the log readable and recovery quick.
const refusedKeySeconds = 60

/** How long to wait for a vendor that asks for a pause without saying how long. */
export const retryAfterSecondsUsual = 1

/** Longer than refusals under a 2xx status, so that images or many vectors are not parsed once more to look for one. */
export const hiddenRefusalBytesMax = 65_536

/** The common protocol's code for content that a vendor refuses, whatever the vendor calls it. */
export const contentRefused = 'content_policy_violation'

/** The vendor is at fault, or does not have what was asked for: another vendor may do better. */
export function vendorFailed(): Verdict {
  return {
    error: new GatewayError('upstream-failed', "The model's vendor did not answer as it should."),
    retryable: true,
  }
}

/** The operator's credential or account is at fault, which no client is told. */
export function credentialRefused(): Verdict {
  return { ...vendorFailed(), restCredentialSeconds: refusedKeySeconds }
}

// Longer than any refusal that does not repeat the request.
const bodyCharactersMax = 64 * 1024

/**
 * The request is at fault: the vendor's status and message pass on, and its body to clients of its protocol. A refusal
 * that repeats the client's own long text passes on as the beginning of its message.
 */
export function rejected(message: string, refusal: Refusal): Verdict {
  const isLong = refusal.body.length > bodyCharactersMax
  const passed = isLong ? { ...refusal, protocol: 'none', body: '' } : refusal
  const said = isLong ? shortMessage(message) : message
  return { error: new GatewayError('upstream-rejected', said, { refusal: passed }), retryable: false }
}

/**
 * A 403 with an HTML page is that of a firewall in front of the vendor, which may object to a customer's words. Vendors
 * themselves refuse a key in JSON, and no customer's prompt may rest the credential.
 */
export function isOfFirewall({ status, body }: Pick<BadResponse, 'status' | 'body'>): boolean {
  return status === 403 && /^\s*</.test(body)
}

// A wrong method, which is what a wrong base address leads to; a proxy on the way that wants a login; the wrong host; a
// request that came too early, or in the wrong version of HTTP; a call that was cancelled on the way.
const notAboutRequest: ReadonlySet<number> = new Set([405, 407, 421, 425, 426, 499])

/** Whether a refusal's status is about the way to the vendor, and not about what the client asked for. */
export function isAboutWay(status: number): boolean {
  return notAboutRequest.has(status)
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
 * For a request that the vendor's front end turned away with an HTML page or an empty body, so that only the status
 * says that it was too large. Where the vendor gives a message, that message passes on instead.
 */
export function tooLarge(): Verdict {
  const message = "The request is larger than the model's vendor takes."
  return { error: new GatewayError('too-large', message), retryable: false }
}
