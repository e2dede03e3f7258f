import { GatewayError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { IntrusiveSet, Member } from '../../base/intrusive-set.ts'
import type { Log } from '../../base/log.ts'
import { zeroNano, type Nano } from '../../base/money.ts'
import { chargeWithin } from '../../store/postings.ts'
import type { AttemptRecord } from '../../store/requests.ts'
import type { Posting } from '../../store/turns.ts'
import type { Ending, Hold, Order, Progress, Sale, SentAttempt } from '../billing.ts'
import { logExcess, recordOf } from '../record.ts'
import { DiskFull } from './disk.ts'
import type { DiskRoom } from './disk-room.ts'
import type { Journal } from './journal.ts'
import { endedBy, type EncodedRecord, type JournalRecord } from './records.ts'
import type { Underway } from './replay.ts'
import type { Teller } from './teller.ts'

/** Where all holds of this process are kept and recorded. */
export type Desk = {
  readonly underway: IntrusiveSet<LeasedHold>
  readonly teller: Pick<Teller, 'end' | 'postLater'>
  readonly journal: Pick<Journal, 'recorded'>
  readonly room: Pick<DiskRoom, 'isFull'>
  readonly log: Log
  /** Called when this process must not go on. */
  readonly fatal: (why: string, cause: unknown) => void
  /** The record is written once this returns. */
  write(record: JournalRecord | EncodedRecord): void
  /** The record is written once this resolves: only then may the call follow. */
  writeWithOthers(record: JournalRecord): Promise<void>
  /** The same for the record of an ending: only then may the end of the answer follow, or a turn post it. */
  writeEnding(record: EncodedRecord): Promise<void>
}

/**
 * Money taken from a lease for one request. The journal has it from the first call on: as long as nothing was sent, a
 * hold that a crash forgets has cost nothing.
 */
export class LeasedHold implements Hold, Underway, Member {
  readonly id = newId('hold')
  readonly order: Order
  readonly sent: SentAttempt[] = []
  progress: Progress | undefined
  /** Its place among the holds under way; -1 once it has ended. */
  place = -1
  readonly #desk: Desk

  constructor(order: Order, desk: Desk) {
    this.order = order
    this.#desk = desk
    desk.underway.add(this)
  }

  async sending(attempt: SentAttempt): Promise<void> {
    const { id, order, sent } = this
    if (this.#desk.room.isFull) throw diskFull()
    // Written after the end of its hold, the record would look to a replay like another hold.
    if (this.place === -1) throw new GatewayError('bug', `hold ${id} has ended, and is sent`)
    // Added before the write, which may begin a new segment: its copy of the hold must include this attempt.
    sent.push(attempt)
    try {
      const isFirst = sent.length === 1
      await this.#desk.writeWithOthers(isFirst ? { type: 'HOLD', id, order, attempt } : { type: 'SEND', id, attempt })
    } catch (error) {
      sent.splice(sent.indexOf(attempt), 1)
      throw error instanceof DiskFull ? diskFull() : error
    }
  }

  mark(workOut: () => Progress | undefined): void {
    const progress = workOut()
    if (progress === undefined) return
    this.progress = progress
    this.#desk.write({ type: 'MARK', id: this.id, progress })
  }

  async settle(sale: Sale): Promise<Nano> {
    const { id, order } = this
    const posting = settlement(id, order, sale)
    await this.#end(posting)
    logExcess(this.#desk.log, { request: order.requestId, model: order.model }, posting.excess)
    return posting.charge
  }

  async release(ending: Ending): Promise<void> {
    if (this.place !== -1) await this.#end(release(this.id, this.order, ending))
  }

  /** Ends the hold. The caller awaits this before it tells the client. */
  async #end(posting: Posting): Promise<void> {
    const { underway, teller, journal, fatal } = this.#desk
    if (!underway.remove(this)) throw new GatewayError('bug', `hold ${this.id} had ended already`)
    const ended = endedBy(posting)
    try {
      teller.end(this.order.amount, ended)
      await this.#desk.writeEnding(ended.record)
    } catch (error) {
      // The lease's sums are wrong, or not even the disk's reserve took the record. The node must stop: were the
      // ending posted without a record, a replay would come to another outcome.
      fatal('the end of a request could not be recorded', error)
      throw error
    }
    teller.postLater()
    const recorded = journal.recorded()
    if (recorded !== undefined) await recorded
  }
}

export function diskFull(): GatewayError {
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
