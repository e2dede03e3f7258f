import type { AttemptId } from '../base/ids.ts'
import type { Nano } from '../base/money.ts'
import { priceOf } from '../billing/price.ts'
import { sumOf, type Basis, type Counted, type PriceList, type Usage } from '../capabilities/usage.ts'

/** One call to a vendor whose answer the client gets. A request has one, or where it was fanned out one a choice. */
export type Leg = {
  readonly attemptId: AttemptId
  /** What it has used by now, by the vendor's count or our estimate; undefined while it has delivered nothing. */
  count(): Counted | undefined
}

/** What a call costs us, by the vendor's own way of counting. */
export function costOf({ usage, vendorUsage = usage }: Counted, costs: PriceList): Nano {
  return priceOf({ ...vendorUsage, request: 1 }, costs)
}

type LegsCount = {
  readonly parts: readonly Usage[]
  readonly vendorParts: readonly Usage[]
  readonly usage: Usage
  readonly basis: Basis
}

/** What all legs used so far; undefined where none has delivered anything. */
export function countLegs(legs: readonly Leg[]): LegsCount | undefined {
  const parts: Usage[] = []
  const vendorParts: Usage[] = []
  let isExact = true
  for (const leg of legs) {
    const counted = leg.count()
    isExact &&= counted?.basis === 'vendor'
    if (counted === undefined) continue
    parts.push(counted.usage)
    vendorParts.push(counted.vendorUsage ?? counted.usage)
  }
  if (parts.length === 0) return undefined
  return { parts, vendorParts, usage: sumOf(parts), basis: isExact ? 'vendor' : 'estimated' }
}
