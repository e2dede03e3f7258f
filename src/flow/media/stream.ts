import type { Call } from '../../vendors/vendor.ts'
import { attempt, didNotStream, streams, type CallParts } from '../attempt.ts'
import { eventStream } from '../content-types.ts'
import { openRelay, type Following } from '../open-relay.ts'
import type { Outcome, Routed } from '../stages.ts'

/** Sends a call whose events pass on to the client as they come. */
export async function relayEvents(parts: CallParts, routed: Routed, call: Call, following: Following) {
  const { whole } = parts.timeouts
  // A vendor may be silent between two images for as long as before a whole one.
  const timeouts = { ...parts.timeouts, stream: { ...whole, idleMs: Math.max(whole.idleMs, whole.firstByteMs) } }
  const attempted = await attempt({ ...parts, timeouts }, routed, call, async (exchange): Promise<Outcome> => {
    if (!(await streams(routed, exchange))) throw didNotStream()
    const relay = openRelay(parts, routed, exchange, following)
    await relay.begin()
    return { kind: 'streaming', relay, contentType: eventStream }
  })
  return attempted.kind === 'failed' ? attempted : attempted.accepted
}
