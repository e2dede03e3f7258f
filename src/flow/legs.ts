import type { AttemptId } from '../base/ids.ts'
import { sumOf, type Basis, type Counted, type Usage } from '../capabilities/usage.ts'

/** One call to a vendor whose answer the client gets. A request has one, or where it was fanned out one a choice. */
export type Leg = {
  readonly attemptId: AttemptId
  /** What it has used by now, by the vendor's count or our estimate; undefined while it has delivered nothing. */
  count(): Counted | undefined
}

/** What all legs used so far; undefined where none has delivered anything. */
export function countLegs(legs: readonly Leg[]): { parts: readonly Usage[]; usage: Usage; basis: Basis } | undefined {
  const counted = legs.map((leg) => leg.count()).filter((count) => count !== undefined)
  if (counted.length === 0) return undefined
  const parts = counted.map(({ usage }) => usage)
  const isExact = counted.length === legs.length && counted.every(({ basis }) => basis === 'vendor')
  return { parts, usage: sumOf(parts), basis: isExact ? 'vendor' : 'estimated' }
}
