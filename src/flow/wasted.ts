import { zeroNano, type Nano } from '../base/money.ts'
import type { AttemptRecord } from '../store/requests.ts'
import { attemptRecord } from './attempt.ts'
import { costOfLeg, type Leg } from './legs.ts'
import type { Routed } from './stages.ts'

/** Records calls that were answered but that no customer pays for, with what they cost us. */
export function wastedAttempts(routed: Routed, legs: readonly Leg[]): AttemptRecord[] {
  return legs.map((leg) => {
    const vendorCost = knownCost(routed, leg)
    return attemptRecord({ ...routed, attemptId: leg.attemptId }, { status: 200, vendorCost, delivered: false })
  })
}

function knownCost({ model }: Routed, leg: Leg): Nano {
  try {
    return costOfLeg(leg, leg.count(), model.costs)
  } catch {
    return zeroNano // its usage cannot be read: the vendor's bill will tell
  }
}
