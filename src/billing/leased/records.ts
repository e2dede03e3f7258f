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

/** Amounts are bigint, which JSON has no number for: written as text with a mark that no other value starts with. */
const amountMark = '$'

export function encodeRecord(record: JournalRecord): string {
  return JSON.stringify(record, (_key, value: unknown) => (typeof value === 'bigint' ? `${amountMark}${value}` : value))
}

export function decodeRecord(payload: string): JournalRecord {
  return JSON.parse(payload, (_key, value: unknown) =>
    typeof value === 'string' && /^\$-?\d+$/.test(value) ? BigInt(value.slice(1)) : value,
  ) as JournalRecord
}
