import type { ChatStream } from '../capabilities/chat.ts'
import type { CallParts } from './attempt.ts'
import { failedInside } from './failed.ts'
import { StreamRelay, type Poured, type RelayOptions } from './relay.ts'
import type { Routed } from './stages.ts'

/** One stream on its way: its events, what they have used, and how large they may be. */
export type Following = Pick<RelayOptions, 'leg' | 'bytesMax'> & { readonly events: ChatStream }

/** A relay that tells its channel how the stream ends. */
export function openRelay(parts: CallParts, routed: Routed, exchange: Poured, following: Following): StreamRelay {
  return new StreamRelay(exchange, following.events, {
    bytesMax: following.bytesMax,
    leg: following.leg,
    judge: (failure) => failedInside(parts, routed, failure),
    complete: () => parts.channels().answered(routed.route),
  })
}
