import { IntrusiveSet, type Member } from '../../base/intrusive-set.ts'
import { GatewayError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { zeroNano } from '../../base/money.ts'
import type { AttemptRecord } from '../../store/requests.ts'
import { chargeWithin } from '../../store/postings.ts'
import type { Posting } from '../../store/turns.ts'
import type { Billing, Ending, Hold, Order, Progress, Sale, SentAttempt, TakeOutcome } from '../billing.ts'
import { logExcess, recordOf } from '../record.ts'
import { accountDisabled, ledgerAway } from '../refusals.ts'
import { DiskFull } from './disk.ts'
import { DiskRoom } from './disk-room.ts'
import { Journal, recoverJournal, type JournalOptions } from './journal.ts'
import type { WaitOutcome } from './lease.ts'
import { endedBy, type EncodedRecord, type JournalRecord } from './records.ts'
import { replay, type Underway } from './replay.ts'
import { Teller, type TellerOptions } from './teller.ts'

export type LeasedOptions = Omit<TellerOptions, 'recorded' | 'flushed'> &
  Pick<JournalOptions, 'disk' | 'sync' | 'segmentBytes'>

export type LeasedBilling = Billing & {
  /** False while the journal's disk is full or the database cannot be reached, and once this process was fenced off. */
  readonly ready: boolean
  /** Unposted requests of the last process that had been sent to a vendor when it ended. */
  readonly reachedVendors: readonly string[]
  /** Posts everything that has ended, and gives back all leased money that no hold is using. */
  post(): Promise<void>
  /** Posts what has ended by now, and gives back what these accounts' leases do not use. */
  bringUpToDate(accountIds: readonly string[]): Promise<void>
  /** Posts everything and gives every lease back. Call it when no hold is open any more, and before the bank closes. */
  close(): Promise<void>
}

const journalGone =
  "the journal of the last process is gone, and what it had not posted with it: compare the ledger with vendors' bills"

/** A hold of this process, as it is kept in the `IntrusiveSet` of open holds. */
type UnderwayHere = Underway & Member & { readonly id: string }

/**
 * Billing without the database on a request's path: the right to spend is leased from the database in larger pieces,
 * what happens is written to a local journal, and postings follow in batches. After a crash the next start replays the
 * journal.
 */
export async function openLeasedBilling(options: LeasedOptions): Promise<LeasedBilling> {
  const { disk, log } = options
  const { records, last } = recoverJournal(disk)
  const owed = replay(records)
  const notDurable = (error: unknown) => options.fatal('the journal could not be made durable', error)
  const journal = new Journal({ ...options, fatal: notDurable }, last)
  const underway = new IntrusiveSet<UnderwayHere>()
  const teller = new Teller({
    ...options,
    recorded: () => journal.durable(),
    // Written along with the next record: a crash before that only resends postings that the database already has.
    flushed: (ids) => journal.append({ type: 'FLUSHED', ids }),
  })
  const room = new DiskRoom(options)

  try {
    if ((await journal.begin(owed.map((posting) => endedBy(posting).record))) === 'full') room.noticeFull()
    const left = await teller.open(owed)
    // Nothing is leased before the journal has begun, so a node that left leases behind had one.
    if (left.leases > 0 && last.name === undefined) log.error(left, journalGone)
  } catch (error) {
    // A second try starts from the files again, and must not find them still open.
    room.close()
    await journal.close().catch(() => {})
    throw error
  }
  if (owed.length > 0) log.warn({ postings: owed.length }, 'the journal of the last process was replayed')

  /** The record is written once this returns: only then may the call or the end of the answer follow. */
  function append(record: JournalRecord | EncodedRecord): void {
    journal.append(record)
    try {
      if (journal.write() === 'full') room.noticeFull()
      if (journal.wantsRotation && journal.rotate(unfinished()) === 'full') room.noticeFull()
    } catch (error) {
      // The reserve was given up and did not help. Without one, nothing new may be begun.
      if (error instanceof DiskFull) room.noticeFull()
      throw error
    }
  }

  function* unfinished(): Generator<JournalRecord | EncodedRecord> {
    for (const { id, order, sent, progress } of underway) {
      const [attempt, ...further] = sent
      if (attempt === undefined) continue
      yield { type: 'HOLD', id, order, attempt }
      for (const another of further) yield { type: 'SEND', id, attempt: another }
      if (progress !== undefined) yield { type: 'MARK', id, progress }
    }
    for (const { record } of teller.unflushed()) yield record
  }

  function holdOf(id: string, order: Order): Hold {
    // Not in the journal yet: as long as nothing was sent, a hold that a crash forgets has cost nothing.
    const hold: UnderwayHere = { id, order, sent: [], progress: undefined, place: -1 }
    underway.add(hold)

    /** Ends the hold. The caller awaits the promise, if there is one, before it tells the client. */
    function end(posting: Posting): Promise<void> | undefined {
      if (!underway.remove(hold)) throw new GatewayError('bug', `hold ${id} had ended already`)
      const ended = endedBy(posting)
      try {
        teller.end(order.amount, ended)
        append(ended.record)
      } catch (error) {
        // The lease's sums are wrong, or not even the disk's reserve took the record. The node must stop: were the
        // ending posted without a record, a replay would come to another outcome.
        options.fatal('the end of a request could not be recorded', error)
        throw error
      }
      teller.postLater()
      return journal.recorded()
    }

    return {
      sending(attempt: SentAttempt) {
        if (room.isFull) throw diskFull()
        // Written after the end of its hold, the record would look to a replay like another hold.
        if (hold.place === -1) throw new GatewayError('bug', `hold ${id} has ended, and is sent`)
        // Added before the write, which may begin a new segment: its copy of the hold must include this attempt.
        hold.sent.push(attempt)
        try {
          append(hold.sent.length === 1 ? { type: 'HOLD', id, order, attempt } : { type: 'SEND', id, attempt })
        } catch (error) {
          hold.sent.pop()
          throw error instanceof DiskFull ? diskFull() : error
        }
      },
      mark(progress: Progress) {
        hold.progress = progress
        append({ type: 'MARK', id, progress })
      },
      async settle(sale: Sale) {
        const posting = settlement(id, order, sale)
        const recorded = end(posting)
        if (recorded !== undefined) await recorded
        logExcess(log, { request: order.requestId, model: order.model }, posting.excess)
        return posting.charge
      },
      async release(ending: Ending) {
        if (hold.place !== -1) await end(release(id, order, ending))
      },
    }
  }

  return {
    get ready() {
      return !room.isFull && teller.isOpen
    },
    get endings() {
      return teller.endings
    },
    reachedVendors: owed.filter(({ attempts }) => attempts.length > 0).map(({ request }) => request.id),
    async take(order): Promise<TakeOutcome> {
      if (room.isFull) throw diskFull()
      if (!teller.take(order.accountId, order.amount)) {
        const outcome = await teller.wait(order.accountId, order.amount)
        if (outcome.kind !== 'taken') return refused(outcome)
      }
      return { kind: 'hold', hold: holdOf(newId('hold'), order) }
    },
    post: () => teller.postAndReturnLeases(),
    bringUpToDate: (accountIds) => teller.bringUpToDate(accountIds),
    async close() {
      try {
        await teller.close()
        await journal.close()
      } finally {
        room.close()
      }
    },
  }
}

function refused(outcome: Exclude<WaitOutcome, { kind: 'taken' }>): TakeOutcome {
  if (outcome.kind === 'no-funds') return outcome
  throw outcome.kind === 'no-account' ? accountDisabled() : ledgerAway()
}

function diskFull(): GatewayError {
  return new GatewayError('overloaded', 'Nothing new can be recorded at the moment.', { retryAfterSeconds: 5 })
}

function settlement(id: string, order: Order, sale: Sale): Posting {
  if (sale.price < 0n) throw new GatewayError('bug', `the price of hold ${id} is negative`)
  const { charge, excess } = chargeWithin(order.amount, sale.price, sale.basis)
  const bearer = sale.excessTo === undefined ? {} : { excessTo: sale.excessTo }
  return { ...posting(id, order, sale, sale.attempts), charge, excess, ...bearer, basis: sale.basis, usage: sale.usage }
}

function release(id: string, order: Order, ending: Ending): Posting {
  const lost = ending.attempts.map((attempt) => ({ ...attempt, delivered: false }))
  return { ...posting(id, order, ending, lost), charge: zeroNano, excess: zeroNano, basis: 'policy_zero', usage: null }
}

function posting(id: string, order: Order, ending: Ending, attempts: readonly AttemptRecord[]) {
  return {
    holdId: id,
    accountId: order.accountId,
    priceVersion: order.priceVersion,
    attempts,
    request: recordOf(order, ending),
  }
}
