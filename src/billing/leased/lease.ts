import type { Nano } from '../../base/money.ts'

/** A request that waits for a refill of its account's lease. */
export type Waiter = {
  readonly amount: Nano
  readonly resolve: (outcome: WaitOutcome) => void
  /** Whether a turn has asked for its amount: only that turn's answer can refuse it. */
  isAsked: boolean
  /** How often other nodes have been asked to give back money for it. */
  recalls: number
}

export type WaitOutcome =
  | { readonly kind: 'taken' }
  | { readonly kind: 'no-funds'; readonly available: Nano }
  | { readonly kind: 'no-account' }
  | { readonly kind: 'unavailable' }

/**
 * The part of an account's balance that this node may spend without asking. Between turns, the amount that the database
 * has leased to this node is always exactly `left + open + unflushed`.
 */
export class Lease {
  left = 0n
  /** Held by requests under way. */
  open = 0n
  /** Charged, and not yet posted. */
  unflushed = 0n
  /** Charged since the last turn: the pace at which the lease is spent. */
  spentThisTurn = 0n
  readonly waiters: Waiter[] = []
  usedAt: number

  constructor(now: number) {
    this.usedAt = now
  }

  get total(): bigint {
    return this.left + this.open + this.unflushed
  }

  take(amount: bigint, now: number): boolean {
    this.usedAt = now
    // Requests that already wait come first.
    if (this.waiters.length > 0 || this.left < amount) return false
    this.left -= amount
    this.open += amount
    return true
  }

  end(amount: bigint, charge: bigint): void {
    this.open -= amount
    this.unflushed += charge
    this.spentThisTurn += charge
    this.left += amount - charge
    this.#check()
  }

  /** A charge of this node's previous process, on money that it had leased. */
  owe(charge: bigint): void {
    if (charge > this.left) throw new Unleased()
    this.left -= charge
    this.unflushed += charge
    this.#check()
  }

  flushed(charge: bigint): void {
    this.unflushed -= charge
    this.#check()
  }

  granted(amount: bigint): void {
    this.left += amount
  }

  /** The bank decides how much is leased to this node; what requests hold and owe, only the node knows. */
  correct(leased: bigint): void {
    this.left = leased - this.open - this.unflushed
    this.#check()
  }

  /** Serves in order of arrival, skips waiters that ask for more than is left, and gives those that stay unserved. */
  serve(): Waiter[] {
    const unserved: Waiter[] = []
    for (const waiter of this.waiters.splice(0)) {
      if (waiter.amount <= this.left) {
        this.left -= waiter.amount
        this.open += waiter.amount
        waiter.resolve({ kind: 'taken' })
      } else unserved.push(waiter)
    }
    return unserved
  }

  #check(): void {
    // The assertion stays on in production: a wrong lease must stop this node before it spends what it does not have.
    if (this.left < 0n || this.open < 0n || this.unflushed < 0n) {
      throw new Error(`a lease does not add up: left ${this.left}, open ${this.open}, unflushed ${this.unflushed}`)
    }
  }
}

/** A charge can only have been made on money that was leased to its own node, in the database of that time. */
class Unleased extends Error {
  constructor() {
    super(
      'a lease does not add up: the journal holds charges on money that is not leased to this node. Either the node was ' +
        'reclaimed, and its folder must not be used again; or the database is an older copy, or a standby that was behind: ' +
        'then move the folder "journal" away; or the file "node" was replaced: then restore it. Charges in the journal ' +
        "that are never posted show up when the vendors' bills are reconciled.",
    )
    this.name = 'Unleased'
  }
}
