import type { RequestId } from '../base/ids.ts'
import type { Nano } from '../base/money.ts'
import type { Capability } from '../capabilities/capability.ts'
import type { Basis, Usage } from '../capabilities/usage.ts'
import type { SpendingCap } from '../store/keys.ts'
import type { ExcessTo } from '../store/postings.ts'
import type { AttemptRecord } from '../store/requests.ts'

/** What a request is about to buy, as known before anything is sent to a vendor. */
export type Order = {
  readonly requestId: RequestId
  readonly accountId: string
  readonly keyId: string
  readonly model: string
  readonly capability: Capability
  /** The most it can cost. */
  readonly amount: Nano
  /** The spending caps of its key and its account, which apply beside the balance. */
  readonly caps: readonly SpendingCap[]
  /** The price list it will be settled by, even if prices change meanwhile. */
  readonly priceVersion: string
  /** Unix milliseconds. */
  readonly startedAt: number
  /** Unix milliseconds after which no node can still be working on it. */
  readonly deadline: number
}

/** How a request ended, as its record will show it. */
export type Ending = {
  readonly status: number
  readonly streamed: boolean
  readonly durationMs: number
  /** Every call to a vendor, in order. We owe the vendor for each of them, delivered or not. */
  readonly attempts: readonly AttemptRecord[]
}

/** An attempt as far as it is known when it leaves. */
export type SentAttempt = Omit<AttemptRecord, 'status' | 'vendorCost' | 'delivered'>

/** How much of an answer has been delivered so far. */
export type Progress = {
  readonly usage: Usage
  readonly price: Nano
  /** Only the attempts that have given the client something by now. */
  readonly delivered: readonly Pick<AttemptRecord, 'id' | 'vendorCost'>[]
}

/** The ending of a request that delivered something, which has a price. */
export type Sale = Ending & {
  readonly basis: Basis
  readonly usage: Usage
  /** The usage at the pinned price list. The customer pays it up to the hold. */
  readonly price: Nano
  /** Where the price beyond the hold goes, if not to our loss: to `suspense`, if the vendor's count cannot be true. */
  readonly excessTo?: ExcessTo
}

/**
 * Money set aside for one request. It ends exactly once: settling a hold that has ended is a bug and throws, but
 * releasing it changes nothing, so that cleaning up after a failure need not know how far the request had come.
 */
export type Hold = {
  /**
   * Call it before an attempt leaves, and await the promise if there is one: from then on the vendor may charge. Throws
   * or rejects if the attempt cannot be recorded.
   */
  sending(attempt: SentAttempt): Promise<void> | undefined
  /**
   * Records what would be charged if the answer ended now, in case this process dies before its end. `workOut` is
   * called only where that is recorded: it may have to estimate. Undefined: nothing would be charged.
   */
  mark(workOut: () => Progress | undefined): void
  /**
   * Resolves with what the customer was charged, once the settlement is recorded. It also resolves where the database
   * may have recorded it but its answer was lost; the settlement is then retried. Where it throws, nothing was charged.
   */
  settle(sale: Sale): Promise<Nano>
  release(ending: Ending): Promise<void>
}

export type TakeOutcome =
  | { readonly kind: 'hold'; readonly hold: Hold }
  | {
      readonly kind: 'no-funds'
      readonly available: Nano
      /** The spending cap that refused it, if it was not the balance. */
      readonly cap?: SpendingCap
    }

/** How many holds have ended since the start of this process. */
export type Endings = {
  readonly made: number
  /** How many of them, counted from the first, are known to be in the books. */
  readonly booked: number
}

/**
 * The billing seam. `leased`, the default, keeps the database off a request's path; `strict` makes one transaction for
 * each step; counting in memory is for the bench.
 */
export type Billing = {
  take(order: Order): Promise<TakeOutcome>
  /** Given where endings reach the books only after `settle` resolves, in order. Absent: they are booked by then. */
  readonly endings?: Endings
  /** Given where each hold is a row of the database: whether this process may still end the hold itself. */
  isAtWork?(holdId: string): boolean
  /** Resolves when the books have all endings so far, or they are not tried any more. */
  post?(): Promise<void>
  close?(): Promise<void>
}
