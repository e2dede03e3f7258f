import type { Hold } from '../billing/funds.ts'
import { tokensOf } from '../capabilities/usage.ts'
import type { Limiter, Pass } from '../limits/limiter.ts'
import type { Authenticated } from './stages.ts'

/** Lets a request in, or not: before its body is read, since a flood should cost nothing. */
export function makeLimit(limiter: Limiter) {
  return async <A extends Pick<Authenticated, 'principal' | 'say'>>(
    authenticated: A,
  ): Promise<A & { readonly pass: Pass }> => {
    const { principal, say } = authenticated
    return { ...authenticated, pass: await limiter.enter(principal.keyId, principal.limits, say) }
  }
}

/** The place of a request is free when its money is settled, however long its answer streams. */
export function leavingAtEnd(hold: Hold, pass: Pass): Hold {
  return {
    ...hold,
    settle(sale) {
      pass.leave(tokensOf(sale.usage))
      return hold.settle(sale)
    },
    release(ending) {
      pass.leave(0)
      return hold.release(ending)
    },
  }
}
