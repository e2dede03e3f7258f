import { newAttemptId } from '../base/ids.ts'
import type { Clock } from '../base/clock.ts'
import type { Channels } from '../upstream/channels.ts'
import type { Admitted, Routed, Tried } from './stages.ts'

/** The routes for a request, best first. Each is chosen only on demand, so that what the last attempt showed counts. */
export function makeRoute(parts: { channels: () => Channels; clock: Clock; attemptsMax: number }) {
  return function* (admitted: Admitted): Generator<Routed, void, Tried | undefined> {
    let attempts = 0
    for (const route of parts.channels().routes(admitted.model.offers)) {
      if (!admitted.errand.isServedBy(route.channel.vendor)) continue
      const attempt = (connection: 'kept' | 'new'): Routed => {
        return { ...admitted, route, attemptId: newAttemptId(), startedAt: parts.clock.now(), connection }
      }
      const retry = yield attempt('kept')
      if (retry === 'unasked') continue
      attempts++
      // The vendor had shut a kept connection, or is to be asked differently. It may have got the first call, so the
      // second is an attempt of its own, with its own id.
      if (retry === 'anew' && attempts < parts.attemptsMax) {
        yield attempt('new')
        attempts++
      }
      if (attempts >= parts.attemptsMax) return
    }
  }
}
