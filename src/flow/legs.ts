import type { AttemptId } from '../base/ids.ts'
import { zeroNano, type Nano } from '../base/money.ts'
import { priceOfParts } from '../billing/price.ts'
import { sumOf, type Basis, type Counted, type PriceList, type Usage } from '../capabilities/usage.ts'

/** One call to a vendor whose answer the client gets. A request has one leg, or one for each choice, batch or piece. */
export type Leg = {
  readonly attemptId: AttemptId
  /** What the call has used so far, by the vendor's count or our estimate; undefined while it has delivered nothing. */
  count(): Counted | undefined
  /** What the vendor has made so far, for calls that may have used something before anything is delivered. */
  made?(): Counted | undefined
}

/** What a call has cost us so far, whether or not any of it was delivered. `counted` is what `leg.count` gave. */
export function costOfLeg(leg: Leg, counted: Counted | undefined, costs: PriceList): Nano {
  const made = counted ?? leg.made?.()
  return made === undefined ? zeroNano : costOf(made, costs)
}

/** What a call costs us, by the vendor's own units where these differ from what the customer is billed by. */
export function costOf({ usage, vendorUsage = usage }: Counted, costs: PriceList): Nano {
  return priceOfParts([vendorUsage], costs)
}

type LegsCount = {
  /** All legs; `counted` is undefined for a leg that has delivered nothing. */
  readonly legs: readonly { readonly leg: Leg; readonly counted: Counted | undefined }[]
  readonly parts: readonly Usage[]
  readonly usage: Usage
  readonly basis: Basis
}

/** What all legs used so far; undefined where none has delivered anything. */
export function countLegs(all: readonly Leg[]): LegsCount | undefined {
  const legs: { leg: Leg; counted: Counted | undefined }[] = []
  const parts: Usage[] = []
  let basis: Basis = 'vendor'
  for (const leg of all) {
    const counted = leg.count()
    legs.push({ leg, counted })
    if (counted !== undefined) parts.push(counted.usage)
    if (counted?.basis !== 'vendor') basis = 'estimated'
  }
  return parts.length === 0 ? undefined : { legs, parts, usage: sumOf(parts), basis }
}
