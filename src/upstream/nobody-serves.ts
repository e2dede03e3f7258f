import { GatewayError } from '../base/errors.ts'
import type { Offer } from '../catalogue/model.ts'
import { overRate } from '../vendors/verdicts.ts'
import type { Channels } from './channels.ts'

/**
 * The error for a request that no channel can be asked for. Where a credential is only over its rate for the model, it
 * says what the vendor said to an earlier request: to slow down, and for how long.
 */
export function nobodyServes(channels: Channels, model: string, offers: readonly Offer[]): GatewayError {
  const retryAfterSeconds = channels.secondsOverRate(offers)
  if (retryAfterSeconds !== undefined) return overRate({ retryAfterSeconds }).error
  return new GatewayError('overloaded', `No vendor serves ${model} now.`, { retryAfterSeconds: 5 })
}
