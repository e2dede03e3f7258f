import { GatewayError } from '../base/errors.ts'
import type { Offer } from '../catalogue/model.ts'
import { overRate } from '../vendors/verdicts.ts'
import type { Channels } from './channels.ts'

/**
 * What a client is told for whom no channel can be asked. Where a key is only over its rate for the model, it is told what its
 * vendor told the request before: to slow down, and for how long.
 */
export function nobodyServes(channels: Channels, model: string, offers: readonly Offer[]): GatewayError {
  const retryAfterSeconds = channels.secondsOverRate(offers)
  if (retryAfterSeconds !== undefined) return overRate({ retryAfterSeconds }).error
  return new GatewayError('overloaded', `No vendor serves ${model} now.`, { retryAfterSeconds: 5 })
}
