import type { Nano } from '../base/money.ts'
import type { Ending, Hold, Sale } from '../billing/billing.ts'
import { WrappedHold } from '../billing/wrapped-hold.ts'
import { tokensOf } from '../capabilities/usage.ts'
import type { Limiter, Pass } from '../limits/limiter.ts'
import type { Authenticated } from './stages.ts'

/** Lets a request in or refuses it before its body is read, so that a flood costs nothing. */
export function makeLimit(limiter: Limiter) {
  return ({ principal, setHeader }: Pick<Authenticated, 'principal' | 'setHeader'>) =>
    limiter.enter(principal.keyId, principal.limits, setHeader)
}

/** A hold that gives up the request's place in its key's limits when settling or releasing begins, and not before. */
export class LeavingHold extends WrappedHold {
  readonly #pass: Pass

  constructor(hold: Hold, pass: Pass) {
    super(hold)
    this.#pass = pass
  }

  override settle(sale: Sale): Promise<Nano> {
    this.#pass.leave(tokensOf(sale.usage))
    return super.settle(sale)
  }

  override release(ending: Ending): Promise<void> {
    this.#pass.leave(0)
    return super.release(ending)
  }
}
