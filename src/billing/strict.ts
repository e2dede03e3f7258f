import { systemClock, systemTimers, type Clock, type Timers } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Nano } from '../base/money.ts'
import { isUnavailable } from '../store/faults.ts'
import { takeHold } from '../store/holds.ts'
import { settleHold, voidHold, type Settlement } from '../store/ledger.ts'
import type { Store } from '../store/open.ts'
import { chargeWithin } from '../store/postings.ts'
import type { Billing, Hold, Order } from './funds.ts'
import { recordOf } from './record.ts'

// A connection that broke is soon replaced; a database that hangs is not waited for a second time.
const pausesMs = [100, 300, 800]
const triedMsMax = 1_000

function inDoubt(cause: unknown): GatewayError {
  const message =
    'The ledger cannot be reached: whether the answer was charged for will show in the usage of this account.'
  return new GatewayError('overloaded', message, { shouldRetry: false, cause })
}

/** Billing with one database transaction for the hold and one for its end: exact, and the measure for every faster way. */
export function makeStrictBilling(parts: {
  store: Store
  node: string
  log: Log
  clock?: Clock
  timers?: Timers
}): Billing {
  const { store, log, clock = systemClock, timers = systemTimers } = parts

  function holdOf(id: string, order: Order): Hold {
    const hold = { id, accountId: order.accountId }
    return {
      kind: 'hold',
      amount: order.amount,
      // The hold's row is all that strict mode leaves behind: what a crash interrupts is found by reconciling.
      sending() {},
      mark() {},
      async settle(sale) {
        const settled = await settleSurely({ ...sale, hold, request: recordOf(order, sale) }, order)
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

  /** An answer of the database that is lost leaves open whether it was done. To do it again tells: a hold ends once. */
  async function settleSurely(settlement: Settlement, { amount }: Order): Promise<{ charge: Nano; excess: Nano }> {
    for (let tries = 0; ; tries++) {
      const triedAt = clock.monotonic()
      try {
        const settled = await settleHold(store, settlement)
        if (settled.outcome === 'settled') return settled
        if (tries > 0 && settled.state === 'settled') return chargeWithin(amount, settlement.price, settlement.basis)
        throw new GatewayError('bug', `hold ${settlement.hold.id} had ended already`)
      } catch (thrown) {
        if (!isUnavailable(thrown)) throw thrown
        const pauseMs = pausesMs[tries]
        if (pauseMs === undefined || clock.monotonic() - triedAt > triedMsMax) throw inDoubt(thrown)
        await new Promise<void>((resume) => timers.after(pauseMs, resume))
      }
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
