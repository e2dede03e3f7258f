import { GatewayError } from '../base/errors.ts'
import type { Offer } from '../catalogue/model.ts'
import { overRate } from '../vendors/verdicts.ts'
import type { Channel, ChannelModel, Channels, Route } from './channels.ts'

/** What no channel could be asked for. */
type Unserved = {
  readonly model: string
  readonly offers: readonly Offer[]
  readonly isServedBy: (channel: Channel) => boolean
}

/** A channel that was not called because its vendor has no form for the request, and how it would refuse it. */
export type PassedOver = { readonly route: Route; readonly refusal: GatewayError }

/**
 * The error for a request that no channel can be asked for. Where a credential is only over its rate for the model, it
 * says what the vendor said to an earlier request: to slow down, and for how long. So it does where the other channels
 * cannot express the request: the one that rests may, and its client is to wait rather than give up.
 */
export function nobodyServes(
  channels: Channels,
  { model, offers, isServedBy }: Unserved,
  passedOver: readonly PassedOver[],
): GatewayError {
  const unasked = channels
    .places(offers)
    .filter((place) => isServedBy(place.channel) && !passedOver.some(({ route }) => isAlike(route, place)))
  const retryAfterSeconds = channels.secondsOverRate(unasked)
  if (retryAfterSeconds !== undefined) return overRate({ retryAfterSeconds }).error
  const [best] = passedOver
  return best?.refusal ?? new GatewayError('overloaded', `No vendor serves ${model} now.`, { retryAfterSeconds: 5 })
}

/** Whether both write requests in the same way: what one cannot express, the other cannot either. */
function isAlike(a: ChannelModel, b: ChannelModel): boolean {
  return a.channel.vendor === b.channel.vendor && a.upstreamModel === b.upstreamModel
}
