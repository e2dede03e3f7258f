import { nano, zeroNano, type Nano } from '../../base/money.ts'
import type { Counts, PriceList } from '../../capabilities/usage.ts'
import { deliveredAttempts, type RecordedAttempt, type RecordedRequest } from '../../store/reconcile.ts'
import type { Queries } from '../../store/schema.ts'
import { priceOfParts } from '../price.ts'
import type { BillLine } from './bill.ts'

/** Finds the prices by which a charge was made, and our costs; undefined where those prices are not in use any more. */
export type PriceListsOf = (model: string, version: string) => PriceLists | undefined

export type PriceLists = { readonly prices: PriceList; readonly costs: PriceList }

export type JudgeBy = {
  readonly lines: ReadonlyMap<string, BillLine>
  /** How many lines of the bill were joined into one of `lines`, where there are several. */
  readonly repeated: ReadonlyMap<string, number>
  readonly now: number
  readonly priceLists: PriceListsOf
}

// An estimate becomes final once the vendor had this long to bill another amount.
const creditWithinMs = 72 * 3_600_000

/**
 * What customers get back where an estimate came out above what the vendor counted, each credit under one attempt of
 * its request. A request is judged as a whole, since one charge is for all the calls that delivered: several choices, a
 * text spoken in pieces, a batch in parts.
 */
export async function creditsFor(
  db: Queries,
  attempts: readonly RecordedAttempt[],
  by: JudgeBy,
): Promise<Map<string, Nano>> {
  const requests = new Map<string, RecordedRequest>()
  for (const { request } of attempts) if (request?.basis === 'estimated') requests.set(request.id, request)
  const delivered = await deliveredAttempts(db, [...requests.keys()])
  const credits = new Map<string, Nano>()
  for (const request of requests.values()) {
    const ids = delivered.get(request.id) ?? []
    const credit = creditFor(request, ids, by)
    const [bearer] = ids
    if (bearer !== undefined && credit > 0n) credits.set(bearer, credit)
  }
  return credits
}

/**
 * Only an estimate is ever corrected, and only downwards. The price list of the sale must be known, and so must
 * everything that the vendor counted for every call that delivered: a call that is not on this bill may be on the next.
 */
function creditFor(request: RecordedRequest, delivered: readonly string[], by: JudgeBy): Nano {
  if (delivered.length === 0 || by.now - request.createdAt > creditWithinMs) return zeroNano
  const lists = request.priceVersion === null ? undefined : by.priceLists(request.model, request.priceVersion)
  if (lists === undefined) return zeroNano
  const parts: Counts[] = []
  for (const id of delivered) {
    const line = by.lines.get(id)
    if (line?.units === undefined) return zeroNano
    const { units, cost } = line
    const isCounted = Object.keys(units).length > 0
    const isExplained = isCounted ? isWhole(units, { cost, lines: by.repeated.get(id) ?? 1 }, lists.costs) : cost <= 0n
    if (!isExplained) return zeroNano
    if (isCounted) parts.push(units)
  }
  const fair = priceOfParts(parts, lists.prices)
  return fair < request.cost ? nano(request.cost - fair) : zeroNano
}

/**
 * Whether these units are all that was billed: at our cost prices they come to the billed cost, give or take a nano of
 * rounding for each line beyond the first. A bill may have no column for what was written to a cache, and images and
 * seconds of video are not among our counts: a charge that includes them is not judged anew.
 */
function isWhole(units: Counts, { cost, lines }: { cost: Nano; lines: number }, costs: PriceList): boolean {
  // A bill does not say what kind of video it was, so its tokens can be priced only where all kinds have one price.
  if (units.videoToken !== undefined && costs.perVideoToken['default'] === undefined) return false
  const off = priceOfParts([units], costs) - cost
  return off < lines && off > -lines
}
