import type { Clock } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import { nano, type Nano } from '../base/money.ts'
import type { SpendingCap } from '../store/keys.ts'
import type { CapPeriod } from '../store/schema.ts'
import type { Billing, Hold, Taken } from './funds.ts'

/** What the books say that an account, or one of its keys, has spent since a moment. */
export type SpentSince = (by: { accountId: string; keyId?: string; since: number }) => Promise<Nano>

/** One for each cap, over all its periods: holds that are open at midnight belong to the new day too. */
type Spending = {
  since: number
  /** Posted, as far as this node knows. */
  spent: bigint
  /** Held by requests under way. */
  open: bigint
  readAt: number
}

// Other nodes spend too: what the books say is read again this often. A cap over several nodes is exact to that.
const readEveryMs = 5_000
const spendingsMax = 10_000

/** Billing that also keeps to spending caps: a request whose hold would pass one is refused like an empty balance. */
export function capSpending(billing: Billing, parts: { clock: Clock; spentSince: SpentSince }): Billing {
  const { clock } = parts
  const spendings = new Map<string, Spending>()

  async function spendingOf({ of, period }: SpendingCap): Promise<Spending> {
    const since = startOf(period, clock.now())
    const name = `${of.accountId}/${of.keyId ?? ''}/${period}`
    const known = spendings.get(name)
    if (known !== undefined && known.since === since && clock.monotonic() - known.readAt < readEveryMs) return known
    const booked = await parts.spentSince({ ...of, since }).catch((thrown: unknown) => {
      // Without the books, what this node knows has to do; without that, nobody may spend.
      if (known !== undefined && known.since === since) return nano(known.spent)
      throw new GatewayError('overloaded', 'Spending caps cannot be checked at the moment.', {
        retryAfterSeconds: 1,
        cause: thrown,
      })
    })
    const current = spendings.get(name) ?? { since, spent: 0n, open: 0n, readAt: 0 }
    // What is charged and not yet booked is in our own sum alone; a new period begins with what the books say.
    if (current.since !== since || booked > current.spent) current.spent = booked
    current.since = since
    current.readAt = clock.monotonic()
    if (spendings.size >= spendingsMax) dropIdle(spendings)
    spendings.set(name, current)
    return current
  }

  return {
    async take(order): Promise<Taken> {
      if (order.caps.length === 0) return billing.take(order)
      const capped = await Promise.all(order.caps.map(async (cap) => ({ cap, spending: await spendingOf(cap) })))
      // Judged and counted without a pause in between: of two that come at once, the second sees the first.
      for (const { cap, spending } of capped) {
        const left = cap.amount - spending.spent - spending.open
        if (order.amount > left) return { kind: 'no-funds', available: nano(left > 0n ? left : 0n), cap }
      }
      const touched = capped.map(({ spending }) => spending)
      for (const spending of touched) spending.open += order.amount
      let isOpen = true
      const giveBack = () => {
        if (isOpen) for (const spending of touched) spending.open -= order.amount
        isOpen = false
      }
      try {
        // Caps end here: the journal has no words for them, and a replay must not judge by them again.
        const taken = await billing.take({ ...order, caps: [] })
        if (taken.kind === 'hold') return { kind: 'hold', hold: counting(taken.hold, touched, giveBack) }
        giveBack()
        return taken
      } catch (error) {
        giveBack()
        throw error
      }
    },
  }
}

function counting(hold: Hold, spendings: readonly Spending[], giveBack: () => void): Hold {
  return {
    ...hold,
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
