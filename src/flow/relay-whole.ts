import { eventStream } from './content-types.ts'
import type { Poured, Relay } from './relay.ts'
import type { Delivered } from './stages.ts'

/** A whole answer for a client that wants a stream: all of it is held back as the stream's end, until it is settled. */
export function relayWhole(events: Uint8Array, { legs, failed }: Pick<Relay, 'legs' | 'failed'>): Delivered {
  const relay: Relay = {
    legs,
    ...(failed !== undefined && { failed }),
    pour: (outlet) => outlet.end(),
    pause() {},
    closing: () => events,
    abort() {},
  }
  return { kind: 'streaming', relay, contentType: eventStream }
}

/** The same for a relay, which pours it beside others. */
export function pouredWhole(events: Uint8Array): Poured {
  return { pour: (outlet) => outlet.take(events), pause() {}, finish() {}, abort() {} }
}
