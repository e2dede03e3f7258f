import { GatewayError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { takeHold } from '../store/holds.ts'
import { settleHold, voidHold } from '../store/ledger.ts'
import type { Store } from '../store/open.ts'
import type { Billing, Hold, Order } from './funds.ts'
import { recordOf } from './record.ts'

/** Billing with one database transaction for the hold and one for its end: exact, and the measure for every faster way. */
export function makeStrictBilling(parts: { store: Store; node: string; log: Log }): Billing {
  const { store, log } = parts

  function holdOf(id: string, order: Order): Hold {
    const hold = { id, accountId: order.accountId }
    return {
      kind: 'hold',
      amount: order.amount,
      // The hold's row is all that strict mode leaves behind: what a crash interrupts is found by reconciling.
      sending() {},
      mark() {},
      async settle(sale) {
        const settled = await settleHold(store, { ...sale, hold, request: recordOf(order, sale) })
        if (settled.outcome === 'already-ended') throw new GatewayError('bug', `hold ${id} had ended already`)
        if (settled.excess > 0n) {
          log.error(
            { request: order.requestId, model: order.model, excess: String(settled.excess) },
            'usage beyond its hold',
          )
        }
        return settled.charge
      },
      async release(ending) {
        await voidHold(store, { hold, request: recordOf(order, ending), attempts: ending.attempts })
      },
    }
  }

  return {
    async take(order) {
      const id = newId('hold')
      const { accountId, keyId, amount, priceVersion, deadline } = order
      const taken = await takeHold(store, {
        id,
        accountId,
        keyId,
        kind: 'request',
        amount,
        priceVersion,
        deadline,
        node: parts.node,
      }).catch((thrown: unknown) => {
        throw new GatewayError('overloaded', 'The ledger cannot be reached at the moment.', {
          retryAfterSeconds: 1,
          cause: thrown,
        })
      })
      if (taken.outcome === 'held') return { kind: 'hold', hold: holdOf(id, order) }
      if (taken.outcome === 'no-funds') return { kind: 'no-funds', available: taken.available }
      // Disabled since the key was looked up: the key is as dead as if it had been revoked.
      throw new GatewayError('unauthenticated', 'The account of this API key is disabled.')
    },
  }
}
