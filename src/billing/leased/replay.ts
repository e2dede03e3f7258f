import { zeroNano, type Nano } from '../../base/money.ts'
import { chargeWithin } from '../../store/postings.ts'
import type { AttemptRecord } from '../../store/requests.ts'
import type { Posting } from '../../store/turns.ts'
import type { Order, Progress, SentAttempt } from '../billing.ts'
import { crashedStatus, recordOf } from '../record.ts'
import type { JournalRecord } from './records.ts'

/** A hold under way, as far as the journal records it. */
export type Underway = {
  readonly order: Order
  readonly sent: SentAttempt[]
  progress: Progress | undefined
}

/** The postings that a dead process owes the database: those in its journal, and those for the holds it left open. */
export function replay(records: readonly JournalRecord[]): Posting[] {
  const underway = new Map<string, Underway>()
  const owed = new Map<string, Posting>()
  for (const record of records) {
    switch (record.type) {
      case 'HOLD':
        underway.set(record.id, { order: record.order, sent: sentBy(record), progress: undefined })
        break
      case 'SEND':
        underway.get(record.id)?.sent.push(record.attempt)
        break
      case 'MARK': {
        const hold = underway.get(record.id)
        if (hold !== undefined) hold.progress = record.progress
        break
      }
      case 'SETTLE':
      case 'VOID':
        underway.delete(record.id)
        owed.set(record.id, record.posting)
        break
      case 'FLUSHED':
        for (const id of record.ids) owed.delete(id)
        break
      case 'OPEN':
        break
    }
  }
  for (const [id, hold] of underway) {
    const posting = postingFor(id, hold)
    if (posting !== undefined) owed.set(id, posting)
  }
  return [...owed.values()]
}

function sentBy({ attempt }: { readonly attempt?: SentAttempt }): SentAttempt[] {
  return attempt === undefined ? [] : [attempt]
}

/** A mark as it may stand in a journal: those of older versions have one vendor cost for all attempts together. */
type WrittenProgress = Omit<Progress, 'delivered'> & {
  readonly delivered?: Progress['delivered']
  readonly vendorCost?: Nano
}

/**
 * The one sum of an older mark goes to the last attempt. Which attempts had a part in it is not known, so each counts
 * as delivered, and only a bill that names them all can lower the charge.
 */
function deliveredBy({ sent, progress }: Underway): Progress['delivered'] {
  if (progress === undefined) return []
  const { delivered, vendorCost = zeroNano }: WrittenProgress = progress
  const last = sent.at(-1)
  return delivered ?? sent.map(({ id }) => ({ id, vendorCost: id === last?.id ? vendorCost : zeroNano }))
}

/**
 * A hold without an outcome, because our process crashed. If nothing was sent, nothing happened. Otherwise the customer
 * pays what the last mark says was delivered by then, and by which attempts; what the vendor charges beyond it is our
 * loss, which `reconcile` finds by the attempt's id.
 */
function postingFor(id: string, hold: Underway): Posting | undefined {
  const { order, sent, progress } = hold
  if (sent.length === 0) return undefined
  const delivered = new Map(deliveredBy(hold).map((one) => [one.id, one.vendorCost]))
  const attempts: AttemptRecord[] = sent.map((attempt) => ({
    ...attempt,
    status: 0,
    vendorCost: delivered.get(attempt.id) ?? zeroNano,
    delivered: delivered.has(attempt.id),
  }))
  return {
    holdId: id,
    accountId: order.accountId,
    priceVersion: order.priceVersion,
    ...chargeWithin(order.amount, progress?.price ?? zeroNano, 'estimated'),
    basis: progress === undefined ? 'policy_zero' : 'estimated',
    usage: progress?.usage ?? null,
    request: recordOf(order, { status: crashedStatus, streamed: progress !== undefined, durationMs: 0 }),
    attempts,
  }
}
