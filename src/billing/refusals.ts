import { GatewayError } from '../base/errors.ts'

/** Disabled since the key was looked up: the key is as dead as if it had been revoked. */
export function accountDisabled(): GatewayError {
  return new GatewayError('unauthenticated', 'The account of this API key is disabled.')
}

export function ledgerAway(cause?: unknown): GatewayError {
  return new GatewayError('overloaded', 'The ledger cannot be reached at the moment.', { retryAfterSeconds: 1, cause })
}
