import type { Clock, Timers } from '../../base/clock.ts'
import { Crowd, type Member } from '../../base/crowd.ts'
import { GatewayError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { zeroNano } from '../../base/money.ts'
import type { AttemptRecord } from '../../store/requests.ts'
import { chargeWithin } from '../../store/postings.ts'
import type { Posting } from '../../store/turns.ts'
import type { Billing, Ending, Hold, Order, Progress, Sale, SentAttempt, Taken } from '../funds.ts'
import { logExcess, recordOf } from '../record.ts'
import { accountDisabled, ledgerAway } from '../refusals.ts'
import type { Bank } from './bank.ts'
import type { Disk } from './disk.ts'
import { Journal, recoverJournal, type SyncMode } from './journal.ts'
import type { WaitOutcome } from './lease.ts'
import { endedBy, type EncodedRecord, type JournalRecord } from './records.ts'
import { replay, type Underway } from './replay.ts'
import { Teller } from './teller.ts'

export type LeasedOptions = {
  readonly node: string
  readonly bank: Bank
  readonly disk: Disk
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Log
  readonly sync: SyncMode
  /** Called when this process must not go on: the disk lost bytes, or another process took its place. */
  readonly fatal: (why: string, cause: unknown) => void
  readonly segmentBytes?: number
}

export type LeasedBilling = Billing & {
  /** Whether anything can be admitted: not while the disk is full, nor once this process was fenced off. */
  readonly ready: boolean
  /** Requests of the last process that had left for a vendor when it ended. */
  readonly reachedVendors: readonly string[]
  /** Brings the database up to date with everything that has ended, and gives back what no hold is using. */
  post(): Promise<void>
  /** Posts what has ended by now, and gives back what these accounts' leases do not use. */
  bringUpToDate(accountIds: readonly string[]): Promise<void>
  /** Posts everything and gives every lease back. Call it when no hold is open any more, and before the bank closes. */
  close(): Promise<void>
}

// Every so often a full disk is asked whether there is room again.
const reserveEveryMs = 1_000

/** A hold of this process, among its others. */
type UnderwayHere = Underway & Member & { readonly id: string }

/**
 * Billing without the database on a request's path: the right to spend is leased from it in larger pieces, what happens
 * is written to a local journal, and postings follow in batches. A crash is repaired from the journal at the next start.
 */
export async function openLeasedBilling(options: LeasedOptions): Promise<LeasedBilling> {
  const { disk, timers, log } = options
  const { records, last } = recoverJournal(disk)
  const owed = replay(records)
  const journal = new Journal(
    {
      disk,
      timers,
      sync: options.sync,
      fatal: (error) => options.fatal('the journal could not be made durable', error),
      ...(options.segmentBytes !== undefined && { segmentBytes: options.segmentBytes }),
    },
    last,
  )
  const underway = new Crowd<UnderwayHere>()
  const teller = new Teller({
    ...options,
    recorded: () => journal.durable(),
    // Written with whatever comes next: until then a crash only has postings sent again that the database knows.
    flushed: (ids) => journal.append({ type: 'FLUSHED', ids }),
  })
  let isFull = false
  let callOffFull: (() => void) | undefined
  if (!disk.reserve()) noticeFull()

  try {
    if ((await journal.begin(owed.map((posting) => endedBy(posting).record))) === 'full') noticeFull()
    await teller.open(owed)
  } catch (error) {
    // Whoever tries again starts from the files, and must not find this one still open.
    callOffFull?.()
    await journal.close().catch(() => {})
    throw error
  }
  if (owed.length > 0) log.warn({ postings: owed.length }, 'the journal of the last process was replayed')

  /** Written before anything that it allows can happen. */
  function append(record: JournalRecord | EncodedRecord): void {
    journal.append(record)
    if (journal.write() === 'full') noticeFull()
    if (journal.wantsRotation && journal.rotate(unfinished()) === 'full') noticeFull()
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

  function hasRoom(): boolean {
    try {
      return disk.reserve()
    } catch {
      return false // there may be other troubles than the room, such as too many open files: they pass too, or are met again
    }
  }

  function noticeFull(): void {
    if (isFull) return
    isFull = true
    log.error({}, 'the disk of the journal is full: nothing new is admitted')
    const tryAgain = () => {
      isFull = !hasRoom()
      if (isFull) callOffFull = timers.after(reserveEveryMs, tryAgain)
      else log.info({}, 'the disk of the journal has room again')
    }
    callOffFull = timers.after(reserveEveryMs, tryAgain)
  }

  function holdOf(id: string, order: Order): Hold {
    // Not on record yet: until something is sent, a hold without a record is a hold that never was.
    const hold: UnderwayHere = { id, order, sent: [], progress: undefined, place: -1 }
    underway.add(hold)

    /** Gives what is to be waited for before anybody may know of it, if anything. */
    function end(posting: Posting): Promise<void> | undefined {
      if (!underway.remove(hold)) throw new GatewayError('bug', `hold ${id} had ended already`)
      const ended = endedBy(posting)
      try {
        teller.end(order.amount, ended)
        append(ended.record)
      } catch (error) {
        // Its lease is off, or not even the reserve took it: posted without a record, it would be judged otherwise by a replay.
        options.fatal('the end of a request could not be recorded', error)
        throw error
      }
      teller.postLater()
      return journal.recorded()
    }

    return {
      kind: 'hold',
      amount: order.amount,
      sending(attempt: SentAttempt) {
        if (isFull) throw diskFull()
        // Behind the end of its hold, a replay would take it for another one.
        if (hold.place === -1) throw new GatewayError('bug', `hold ${id} has ended, and is sent`)
        // Before it is written: a new segment that begins with the same write must hold it too.
        hold.sent.push(attempt)
        try {
          append(hold.sent.length === 1 ? { type: 'HOLD', id, order, attempt } : { type: 'SEND', id, attempt })
        } catch (error) {
          hold.sent.pop()
          throw error
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
      return !isFull && teller.isOpen
    },
    get endings() {
      return teller.endings
    },
    reachedVendors: owed.filter(({ attempts }) => attempts.length > 0).map(({ request }) => request.id),
    async take(order): Promise<Taken> {
      if (isFull) throw diskFull()
      if (!teller.take(order.accountId, order.amount)) {
        const outcome = await teller.wait(order.accountId, order.amount)
        if (outcome.kind !== 'taken') return refused(outcome)
      }
      return { kind: 'hold', hold: holdOf(newId('hold'), order) }
    },
    post: () => teller.settleUp(),
    bringUpToDate: (accountIds) => teller.bringUpToDate(accountIds),
    async close() {
      try {
        await teller.close()
        await journal.close()
      } finally {
        callOffFull?.()
      }
    },
  }
}

function refused(outcome: Exclude<WaitOutcome, { kind: 'taken' }>): Taken {
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
