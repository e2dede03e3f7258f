import type { Clock } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import { nano, type Nano } from '../base/money.ts'
import type { SpendingCap } from '../store/keys.ts'
import type { CapPeriod } from '../store/schema.ts'
import type { Billing, Ending, Hold, Order, Sale, TakeOutcome } from './billing.ts'
import { WrappedHold } from './wrapped-hold.ts'

/** Reads from the books what an account, or one of its keys, has spent since a moment. */
export type SpentSince = (by: { accountId: string; keyId?: string; since: number }) => Promise<Nano>
/** Reads what is held for its tasks, which may run for days and on any node. */
export type HeldByTasks = (by: { accountId: string; keyId?: string }) => Promise<Nano>

/**
 * What one key or account with a cap has spent and holds. There is one for all periods: holds that are open at
 * midnight, or when the cap's period is changed, count in the new period too.
 */
type Spending = {
  since: number
  /** What was charged and is held by tasks, as of the last reading of the books. */
  booked: bigint
  /** Charges and task holds of this node that the last reading may not include. */
  readonly unread: Set<Unread>
  /** The sum of `unread`. */
  unreadAmount: bigint
  /** Held by requests under way. */
  open: bigint
  readAt: number
}

/** A cap, the spending it is judged by, and the start of the period which that spending has to cover. */
type Judged = { readonly cap: SpendingCap; readonly spending: Spending; readonly since: number }

/**
 * An amount counted here until a reading of the books begins after it was booked. Until then a reading may include it
 * too: so it may be counted twice for a moment, but is never missed.
 */
type Unread = {
  readonly amount: bigint
  /** The amount is booked once the books have this many endings of this node. */
  readonly endings: number
}

