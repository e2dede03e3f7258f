import { IntrusiveSet } from '../../base/intrusive-set.ts'
import type { Billing, TakeOutcome } from '../billing.ts'
import { accountDisabled, ledgerAway } from '../refusals.ts'
import { DiskFull } from './disk.ts'
import { DiskRoom } from './disk-room.ts'
import { Journal, recoverJournal, type JournalOptions } from './journal.ts'
import type { WaitOutcome } from './lease.ts'
import { diskFull, LeasedHold, type Desk } from './leased-hold.ts'
import { endedBy, type EncodedRecord, type JournalRecord } from './records.ts'
import { replay } from './replay.ts'
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
  const underway = new IntrusiveSet<LeasedHold>()
  /** The write that requests of the same moment share. */
  let writing: Promise<void> | undefined
  /** The last write with an ending in it. A turn waits for it, and for no write of attempts alone, which may fail. */
  let endingsWriting: Promise<void> | undefined
  const teller = new Teller({
    ...options,
    recorded,
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

  const desk: Desk = { underway, teller, journal, room, log, fatal: options.fatal, write, writeWithOthers, writeEnding }

  function write(record: JournalRecord | EncodedRecord): void {
    journal.append(record)
    writeAppended()
  }

  /** Requests go in step (docs/decisions/0016), so the records of one step can share one write. */
  function writeWithOthers(record: JournalRecord | EncodedRecord): Promise<void> {
    journal.append(record)
    return (writing ??= writeStep())
  }

  function writeEnding(record: EncodedRecord): Promise<void> {
    endingsWriting = writeWithOthers(record)
    return endingsWriting
  }

  async function writeStep(): Promise<void> {
    await Promise.resolve() // until every request has taken this step
    writing = undefined
    writeAppended()
  }

  async function recorded(): Promise<void> {
    await endingsWriting
    await journal.durable()
  }

  function writeAppended(): void {
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
      return { kind: 'hold', hold: new LeasedHold(order, desk) }
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
