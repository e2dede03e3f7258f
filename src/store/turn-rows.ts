import type { UnlinkedTxn } from './chain.ts'
import { saleEntries } from './postings.ts'
import { requestRow } from './requests.ts'
import { json } from './rows.ts'
import type { Posting } from './turns.ts'

/** The entries that a leased hold leaves in the books; below are the rows of its txn and its request. */
export function entriesOf(posting: Posting) {
  return saleEntries({ ...posting, model: posting.request.model }).rows(posting.holdId)
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

export function requestOf({ accountId, request, charge, basis, usage, holdId }: Posting) {
  return requestRow(accountId, request, { cost: charge, basis, usage, holdId })
}
