import type { Billing, Hold } from './funds.ts'

/** Billing that knows how many of its holds are still open, so that a node can wait for the last one before it stops. */
export type TrackedBilling = Billing & {
  readonly open: number
  /** Resolves when no hold is open. */
  idle(): Promise<void>
}

export function trackOpenHolds(billing: Billing): TrackedBilling {
  let open = 0
  let waiting: (() => void)[] = []

  function ended(): void {
    open--
    if (open > 0) return
    const woken = waiting
    waiting = []
    for (const wake of woken) wake()
  }

  function follow(hold: Hold): Hold {
    open++
    let counted = true
    const endOnce = () => {
      if (counted) ended()
      counted = false
    }
    return {
      kind: 'hold',
      amount: hold.amount,
      sending: (attempt) => hold.sending(attempt),
      mark: (progress) => hold.mark(progress),
      settle: (sale) => hold.settle(sale).finally(endOnce),
      release: (ending) => hold.release(ending).finally(endOnce),
    }
  }

  return {
    get open() {
      return open
    },
    idle: () => (open === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
    async take(order) {
      const taken = await billing.take(order)
      return taken.kind === 'hold' ? { kind: 'hold', hold: follow(taken.hold) } : taken
    },
  }
}
