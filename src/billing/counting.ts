import { zeroNano, type Nano } from '../base/money.ts'
import type { Billing, Hold } from './billing.ts'

/** Billing that only counts in memory. The bench uses it to see what the ledger's durability costs. */
export function makeCountingBilling(): Billing & { readonly charged: bigint; readonly open: number } {
  let charged = 0n
  let open = 0
  return {
    get charged() {
      return charged
    },
    get open() {
      return open
    },
    take(order) {
      open++
      let ended = false
      const end = (charge: Nano) => {
        if (!ended) {
          ended = true
          open--
          charged += charge
        }
        return Promise.resolve(charge)
      }
      const hold: Hold = {
        kind: 'hold',
        amount: order.amount,
        sending() {},
        mark() {},
        settle: ({ price }) => end(price < order.amount ? price : order.amount),
        async release() {
          await end(zeroNano)
        },
      }
      return Promise.resolve({ kind: 'hold', hold })
    },
  }
}