// Other nodes spend too, so the books are read again this often. Over several nodes a cap is exact to within this time.
const readEveryMs = 5_000
const spendingsMax = 10_000

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
export function capSpending(
  billing: Billing,
  parts: { clock: Clock; spentSince: SpentSince; heldByTasks: HeldByTasks },
): CappedBilling {
  const { clock } = parts
  const spendings = new Map<string, Spending>()
  const readings = new Map<string, Promise<void>>()
  const isBooked = ({ endings }: Unread) => endings <= (billing.endings?.booked ?? 0)

  async function spendingOf(cap: SpendingCap, startedAt: number): Promise<Judged> {
    const name = nameOf(cap.of)
    // A request counts in the day it arrived on, even if its body or a linked file took until after midnight.
    const since = startOf(cap.period, startedAt)
    for (;;) {
      const known = spendings.get(name)
      if (known !== undefined && known.since === since && isFresh(known)) return { cap, spending: known, since }
      // Only one reading at a time, for which later requests wait, so that an older reading never replaces a newer one.
      let reading = readings.get(name)
      if (reading === undefined) {
        reading = read(name, cap.of, since).finally(() => readings.delete(name))
        readings.set(name, reading)
      }
      await reading
    }
  }

  function isFresh({ readAt }: Spending): boolean {
    return clock.monotonic() - readAt < readEveryMs
  }

  async function read(name: string, of: SpendingCap['of'], since: number): Promise<void> {
    const known = spendings.get(name)
    // Only amounts that are booked before the books are asked are sure to be in their answer.
    const answered = [...(known?.unread ?? [])].filter(isBooked)
    try {
      // Tasks are read first, so that a task that ends in between is in both sums rather than in neither.
      const tasks = await parts.heldByTasks(of)
      const spent = await parts.spentSince({ ...of, since })
      const current = known ?? { since, booked: 0n, unread: new Set(), unreadAmount: 0n, open: 0n, readAt: 0 }
      current.since = since
      current.booked = spent + tasks
      for (const one of answered) {
        current.unread.delete(one)
        current.unreadAmount -= one.amount
      }
      keep(name, current)
    } catch (thrown) {
      // Without the books, this node judges by its last reading of the period; without one, the request is refused.
      if (known === undefined || known.since !== since) {
        throw new GatewayError('overloaded', 'Spending caps cannot be checked at the moment.', {
          retryAfterSeconds: 1,
          cause: thrown,
        })
      }
      keep(name, known)
    }
  }

  /** Keeps the map in the order of the readings, the oldest first, for `dropIdle`. */
  function keep(name: string, spending: Spending): void {
    spending.readAt = clock.monotonic()
    spendings.delete(name)
    spendings.set(name, spending)
    if (spendings.size > spendingsMax) dropIdle()
  }

  /** Forgets spendings without open holds or unbooked charges: they are read from the books again when needed. */
  function dropIdle(): void {
    for (const [name, spending] of spendings) {
      if (isFresh(spending)) return
      const isIdle = spending.open === 0n && !readings.has(name)
      if (isIdle && [...spending.unread].every(isBooked)) spendings.delete(name)
    }
  }

  async function reserve({ caps, amount, startedAt }: CappedOrder): Promise<ReservedAmong | NoFunds> {
    const spendingsOf = () => Promise.all(caps.map((cap) => spendingOf(cap, startedAt)))
    let capped = await spendingsOf()
    // After midnight, and while a change of a cap's period spreads, requests of the old and the new period read by
    // turns, each for its own: so try again until the reading covers the period of this request.
    while (capped.some(({ spending, since }) => spending.since !== since)) capped = await spendingsOf()
    // Nothing is awaited between judging and counting, so that of two concurrent requests the second sees the first.
    for (const { cap, spending } of capped) {
      const left = cap.amount - spending.booked - spending.unreadAmount - spending.open
      // A free request exceeds no cap, not even one that was lowered below what is already spent.
      if (amount > 0n && amount > left) return { kind: 'no-funds', available: nano(left > 0n ? left : 0n), cap }
    }
    const among = capped.map(({ spending }) => spending)
    for (const spending of among) spending.open += amount
    let isOpen = true
    const giveBack = () => {
      if (isOpen) for (const spending of among) spending.open -= amount
      isOpen = false
    }
    const heldByTask = () => {
      if (isOpen) for (const spending of among) count(spending, { amount, endings: 0 })
      giveBack()
    }
    return { kind: 'reserved', among, giveBack, heldByTask }
  }

  function counting(hold: Hold, among: readonly Spending[], giveBack: () => void): Hold {
    const charged = (amount: Nano) => {
      const unread = { amount, endings: billing.endings?.made ?? 0 }
      for (const spending of among) count(spending, unread)
    }
    return new CappedHold(hold, charged, giveBack)
  }

  return {
    reserve,
    heldHere: (of) => nano(spendings.get(nameOf(of))?.open ?? 0n),
    async take(order): Promise<TakeOutcome> {
      if (order.caps.length === 0) return billing.take(order)
      const reserved = await reserve(order)
      if (reserved.kind === 'no-funds') return reserved
      const { among, giveBack } = reserved
      try {
        // Caps are not passed on: the journal does not record them, and a replay must not judge by them again.
        const taken = await billing.take({ ...order, caps: [] })
        if (taken.kind === 'hold') return { kind: 'hold', hold: counting(taken.hold, among, giveBack) }
        giveBack()
        return taken
      } catch (error) {
        giveBack()
        throw error
      }
    },
  }
}

class CappedHold extends WrappedHold {
  readonly #charged: (amount: Nano) => void
  readonly #giveBack: () => void

  constructor(hold: Hold, charged: (amount: Nano) => void, giveBack: () => void) {
    super(hold)
    this.#charged = charged
    this.#giveBack = giveBack
  }

  /** If settling fails, the amount counts as held until the hold is released. */
  override async settle(sale: Sale): Promise<Nano> {
    const charge = await super.settle(sale)
    this.#charged(charge)
    this.#giveBack()
    return charge
  }

  override release(ending: Ending): Promise<void> {
    return super.release(ending).finally(this.#giveBack)
  }
}

function nameOf({ accountId, keyId }: SpendingCap['of']): string {
  return `${accountId}/${keyId ?? ''}`
}

type ReservedAmong = Reserved & { readonly among: readonly Spending[] }

function count(spending: Spending, unread: Unread): void {
  spending.unread.add(unread)
  spending.unreadAmount += unread.amount
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
