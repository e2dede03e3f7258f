import type { UnlinkedTxn } from './chain.ts'
import { Entries } from './postings.ts'
import { json } from './rows.ts'
import type { Posting } from './turns.ts'

/** What a leased hold leaves in the books, row by row. */
export function entriesOf(posting: Posting) {
  const entries = new Entries()
  entries.move(`cust:${posting.accountId}`, `revenue:${posting.request.model}`, posting.charge)
  entries.move(posting.excessTo ?? 'platform:loss', `revenue:${posting.request.model}`, posting.excess)
  for (const { vendor, vendorCost, delivered } of posting.attempts) {
    entries.move(delivered ? `cost:${vendor}` : 'platform:loss', `payable:${vendor}`, vendorCost)
  }
  return entries.rows(posting.holdId)
}

export function txnRow(posting: Posting, now: number): UnlinkedTxn {
  return {
    id: posting.holdId,
    kind: posting.basis === 'policy_zero' ? 'loss' : 'settle',
    hold_id: posting.holdId,
    price_version: posting.priceVersion,
    usage: json(posting.usage),
    basis: posting.basis,
    note: null,
    created_at: now,
  }
}

export function requestRow({ holdId, accountId, request, charge, basis, usage }: Posting) {
  return {
    id: request.id,
    account_id: accountId,
    key_id: request.keyId,
    model: request.model,
    capability: request.capability,
    status: request.status,
    cost: charge,
    basis,
    usage: json(usage),
    streamed: request.streamed,
    duration_ms: request.durationMs,
    created_at: request.createdAt,
    hold_id: holdId,
  }
}

export function attemptRows({ request, attempts }: Posting) {
  return attempts.map((attempt) => ({
    id: attempt.id,
    request_id: request.id,
    channel: attempt.channel,
    vendor: attempt.vendor,
    upstream_model: attempt.upstreamModel,
    status: attempt.status,
    vendor_cost: attempt.vendorCost,
    created_at: attempt.createdAt,
    recorded_cost: null,
  }))
}
