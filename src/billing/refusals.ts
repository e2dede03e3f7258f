import { GatewayError } from '../base/errors.ts'

/** The account was disabled after the key was looked up, which makes the key as dead as a revoked one. */
export function accountDisabled(): GatewayError {
  return new GatewayError('unauthenticated', 'The account of this API key is disabled.')
}

export function ledgerAway(cause?: unknown): GatewayError {
  return new GatewayError('overloaded', 'The ledger cannot be reached at the moment.', { retryAfterSeconds: 1, cause })
}
