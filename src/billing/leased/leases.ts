import type { Clock } from '../../base/clock.ts'
import { nano, zeroNano } from '../../base/money.ts'
import type { Turn } from '../../store/turns.ts'
import { Lease } from './lease.ts'

// A refill asks for up to this many times the hold that caused it, so that the next holds need not ask.
const holdsAhead = 20n
// It also asks for what this many turns spend at the pace of the last one. A lease that would last for fewer than
// `turnsLeftMin` turns is refilled along with the next turn, before a request has to wait: when every sixty requests
// needed a turn of their own, turns were most of their cost.
const turnsAhead = 8n
const turnsLeftMin = 2n

/** The leases of a node, by account. */
export class Leases {
  readonly #clock: Clock
  readonly #byAccount = new Map<string, Lease>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  of(accountId: string): Lease {
    let lease = this.#byAccount.get(accountId)
    if (lease === undefined) {
      lease = new Lease(this.#clock.monotonic())
      this.#byAccount.set(accountId, lease)
    }
    return lease
  }

  has(accountId: string): boolean {
    return this.#byAccount.has(accountId)
  }

  get accounts(): Iterable<string> {
    return this.#byAccount.keys()
  }

  /** The accounts whose lease has something left that could be given back. */
  get returnable(): string[] {
    return [...this.#byAccount].filter(([, { left }]) => left > 0n).map(([accountId]) => accountId)
  }

  get holdsAny(): boolean {
    for (const { total } of this.#byAccount.values()) if (total > 0n) return true
    return false
  }

  get hasWaiters(): boolean {
    for (const { waiters } of this.#byAccount.values()) if (waiters.length > 0) return true
    return false
  }

  /** The accounts whose lease was not used for this long. Leases of which nothing remains at all are forgotten. */
  idleFor(ms: number): string[] {
    const since = this.#clock.monotonic() - ms
    for (const [accountId, { total, usedAt, waiters }] of this.#byAccount) {
      if (total === 0n && usedAt <= since && waiters.length === 0) this.#byAccount.delete(accountId)
    }
    return this.returnable.filter((accountId) => this.of(accountId).usedAt <= since)
  }

  /**
   * What to ask of the bank: more for accounts with waiters and for leases that run low, and to take back what is left
   * of recalled leases, which new holds cannot use from this moment on.
   */
  ask(recalled: ReadonlySet<string>): Pick<Turn, 'takes' | 'returns'> {
    const takes: Turn['takes'][number][] = []
    const returns: Turn['returns'][number][] = []
    for (const [accountId, lease] of this.#byAccount) {
      const pace = lease.spentThisTurn
      lease.spentThisTurn = 0n
      if (lease.waiters.length > 0) {
        const largest = lease.waiters.reduce((most, { amount }) => (amount > most ? amount : most), zeroNano)
        for (const waiter of lease.waiters) waiter.isAsked = true
        const extra = larger(largest * holdsAhead, pace * turnsAhead)
        const waiting = lease.waiters.map(({ amount }) => amount)
        takes.push({ accountId, waiting, left: nano(lease.left), extra: nano(extra) })
      } else if (recalled.has(accountId)) {
        if (lease.left === 0n) continue
        returns.push({ accountId, amount: nano(lease.left) })
        lease.left = 0n
      } else if (lease.left < pace * turnsLeftMin) {
        takes.push({ accountId, waiting: [], left: nano(lease.left), extra: nano(pace * turnsAhead - lease.left) })
      }
    }
    return { takes, returns }
  }

  /** After an answer was lost: adjusts every lease to what the bank says it has leased to this node. */
  correct(leased: ReadonlyMap<string, bigint>): void {
    for (const accountId of new Set([...leased.keys(), ...this.#byAccount.keys()])) {
      this.of(accountId).correct(leased.get(accountId) ?? 0n)
    }
  }

  /** Tells every waiter that the bank cannot be asked at the moment. */
  refuseWaiters(): void {
    for (const { waiters } of this.#byAccount.values()) {
      for (const waiter of waiters.splice(0)) waiter.resolve({ kind: 'unavailable' })
    }
  }
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
