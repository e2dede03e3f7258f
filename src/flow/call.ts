import type { CallParts } from './attempt.ts'
import type { Outcome, Routed } from './stages.ts'

/** Makes one attempt at one vendor, as the request's capability does it. */
export function makeCall(parts: CallParts) {
  return (routed: Routed): Promise<Outcome> => routed.errand.call(parts, routed)
}
