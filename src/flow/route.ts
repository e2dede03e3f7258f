import { newAttemptId } from '../base/ids.ts'
import type { Clock } from '../base/clock.ts'
import type { Channels } from '../upstream/channels.ts'
import type { Admitted, Retry, Routed } from './stages.ts'

/** The ways to have an answer, best first. Each is chosen only when asked for, so that what the last one taught counts. */
export function makeRoute(parts: { channels: () => Channels; clock: Clock; attemptsMax: number }) {
  return function* (admitted: Admitted): Generator<Routed, void, Retry | undefined> {
    let attempts = 0
    for (const route of parts.channels().routes(admitted.model.offers)) {
      if (!admitted.errand.isServedBy(route.channel.vendor)) continue
      const attempt = (connection: 'kept' | 'new'): Routed => {
        attempts++
        return { ...admitted, route, attemptId: newAttemptId(), startedAt: parts.clock.now(), connection }
      }
      const retry = yield attempt('kept')
      // The vendor had shut a kept connection before our call: an own attempt with an own id, since it may have got it.
      if (retry === 'anew' && attempts < parts.attemptsMax) yield attempt('new')
      if (attempts >= parts.attemptsMax) return
    }
  }
}
