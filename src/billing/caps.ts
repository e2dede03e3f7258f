import type { Clock } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import { nano, type Nano } from '../base/money.ts'
import type { SpendingCap } from '../store/keys.ts'
import type { CapPeriod } from '../store/schema.ts'
import type { Billing, Hold, Order, Taken } from './funds.ts'

/** What the books say that an account, or one of its keys, has spent since a moment. */
export type SpentSince = (by: { accountId: string; keyId?: string; since: number }) => Promise<Nano>
/** What is set aside for its tasks, which may run for days and on any node. */
export type HeldByTasks = (by: { accountId: string; keyId?: string }) => Promise<Nano>

/** One for each cap, over all its periods: holds that are open at midnight belong to the new day too. */
type Spending = {
  since: number
  /** Posted, as far as this node knows. */
  spent: bigint
  /** Held by requests under way. */
  open: bigint
  /** Held by tasks, as far as this node knows. */
  tasks: bigint
  readAt: number
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
}

/** Billing that also keeps to spending caps: a request whose hold would pass one is refused like an empty balance. */
export function capSpending(
  billing: Billing,
  parts: { clock: Clock; spentSince: SpentSince; heldByTasks: HeldByTasks },
): CappedBilling {
  const { clock } = parts
  const spendings = new Map<string, Spending>()

  async function spendingOf({ of, period }: SpendingCap): Promise<Spending> {
    const since = startOf(period, clock.now())
    const name = `${of.accountId}/${of.keyId ?? ''}/${period}`
    const known = spendings.get(name)
    if (known !== undefined && known.since === since && clock.monotonic() - known.readAt < readEveryMs) return known
    const read = Promise.all([parts.spentSince({ ...of, since }), parts.heldByTasks(of)])
    const [booked, tasks] = await read.catch((thrown: unknown): [Nano, Nano] => {
      // Without the books, what this node knows has to do; without that, nobody may spend.
      if (known !== undefined && known.since === since) return [nano(known.spent), nano(known.tasks)]
      throw new GatewayError('overloaded', 'Spending caps cannot be checked at the moment.', {
        retryAfterSeconds: 1,
        cause: thrown,
      })
    })
    const current = spendings.get(name) ?? { since, spent: 0n, open: 0n, tasks: 0n, readAt: 0 }
    // What is charged and not yet booked is in our own sum alone; a new period begins with what the books say.
    if (current.since !== since || booked > current.spent) current.spent = booked
    current.tasks = tasks
    current.since = since
    current.readAt = clock.monotonic()
    if (spendings.size >= spendingsMax) dropIdle(spendings)
    spendings.set(name, current)
    return current
  }

  async function reserve({ caps, amount }: Pick<Order, 'amount' | 'caps'>): Promise<ReservedAmong | NoFunds> {
    const capped = await Promise.all(caps.map(async (cap) => ({ cap, spending: await spendingOf(cap) })))
    // Judged and counted without a pause in between: of two that come at once, the second sees the first.
    for (const { cap, spending } of capped) {
      const left = cap.amount - spending.spent - spending.open - spending.tasks
      if (amount > left) return { kind: 'no-funds', available: nano(left > 0n ? left : 0n), cap }
    }
    const among = capped.map(({ spending }) => spending)
    for (const spending of among) spending.open += amount
    let isOpen = true
    const giveBack = () => {
      if (isOpen) for (const spending of among) spending.open -= amount
      isOpen = false
    }
    const heldByTask = () => {
      // The books are read again in a moment, and then say so themselves.
      if (isOpen) for (const spending of among) spending.tasks += amount
      giveBack()
    }
    return { kind: 'reserved', among, giveBack, heldByTask }
  }

  return {
    reserve,
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

type ReservedAmong = Reserved & { readonly among: readonly Spending[] }

function counting(hold: Hold, spendings: readonly Spending[], giveBack: () => void): Hold {
  return {
    kind: 'hold',
    amount: hold.amount,
    sending: (attempt) => hold.sending(attempt),
    mark: (progress) => hold.mark(progress),
    async settle(sale) {
      try {
        const charge = await hold.settle(sale)
        for (const spending of spendings) spending.spent += charge
        return charge
      } finally {
        giveBack()
      }
    },
    release: (ending) => hold.release(ending).finally(giveBack),
  }
}

/** Forgets what nobody is spending from: it is read from the books again when it is needed. */
function dropIdle(spendings: Map<string, Spending>): void {
  for (const [name, { open }] of spendings) if (open === 0n) spendings.delete(name)
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
