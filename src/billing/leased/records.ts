import type { Posting } from '../../store/turns.ts'
import type { Order, Progress, SentAttempt } from '../funds.ts'

/**
 * What the journal says of one hold, in this order: HOLD SEND (MARK) SETTLE or VOID. A second SEND is a second attempt.
 * FLUSHED names what has reached the database; OPEN ends the copy of everything unfinished that a new segment starts with.
 */
export type JournalRecord =
  | { readonly type: 'HOLD'; readonly id: string; readonly order: Order }
  | { readonly type: 'SEND'; readonly id: string; readonly attempt: SentAttempt }
  | { readonly type: 'MARK'; readonly id: string; readonly progress: Progress }
  | { readonly type: 'SETTLE'; readonly id: string; readonly posting: Posting }
  | { readonly type: 'VOID'; readonly id: string; readonly posting: Posting }
  | { readonly type: 'FLUSHED'; readonly ids: readonly string[] }
  | { readonly type: 'OPEN' }

/**
 * Amounts are bigint, which JSON has no number for: they are written as text under the names below, and nowhere else. A
 * replacer that looks at every value would cost more than the write itself.
 */
export function encodeRecord(record: JournalRecord): string {
  switch (record.type) {
    case 'HOLD':
      return JSON.stringify({ ...record, order: { ...record.order, amount: record.order.amount.toString() } })
    case 'MARK':
      return JSON.stringify({ ...record, progress: { ...record.progress, ...text(record.progress) } })
    case 'SETTLE':
    case 'VOID':
      return JSON.stringify({ ...record, posting: writePosting(record.posting) })
    case 'SEND':
    case 'FLUSHED':
    case 'OPEN':
      return JSON.stringify(record)
  }
}

const amounts: ReadonlySet<string> = new Set(['amount', 'price', 'vendorCost', 'charge', 'excess'])

export function decodeRecord(payload: string): JournalRecord {
  return JSON.parse(payload, (key, value: unknown) =>
    typeof value === 'string' && amounts.has(key) ? BigInt(value) : value,
  ) as JournalRecord
}

function text({ price, vendorCost }: Progress) {
  return { price: price.toString(), vendorCost: vendorCost.toString() }
}

function writePosting(posting: Posting) {
  return {
    ...posting,
    charge: posting.charge.toString(),
    excess: posting.excess.toString(),
    attempts: posting.attempts.map((attempt) => ({ ...attempt, vendorCost: attempt.vendorCost.toString() })),
  }
}
