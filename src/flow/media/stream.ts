import type { ChatStream } from '../../capabilities/chat.ts'
import type { Counted } from '../../capabilities/usage.ts'
import type { Call } from '../../vendors/vendor.ts'
import { attempt, didNotStream, streams, type CallParts } from '../attempt.ts'
import { eventStream } from '../content-types.ts'
import { failedInside } from '../failed.ts'
import { StreamRelay, type Relay } from '../relay.ts'
import type { Outcome, Routed } from '../stages.ts'

/** One stream on its way: its events, what they have used, and how large they may be. */
export type Following = {
  readonly events: ChatStream
  /** What the stream has used so far; undefined while it has delivered nothing. */
  count(): Counted | undefined
  readonly bytesMax: { readonly event: number; readonly stream: number }
}

/** Sends a call whose events pass on to the client as they come. */
export async function relayEvents(parts: CallParts, routed: Routed, call: Call, following: Following) {
  const { whole } = parts.timeouts
  // A vendor may be silent between two images for as long as before a whole one.
  const timeouts = { ...parts.timeouts, stream: { ...whole, idleMs: Math.max(whole.idleMs, whole.firstByteMs) } }
  const attempted = await attempt({ ...parts, timeouts }, routed, call, async (exchange): Promise<Outcome> => {
    if (!(await streams(routed, exchange))) throw didNotStream()
    const relay = new StreamRelay(exchange, following.events, {
      bytesMax: following.bytesMax,
      leg: { attemptId: routed.attemptId, count: () => following.count() },
      judge: (failure) => failedInside(parts, routed, failure),
      complete: () => parts.channels().answered(routed.route),
    })
    await relay.begin()
    return { kind: 'streaming', relay, contentType: eventStream }
  })
  return attempted.kind === 'failed' ? attempted : attempted.accepted
}

/** A whole answer for a client that wants a stream: all of it is held back as the stream's end, until it is settled. */
export function relayWhole(events: Uint8Array, { legs, failed }: Required<Pick<Relay, 'legs' | 'failed'>>): Outcome {
  const relay: Relay = {
    legs,
    failed,
    pour: (outlet) => outlet.end(),
    pause() {},
    closing: () => events,
    abort() {},
  }
  return { kind: 'streaming', relay, contentType: eventStream }
}
