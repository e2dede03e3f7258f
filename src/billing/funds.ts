import type { RequestId } from '../base/ids.ts'
import type { Nano } from '../base/money.ts'
import type { Capability } from '../capabilities/capability.ts'
import type { Basis, Usage } from '../capabilities/usage.ts'
import type { SpendingCap } from '../store/keys.ts'
import type { ExcessTo } from '../store/postings.ts'
import type { AttemptRecord } from '../store/requests.ts'

/** What is about to be bought, before anything leaves. */
export type Order = {
  readonly requestId: RequestId
  readonly accountId: string
  readonly keyId: string
  readonly model: string
  readonly capability: Capability
  /** The most it can cost. */
  readonly amount: Nano
  /** Beside the balance, what its key and its account may spend in a period. */
  readonly caps: readonly SpendingCap[]
  /** The price list it will be settled by, whatever happens to prices meanwhile. */
  readonly priceVersion: string
  /** Unix milliseconds. */
  readonly startedAt: number
  /** Unix milliseconds after which nobody can still be working on it. */
  readonly deadline: number
}

/** How a request ended, as its record will show it. */
export type Ending = {
  readonly status: number
  readonly streamed: boolean
  readonly durationMs: number
  /** Every call to a vendor, in order: ours to pay, delivered or not. */
  readonly attempts: readonly AttemptRecord[]
}

/** An attempt as far as it is known when it leaves. */
export type SentAttempt = Omit<AttemptRecord, 'status' | 'vendorCost' | 'delivered'>

/** How far an answer has come. */
export type Progress = {
  readonly usage: Usage
  readonly price: Nano
  /** The attempts that have given the client something by now; the others have not. */
  readonly delivered: readonly Pick<AttemptRecord, 'id' | 'vendorCost'>[]
}

/** Something was delivered, and it has a price. */
export type Sale = Ending & {
  readonly basis: Basis
  readonly usage: Usage
  /** The usage at the pinned price list. The customer pays it up to the hold. */
  readonly price: Nano
  /** Who bears what goes beyond the hold, where that is not us: nobody yet, since the vendor's number cannot be true. */
  readonly excessTo?: ExcessTo
}

/**
 * Money set aside for one request. It ends exactly once: to settle one that has ended is a bug and throws, to release it
 * changes nothing, so that whoever cleans up behind a failure need not know how far that had come.
 */
export type Hold = {
  readonly kind: 'hold'
  readonly amount: Nano
  /** An attempt is about to leave: from here on the vendor may charge. Throws where that cannot be put on record. */
  sending(attempt: SentAttempt): void
  /** What would be charged if the answer ended now; kept in case we do not live to see its end. */
  mark(progress: Progress): void
  /**
   * Resolves once the settlement is recorded, with what the customer was charged; or once it may be, where the database does
   * not say: then it is insisted on. Where it throws, nothing was charged.
   */
  settle(sale: Sale): Promise<Nano>
  release(ending: Ending): Promise<void>
}

export type Taken =
  | { readonly kind: 'hold'; readonly hold: Hold }
  | {
      readonly kind: 'no-funds'
      readonly available: Nano
      /** The spending cap that stands in the way, where it is not the balance. */
      readonly cap?: SpendingCap
    }

/** Holds that have ended, counted from the start of this process. */
export type Endings = {
  readonly made: number
  /** How many of these, the first ones, the books are known to have. */
  readonly booked: number
}

/** The billing seam. Leased, the default: the database is off the path. Strict: a transaction a step. Counting: the bench. */
export type Billing = {
  take(order: Order): Promise<Taken>
  /** Where they reach the books after they were settled, in their order. Absent: they are there by then. */
  readonly endings?: Endings
  /** Where the database knows each hold: whether somebody is still to end this one here. */
  isAtWork?(holdId: string): boolean
  /** Resolves when the books have those, or nobody tries any more. */
  post?(): Promise<void>
  close?(): Promise<void>
}
