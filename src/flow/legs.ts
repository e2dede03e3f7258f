import type { AttemptId } from '../base/ids.ts'
import type { Nano } from '../base/money.ts'
import { priceOfParts } from '../billing/price.ts'
import { sumOf, type Basis, type Counted, type PriceList, type Usage } from '../capabilities/usage.ts'

/** One call to a vendor whose answer the client gets. A request has one, or one for each choice, batch or piece. */
export type Leg = {
  readonly attemptId: AttemptId
  /** What it has used by now, by the vendor's count or our estimate; undefined while it has delivered nothing. */
  count(): Counted | undefined
}

/** What a call costs us, by the vendor's own way of counting. */
export function costOf({ usage, vendorUsage = usage }: Counted, costs: PriceList): Nano {
  return priceOfParts([vendorUsage], costs)
}

type LegsCount = {
  /** All of them; `counted` is undefined of those that have delivered nothing. */
  readonly legs: readonly { readonly attemptId: AttemptId; readonly counted: Counted | undefined }[]
  readonly parts: readonly Usage[]
  readonly usage: Usage
  readonly basis: Basis
}

/** What all legs used so far; undefined where none has delivered anything. */
export function countLegs(all: readonly Leg[]): LegsCount | undefined {
  const legs = all.map((leg) => ({ attemptId: leg.attemptId, counted: leg.count() }))
  const delivered = legs.flatMap(({ counted }) => counted ?? [])
  if (delivered.length === 0) return undefined
  const parts = delivered.map(({ usage }) => usage)
  const isExact = delivered.length === all.length && delivered.every(({ basis }) => basis === 'vendor')
  return { legs, parts, usage: sumOf(parts), basis: isExact ? 'vendor' : 'estimated' }
}
