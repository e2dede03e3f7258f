import { unixSeconds } from '../base/moment.ts'
import { formatDollars } from '../base/money.ts'
import type { Queries } from '../store/schema.ts'
import { type AttemptRow, listRequests, placeOfRequest, type RequestRow } from '../store/request-lists.ts'
import type { UsageFilter } from '../store/usage.ts'
import { checkPeriod, type Page, type PageAsked, pageOf, rowsFor } from './query.ts'
import { showUsage } from './usage.ts'

/** Single requests, newest first. `after` is the id of the last one of the previous page. */
export async function reportRequests(db: Queries, filter: UsageFilter, page: PageAsked): Promise<Page<ShownRequest>> {
  checkPeriod(filter)
  const { scope } = filter
  // Looked up in the caller's own scope: an id of another account is as unknown as one that does not exist.
  const asked = await rowsFor(page, 'request', (id) => placeOfRequest(db, { scope, id }))
  return pageOf(await listRequests(db, filter, asked), page.limit, showRequest, ({ id }) => id)
}

export type ShownRequest = ReturnType<typeof showRequest>

/** The record of a request, which never has the content of the prompt or the answer. */
export function showRequest(row: RequestRow) {
  return {
    id: row.id,
    account: row.accountId,
    key: row.keyId,
    model: row.model,
    capability: row.capability,
    status: row.status,
    cost: formatDollars(row.cost),
    basis: row.basis,
    usage: row.usage === null ? null : showUsage(row.usage),
    streamed: row.streamed,
    duration_ms: row.durationMs,
    created_at: unixSeconds(row.createdAt),
  }
}

/** For operators only: customers do not see which vendor was called and what it charged. */
export function showAttempt(row: AttemptRow) {
  return {
    id: row.id,
    channel: row.channel,
    vendor: row.vendor,
    upstream_model: row.upstreamModel,
    status: row.status,
    vendor_cost: formatDollars(row.vendorCost),
  }
}
