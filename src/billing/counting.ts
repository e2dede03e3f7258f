import type { Billing, Sale } from './billing.ts'

/**
 * Billing that works out each charge and keeps nothing. The bench uses it to see what the ledger's durability costs.
 */
export function makeCountingBilling(): Billing {
  return {
    take({ amount }) {
      const hold = {
        sending: () => undefined,
        mark() {},
        settle: ({ price }: Sale) => Promise.resolve(price < amount ? price : amount),
        release: () => Promise.resolve(),
      }
      return Promise.resolve({ kind: 'hold', hold })
    },
  }
}
