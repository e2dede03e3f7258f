import type { Nano } from '../base/money.ts'
import type { Ending, Hold, Progress, Sale, SentAttempt } from '../billing/funds.ts'
import { tokensOf } from '../capabilities/usage.ts'
import type { Limiter, Pass } from '../limits/limiter.ts'
import type { Authenticated } from './stages.ts'

/** Lets a request in, or not: before its body is read, since a flood should cost nothing. */
export function makeLimit(limiter: Limiter) {
  return ({ principal, say }: Pick<Authenticated, 'principal' | 'say'>) =>
    limiter.enter(principal.keyId, principal.limits, say)
}

/** A hold with whose end the request leaves: its place is free as soon as its money is about to be settled, and not before. */
export class LeavingHold implements Hold {
  readonly kind = 'hold'
  readonly #hold: Hold
  readonly #pass: Pass

  constructor(hold: Hold, pass: Pass) {
    this.#hold = hold
    this.#pass = pass
  }

  get amount(): Nano {
    return this.#hold.amount
  }

  sending(attempt: SentAttempt): void {
    this.#hold.sending(attempt)
  }

  mark(progress: Progress): void {
    this.#hold.mark(progress)
  }

  settle(sale: Sale): Promise<Nano> {
    this.#pass.leave(tokensOf(sale.usage))
    return this.#hold.settle(sale)
  }

  release(ending: Ending): Promise<void> {
    this.#pass.leave(0)
    return this.#hold.release(ending)
  }
}
