import { GatewayError } from '../base/errors.ts'
import type { Verdict } from './vendor.ts'

/**
 * A body that a vendor's door turned away, with a page or nothing at all: what it is too large for says its status. Where
 * the vendor has words for it, those pass.
 */
export function tooLarge(): Verdict {
  const message = "The request is larger than the model's vendor takes."
  return { error: new GatewayError('too-large', message), retryable: false }
}
