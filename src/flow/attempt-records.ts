import { zeroNano, type Nano } from '../base/money.ts'
import type { SentAttempt } from '../billing/billing.ts'
import type { AttemptRecord } from '../store/requests.ts'
import { costOfLeg, type Leg } from './legs.ts'
import type { Routed } from './stages.ts'

/** What is on record of a call before it leaves. */
export function sentAttempt({ route, attemptId, startedAt }: Routed): SentAttempt {
  const { channel, upstreamModel } = route
  return { id: attemptId, channel: channel.id, vendor: channel.vendor.id, upstreamModel, createdAt: startedAt }
}

export function attemptRecord(
  routed: Routed,
  ended: Pick<AttemptRecord, 'status' | 'vendorCost' | 'delivered'>,
): AttemptRecord {
  return { ...sentAttempt(routed), ...ended }
}

/** The record of a call that was answered. */
export function legRecord(
  { route, startedAt }: Routed,
  { attemptId }: Leg,
  { vendorCost, delivered }: Pick<AttemptRecord, 'vendorCost' | 'delivered'>,
): AttemptRecord {
  const { channel, upstreamModel } = route
  return {
    id: attemptId,
    channel: channel.id,
    vendor: channel.vendor.id,
    upstreamModel,
    createdAt: startedAt,
    vendorCost,
    delivered,
    status: 200,
  }
}

/** Records calls that were answered but that no customer pays for, with what they cost us. */
export function wastedAttempts(routed: Routed, legs: readonly Leg[]): AttemptRecord[] {
  return legs.map((leg) => legRecord(routed, leg, { vendorCost: knownCost(routed, leg), delivered: false }))
}

function knownCost({ model }: Routed, leg: Leg): Nano {
  try {
    return costOfLeg(leg, leg.count(), model.costs)
  } catch {
    return zeroNano // its usage cannot be read: the vendor's bill will tell
  }
}
