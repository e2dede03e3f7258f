import type { Clock } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import { nano, type Nano } from '../base/money.ts'
import type { SpendingCap } from '../store/keys.ts'
import type { CapPeriod } from '../store/schema.ts'
import type { Billing, Ending, Hold, Order, Sale, Taken } from './funds.ts'
import { WrappedHold } from './wrapped-hold.ts'

/** What the books say that an account, or one of its keys, has spent since a moment. */
export type SpentSince = (by: { accountId: string; keyId?: string; since: number }) => Promise<Nano>
/** What is set aside for its tasks, which may run for days and on any node. */
export type HeldByTasks = (by: { accountId: string; keyId?: string }) => Promise<Nano>

/**
 * One for each key or account with a cap, whatever its period: holds that are open at midnight, or when the period is
 * changed, belong to the new one too.
 */
type Spending = {
  since: number
  /** Charged, and held by tasks, as the books said when they were read last. */
  booked: bigint
  /** The same, done here, and perhaps not in that reading. */
  readonly unread: Set<Unread>
  /** The sum of those. */
  unreadAmount: bigint
  /** Held by requests under way. */
  open: bigint
  readAt: number
}

/** What a cap is judged by, and the moment from which on that has to count. */
type Judged = { readonly cap: SpendingCap; readonly spending: Spending; readonly since: number }

/** Counts until the books were read after they had it. One that they had already is counted twice for that long, and never not at all. */
type Unread = {
  readonly amount: bigint
  /** The books have it once they have as many endings of this node. */
  readonly endings: number
}

// Other nodes spend too: what the books say is read again this often. A cap over several nodes is exact to that.
const readEveryMs = 5_000
const spendingsMax = 10_000

type NoFunds = Exclude<Taken, { kind: 'hold' }>

/** An amount that counts against its caps until it is given back, or is known to the books as a task's. */
export type Reserved = {
  readonly kind: 'reserved'
  readonly giveBack: () => void
  readonly heldByTask: () => void
}

export type CappedBilling = Billing & {
  /** For holds that are taken elsewhere: a task's is in the database alone. */
  reserve(order: Pick<Order, 'amount' | 'caps'>): Promise<Reserved | NoFunds>
  /** What requests under way on this node hold of what is capped. */
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

  async function spendingOf(cap: SpendingCap): Promise<Judged> {
    const name = nameOf(cap.of)
    for (;;) {
      const since = startOf(cap.period, clock.now())
      const known = spendings.get(name)
      if (known !== undefined && known.since === since && isFresh(known)) return { cap, spending: known, since }
      // One at a time, and whoever comes meanwhile waits for it: an older reading never takes the place of a newer one.
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
    // What the books have before they are asked is in their answer, and what they get meanwhile may not be.
    const answered = [...(known?.unread ?? [])].filter(isBooked)
    try {
      // In this order: a task that ends in between is in both, and not in neither.
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
      // Without the books, what this node knows has to do; without that, nobody may spend.
      if (known === undefined || known.since !== since) {
        throw new GatewayError('overloaded', 'Spending caps cannot be checked at the moment.', {
          retryAfterSeconds: 1,
          cause: thrown,
        })
      }
      keep(name, known)
    }
  }

  /** In the order in which they were read. */
  function keep(name: string, spending: Spending): void {
    spending.readAt = clock.monotonic()
    spendings.delete(name)
    spendings.set(name, spending)
    if (spendings.size > spendingsMax) dropIdle()
  }

  /** Forgets what nobody is spending from: it is read from the books again when it is needed. */
  function dropIdle(): void {
    for (const [name, spending] of spendings) {
      if (isFresh(spending)) return
      const isIdle = spending.open === 0n && !readings.has(name)
      if (isIdle && [...spending.unread].every(isBooked)) spendings.delete(name)
    }
  }

  async function reserve({ caps, amount }: Pick<Order, 'amount' | 'caps'>): Promise<ReservedAmong | NoFunds> {
    let capped = await Promise.all(caps.map(spendingOf))
    // While the change of a period is on its way, requests come with the old one too, and each reads for its own.
    while (capped.some(({ spending, since }) => spending.since !== since)) {
      capped = await Promise.all(caps.map(spendingOf))
    }
    // Judged and counted without a pause in between: of two that come at once, the second sees the first.
    for (const { cap, spending } of capped) {
      const left = cap.amount - spending.booked - spending.unreadAmount - spending.open
      // What is free passes no cap, not even one that was lowered below what is spent.
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
    async take(order): Promise<Taken> {
      if (order.caps.length === 0) return billing.take(order)
      const reserved = await reserve(order)
      if (reserved.kind === 'no-funds') return reserved
      const { among, giveBack } = reserved
      try {
        // Caps end here: the journal has no words for them, and a replay must not judge by them again.
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

  /** One that fails counts as held until it is released. */
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

/** The beginning of the running day or month, in UTC; of everything for a cap on the total. */
export function startOf(period: CapPeriod, now: number): number {
  if (period === 'total') return 0
  const date = new Date(now)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), period === 'day' ? date.getUTCDate() : 1)
}

/** When the next day or month begins; a cap on the total never ends. */
export function endOf(period: CapPeriod, now: number): number | undefined {
  if (period === 'total') return undefined
  const date = new Date(startOf(period, now))
  return period === 'day' ? date.setUTCDate(date.getUTCDate() + 1) : date.setUTCMonth(date.getUTCMonth() + 1)
}
