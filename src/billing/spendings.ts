import type { Clock } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import { nano, type Nano } from '../base/money.ts'
import type { SpendingCap } from '../store/keys.ts'

/** Reads from the books what an account, or one of its keys, has spent since a moment. */
export type SpentSince = (by: { accountId: string; keyId?: string; since: number }) => Promise<Nano>
/** Reads what is held for its tasks, which may run for days and on any node. */
export type HeldByTasks = (by: { accountId: string; keyId?: string }) => Promise<Nano>

/**
 * What one key or account with a cap has spent and holds. There is one for all periods: holds that are open at
 * midnight, or when the cap's period is changed, count in the new period too.
 */
export type Spending = {
  since: number
  /** What was charged and is held by tasks, as of the last reading of the books. */
  booked: bigint
  /** The part of `booked` that is held by tasks. */
  tasks: bigint
  /** Charges and task holds of this node that the last reading may not include. */
  readonly unread: Set<Unread>
  /** The sum of `unread`. */
  unreadAmount: bigint
  /** Held by requests under way. */
  open: bigint
  readAt: number
}

/**
 * An amount counted here until a reading of the books begins after it was booked. Until then a reading may include it
 * too: so it may be counted twice, but is never missed. Before a request is refused for it, the books are read again.
 */
export type Unread = {
  readonly amount: bigint
  /** The amount is booked once the books have this many endings of this node. */
  readonly endings: number
  readonly isTask: boolean
  /** Whether the last reading may include it. */
  mayBeRead: boolean
}

/** A cap, the spending it is judged by, and the start of the period which that spending has to cover. */
export type Judged = { readonly cap: SpendingCap; readonly spending: Spending; readonly since: number }

export function countUnread(spending: Spending, unread: Unread): void {
  spending.unread.add(unread)
  spending.unreadAmount += unread.amount
}

export type SpendingsParts = {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly spentSince: SpentSince
  readonly heldByTasks: HeldByTasks
}

// Other nodes spend too, so the books are read again this often. Over several nodes a cap is exact except for what
// others posted within this time or have yet to post, and for requests under way there, whose holds are not in the
// books.
const readEveryMs = 5_000
const spendingsMax = 10_000

/** The spendings of all keys and accounts with a cap, as far as this node has had to know them lately. */
export class Spendings {
  readonly #parts: SpendingsParts
  /** How many endings of this node the books have. */
  readonly #booked: () => number
  readonly #known = new Map<string, Spending>()
  readonly #readings = new Map<string, Promise<void>>()

  constructor(parts: SpendingsParts, booked: () => number) {
    this.#parts = parts
    this.#booked = booked
  }

  /** Reads the books, unless that was done a moment ago for a period with this start. */
  async judging(cap: SpendingCap, since: number): Promise<Judged> {
    const name = nameOf(cap.of)
    for (;;) {
      const known = this.#known.get(name)
      if (known !== undefined && known.since === since && this.#isFresh(known)) return { cap, spending: known, since }
      // Only one reading at a time, for which later requests wait, so that an older reading never replaces a newer one.
      let reading = this.#readings.get(name)
      if (reading === undefined) {
        reading = this.#read(name, cap.of, since).finally(() => this.#readings.delete(name))
        this.#readings.set(name, reading)
      }
      await reading
    }
  }

  /**
   * For a request that would be refused: the last reading may have included what is counted as unread too, and tasks
   * may have ended since, on any node, and given back what they held. Only then are the books to be read again, because
   * a client may go on asking. Says whether to judge anew.
   */
  async isOverstated({ cap, spending }: Judged): Promise<boolean> {
    const { readAt } = spending
    const isTwice = [...spending.unread].some((one) => one.mayBeRead && this.#isBooked(one))
    const isLess = isTwice || (await this.#haveTasksEnded(cap.of, countedForTasks(spending)))
    // Another request may have had them read meanwhile.
    if (spending.readAt !== readAt) return true
    if (isLess) spending.readAt = Number.NEGATIVE_INFINITY
    return isLess
  }

  async #haveTasksEnded(of: SpendingCap['of'], counted: bigint): Promise<boolean> {
    if (counted === 0n) return false
    const held = await this.#parts.heldByTasks(of).catch(() => counted)
    return held < counted
  }

  /** What requests under way on this node hold. */
  openOf(of: SpendingCap['of']): Nano {
    return nano(this.#known.get(nameOf(of))?.open ?? 0n)
  }

  #isFresh({ readAt }: Spending): boolean {
    return this.#parts.clock.monotonic() - readAt < readEveryMs
  }

  readonly #isBooked = ({ endings }: Unread): boolean => endings <= this.#booked()

  async #read(name: string, of: SpendingCap['of'], since: number): Promise<void> {
    const known = this.#known.get(name)
    // Only amounts that are booked before the books are asked are sure to be in their answer.
    const answered = [...(known?.unread ?? [])].filter(this.#isBooked)
    try {
      // Tasks are read first, so that a task that ends in between is in both sums rather than in neither.
      const tasks = await this.#parts.heldByTasks(of)
      const spent = await this.#parts.spentSince({ ...of, since })
      const current = known ?? { since, booked: 0n, tasks, unread: new Set(), unreadAmount: 0n, open: 0n, readAt: 0 }
      current.since = since
      current.booked = spent + tasks
      current.tasks = tasks
      for (const one of answered) {
        current.unread.delete(one)
        current.unreadAmount -= one.amount
      }
      for (const one of current.unread) one.mayBeRead = true
      this.#keep(name, current)
    } catch (thrown) {
      // Without the books, this node judges by its last reading of the period; without one, the request is refused.
      if (known === undefined || known.since !== since) {
        throw new GatewayError('overloaded', 'Spending caps cannot be checked at the moment.', {
          retryAfterSeconds: 1,
          cause: thrown,
        })
      }
      this.#keep(name, known)
    }
  }

  /** Keeps the map in the order of the readings, the oldest first, for `#dropIdle`. */
  #keep(name: string, spending: Spending): void {
    spending.readAt = this.#parts.clock.monotonic()
    this.#known.delete(name)
    this.#known.set(name, spending)
    if (this.#known.size > spendingsMax) this.#dropIdle()
  }

  /** Forgets spendings without open holds or unbooked charges: they are read from the books again when needed. */
  #dropIdle(): void {
    for (const [name, spending] of this.#known) {
      if (this.#isFresh(spending)) return
      const isIdle = spending.open === 0n && !this.#readings.has(name)
      if (isIdle && [...spending.unread].every(this.#isBooked)) this.#known.delete(name)
    }
  }
}

function countedForTasks({ tasks, unread }: Spending): bigint {
  let counted = tasks
  for (const { amount, isTask } of unread) if (isTask) counted += amount
  return counted
}

function nameOf({ accountId, keyId }: SpendingCap['of']): string {
  return `${accountId}/${keyId ?? ''}`
}
