import { nano, type Nano } from '../../base/money.ts'
import type { Posting, Turn } from '../../store/turns.ts'
import type { Order, Progress, SentAttempt } from '../billing.ts'

/**
 * What the journal says of one hold, in this order: HOLD (SEND) (MARK) SETTLE or VOID. HOLD is written when the first
 * attempt leaves, and carries it; each SEND is a further one. Older journals have a HOLD without an attempt, for a hold
 * that has sent nothing yet, and then a SEND for the first attempt too. FLUSHED names the holds that have reached the
 * database; OPEN ends the copy of everything unfinished that a new segment starts with.
 */
export type JournalRecord =
  | { readonly type: 'HOLD'; readonly id: string; readonly order: Order; readonly attempt?: SentAttempt }
  | { readonly type: 'SEND'; readonly id: string; readonly attempt: SentAttempt }
  | { readonly type: 'MARK'; readonly id: string; readonly progress: Progress }
  | { readonly type: 'SETTLE'; readonly id: string; readonly posting: Posting }
  | { readonly type: 'VOID'; readonly id: string; readonly posting: Posting }
  | { readonly type: 'FLUSHED'; readonly ids: readonly string[] }
  | { readonly type: 'OPEN' }

/**
 * Amounts are bigint, for which JSON has no number: they are written as text, under the names below and no others. A
 * replacer that looks at every value would cost more than the write itself.
 */
export function encodeRecord(record: JournalRecord): string {
  switch (record.type) {
    case 'HOLD':
      return JSON.stringify({ ...record, order: { ...record.order, amount: record.order.amount.toString() } })
    case 'MARK':
      return JSON.stringify({ ...record, progress: writeProgress(record.progress) })
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

export type EncodedRecord = string & { readonly __encoded: 'record' }

/**
 * A hold that has ended and waits to be posted: the text of its journal record, which is also what the bank's thread is
 * sent, and the few fields that the teller needs. Hundreds of them wait at any moment under load, and as trees of
 * objects they made every garbage collection half as long again.
 */
export type Ended = {
  readonly holdId: string
  readonly accountId: string
  readonly charge: Nano
  readonly record: EncodedRecord
}

export function endedBy(posting: Posting): Ended {
  const { holdId, accountId, charge } = posting
  const type = posting.basis === 'policy_zero' ? 'VOID' : 'SETTLE'
  return { holdId, accountId, charge, record: encodeRecord({ type, id: holdId, posting }) as EncodedRecord }
}

/** A turn whose postings are still the text of the journal; a bank that books them in this thread reads `postings`. */
export class WrittenTurn implements Turn {
  readonly number: number
  readonly takes: Turn['takes']
  readonly returns: Turn['returns']
  readonly ended: readonly Ended[]
  #postings: readonly Posting[] | undefined

  constructor({ number, takes, returns }: Omit<Turn, 'postings'>, ended: readonly Ended[]) {
    this.number = number
    this.takes = takes
    this.returns = returns
    this.ended = ended
  }

  get postings(): readonly Posting[] {
    return (this.#postings ??= decodeEndings(encodeEndings(this.ended)))
  }
}

/** One text for another thread, because having the objects cloned costs several times as much. */
export function encodeEndings(ended: readonly Ended[]): string {
  return `[${ended.map(({ record }) => record).join(',')}]`
}

/** Converts amounts by name: a reviver would be called for every value, and the bank's thread spends its time here. */
export function decodeEndings(text: string): Posting[] {
  return (JSON.parse(text) as { posting: WrittenPosting }[]).map(({ posting }) => ({
    ...posting,
    charge: nano(BigInt(posting.charge)),
    excess: nano(BigInt(posting.excess)),
    attempts: posting.attempts.map((attempt) => ({ ...attempt, vendorCost: nano(BigInt(attempt.vendorCost)) })),
  }))
}

type WrittenPosting = ReturnType<typeof writePosting>

function writeProgress(progress: Progress) {
  return { ...progress, price: progress.price.toString(), delivered: progress.delivered.map(writeCost) }
}

function writePosting(posting: Posting) {
  return {
    ...posting,
    charge: posting.charge.toString(),
    excess: posting.excess.toString(),
    attempts: posting.attempts.map(writeCost),
  }
}

function writeCost<T extends { readonly vendorCost: Nano }>(attempt: T) {
  return { ...attempt, vendorCost: attempt.vendorCost.toString() }
}
