import { nano, type Nano } from '../base/money.ts'
import type { SpendingCap } from '../store/keys.ts'
import type { CapPeriod } from '../store/schema.ts'
import type { Billing, Ending, Hold, Order, Sale, TakeOutcome } from './billing.ts'
import { countUnread, Spendings, type Judged, type Spending, type SpendingsParts } from './spendings.ts'
import { WrappedHold } from './wrapped-hold.ts'

type NoFunds = Exclude<TakeOutcome, { kind: 'hold' }>

/** What caps judge an order by. */
type CappedOrder = Pick<Order, 'amount' | 'caps' | 'startedAt'>

/** An amount that counts against its caps until it is given back, or until the books know it as held by a task. */
export type Reserved = {
  readonly kind: 'reserved'
  readonly giveBack: () => void
  readonly heldByTask: () => void
}

export type CappedBilling = Billing & {
  /** For holds that are taken elsewhere: a task's hold is only a row of the database. */
  reserve(order: CappedOrder): Promise<Reserved | NoFunds>
  /** What requests under way on this node hold against the caps of this key or account. */
  heldHere(of: SpendingCap['of']): Nano
}

/** Billing that also keeps to spending caps: a request whose hold would pass one is refused like an empty balance. */
export function capSpending(billing: Billing, parts: SpendingsParts): CappedBilling {
  const spendings = new Spendings(parts, () => billing.endings?.booked ?? 0)

  async function reserve({ caps, amount, startedAt }: CappedOrder): Promise<ReservedAmong | NoFunds> {
    // A request counts in the day it arrived on, even if its body or a linked file took until after midnight.
    const judging = () => Promise.all(caps.map((cap) => spendings.judging(cap, startOf(cap.period, startedAt))))
    for (let isReread = false; ; isReread = true) {
      let capped = await judging()
      // After midnight, and while a change of a cap's period spreads, requests of the old and the new period read by
      // turns, each for its own: so try again until the reading covers the period of this request.
      while (capped.some(({ spending, since }) => spending.since !== since)) capped = await judging()
      // Nothing is awaited between judging and counting, so that of two concurrent requests the second sees the first.
      // A free request exceeds no cap, not even one that was lowered below what is already spent.
      const exceeded = capped.filter((judged) => amount > 0n && amount > leftOf(judged))
      const refusals = exceeded.map(refusalBy)
      const [first] = refusals
      if (first === undefined) return reserveAmong(capped, amount)
      if (isReread) return first
      const areOverstated = await Promise.all(exceeded.map((judged) => spendings.isOverstated(judged)))
      const refused = refusals[areOverstated.indexOf(false)]
      if (refused !== undefined) return refused
    }
  }

  return {
    reserve,
    heldHere: (of) => spendings.openOf(of),
    async take(order): Promise<TakeOutcome> {
      if (order.caps.length === 0) return billing.take(order)
      const reserved = await reserve(order)
      if (reserved.kind === 'no-funds') return reserved
      try {
        // Caps are not passed on: the journal does not record them, and a replay must not judge by them again.
        const taken = await billing.take({ ...order, caps: [] })
        if (taken.kind === 'hold') return { kind: 'hold', hold: new CappedHold(taken.hold, reserved, billing) }
        reserved.giveBack()
        return taken
      } catch (error) {
        reserved.giveBack()
        throw error
      }
    },
  }
}

/** A hold that counts against its caps with its amount while it is open, and with its charge after that. */
class CappedHold extends WrappedHold {
  readonly #reserved: ReservedAmong
  readonly #billing: Pick<Billing, 'endings'>

  constructor(hold: Hold, reserved: ReservedAmong, billing: Pick<Billing, 'endings'>) {
    super(hold)
    this.#reserved = reserved
    this.#billing = billing
  }

  /** If settling fails, the amount counts as held until the hold is released. */
  override async settle(sale: Sale): Promise<Nano> {
    const { among, giveBack } = this.#reserved
    const readAts = among.map(({ readAt }) => readAt)
    const charge = await super.settle(sale)
    const endings = this.#billing.endings?.made ?? 0
    for (const [at, spending] of among.entries()) {
      // It may have been booked, and read, before its settlement returned.
      const mayBeRead = spending.readAt !== readAts[at]
      countUnread(spending, { amount: charge, endings, isTask: false, mayBeRead })
    }
    giveBack()
    return charge
  }

  override release(ending: Ending): Promise<void> {
    return super.release(ending).finally(this.#reserved.giveBack)
  }
}

type ReservedAmong = Reserved & { readonly among: readonly Spending[] }

function reserveAmong(capped: readonly Judged[], amount: Nano): ReservedAmong {
  const among = capped.map(({ spending }) => spending)
  for (const spending of among) spending.open += amount
  let isOpen = true
  const giveBack = () => {
    if (isOpen) for (const spending of among) spending.open -= amount
    isOpen = false
  }
  const heldByTask = () => {
    if (isOpen) {
      for (const spending of among) countUnread(spending, { amount, endings: 0, isTask: true, mayBeRead: false })
    }
    giveBack()
  }
  return { kind: 'reserved', among, giveBack, heldByTask }
}

function leftOf({ cap, spending }: Judged): bigint {
  return cap.amount - spending.booked - spending.unreadAmount - spending.open
}

function refusalBy(judged: Judged): NoFunds {
  const left = leftOf(judged)
  return { kind: 'no-funds', available: nano(left > 0n ? left : 0n), cap: judged.cap }
}

/** When the current day or month began, in UTC; 0 for a cap on the total. */
export function startOf(period: CapPeriod, now: number): number {
  if (period === 'total') return 0
  const date = new Date(now)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), period === 'day' ? date.getUTCDate() : 1)
}

/** When the next day or month begins, in UTC; undefined for a cap on the total, which never ends. */
export function endOf(period: CapPeriod, now: number): number | undefined {
  if (period === 'total') return undefined
  const date = new Date(startOf(period, now))
  return period === 'day' ? date.setUTCDate(date.getUTCDate() + 1) : date.setUTCMonth(date.getUTCMonth() + 1)
}
