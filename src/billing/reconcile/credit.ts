import { nano, zeroNano, type Nano } from '../../base/money.ts'
import type { Counts, PriceList } from '../../capabilities/usage.ts'
import { deliveredAttempts, type RecordedAttempt, type RecordedRequest } from '../../store/reconcile.ts'
import type { Queries } from '../../store/schema.ts'
import { priceOfParts } from '../price.ts'
import type { BillLine } from './bill.ts'

/** Finds the price list that a charge was made by; undefined where it is not in use any more. */
export type PriceListOf = (model: string, version: string) => PriceList | undefined

export type JudgeBy = {
  readonly lines: ReadonlyMap<string, BillLine>
  readonly now: number
  readonly priceList: PriceListOf
}

// An estimate stands once the vendor had this long to say otherwise.
const creditWithinMs = 72 * 3_600_000

/**
 * What customers get back where an estimate came out above what the vendor counted, each under one attempt of its
 * request. A request is judged as a whole, since one charge is for all the calls that delivered: several choices, a text
 * that was said in pieces, a batch in parts.
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
 * Only an estimate is ever made good, only downwards, and only where the price list that the request was sold by is known,
 * and what the vendor counted for every call that delivered: one that is not on this bill may be on the next.
 */
function creditFor(request: RecordedRequest, delivered: readonly string[], { lines, now, priceList }: JudgeBy): Nano {
  if (delivered.length === 0 || now - request.createdAt > creditWithinMs) return zeroNano
  const prices = request.priceVersion === null ? undefined : priceList(request.model, request.priceVersion)
  if (prices === undefined) return zeroNano
  const parts: Counts[] = []
  for (const id of delivered) {
    const line = lines.get(id)
    if (line?.units === undefined) return zeroNano
    const isCounted = Object.keys(line.units).length > 0
    // Seconds of video and pictures are no counts of ours on a bill: what was charged for them is not judged anew.
    if (line.cost > 0n && !isCounted) return zeroNano
    if (isCounted) parts.push(line.units)
  }
  const fair = priceOfParts(parts, prices)
  return fair < request.cost ? nano(request.cost - fair) : zeroNano
}
