import type { Nano } from '../../base/money.ts'

/** Waits for a refill of its account's lease. */
export type Waiter = {
  readonly amount: Nano
  readonly resolve: (outcome: WaitOutcome) => void
  /** Whether a turn was made for it: only that turn's answer can refuse it. */
  isAsked: boolean
  /** How often other nodes have been asked to give back for it. */
  recalls: number
}

export type WaitOutcome =
  | { readonly kind: 'taken' }
  | { readonly kind: 'no-funds'; readonly available: Nano }
  | { readonly kind: 'no-account' }
  | { readonly kind: 'unavailable' }

/**
 * The part of an account's balance that this node may spend without asking. What the database has leased to us is, at
 * every moment between turns, exactly `left + open + unflushed`.
 */
export class Lease {
  left = 0n
  /** Held by requests under way. */
  open = 0n
  /** Charged, and not yet posted. */
  unflushed = 0n
  /** Charged since the last turn: at what pace it is spent. */
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
    // Whoever waits came first.
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

  /** A charge of the process before us, on money that it had leased. */
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

  /** What the bank says it has leased to us is the truth; what requests hold and owe is ours to know. */
  correct(leased: bigint): void {
    this.left = leased - this.open - this.unflushed
    this.#check()
  }

  /** Serves in order of arrival, passing over who asks for more than is left; gives those that stay unserved. */
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

  /** How much more than what is left all who wait ask for. */
  get missing(): bigint {
    const wanted = this.waiters.reduce((sum, { amount }) => sum + amount, 0n)
    return wanted > this.left ? wanted - this.left : 0n
  }

  #check(): void {
    // The assertion stays on: a lease that lies must stop this node before it spends what it does not have.
    if (this.left < 0n || this.open < 0n || this.unflushed < 0n) {
      throw new Error(`a lease does not add up: left ${this.left}, open ${this.open}, unflushed ${this.unflushed}`)
    }
  }
}

/** A charge can only have been made on money that was leased to the node that made it, in the database that it was made in. */
class Unleased extends Error {
  constructor() {
    super(
      'a lease does not add up: the journal holds charges on money that is not leased to this node. Either the node was reclaimed, and ' +
        'its folder must not be used again; or the database was restored from an older copy: then move the folder "journal" ' +
        'away; or the file "node" was replaced: then restore it. Charges in the journal that are never posted show up ' +
        "when the vendors' bills are reconciled.",
    )
    this.name = 'Unleased'
  }
}
