import type { Nano } from '../base/money.ts'
import type { Tally } from '../telemetry/tally.ts'
import type { Billing, Ending, Hold, Order, Sale } from './funds.ts'
import { WrappedHold } from './wrapped-hold.ts'

/**
 * Billing that knows how many of its holds are still open, so that a node can wait for the last one before it stops, and
 * that tells how each of them ended.
 */
export type TrackedBilling = Billing & {
  readonly open: number
  /** Resolves when no hold is open. */
  idle(): Promise<void>
}

export function trackOpenHolds(billing: Billing, tally: Pick<Tally, 'ended'>): TrackedBilling {
  let open = 0
  let waiting: (() => void)[] = []

  const watch: Watch = {
    closed() {
      open--
      if (open > 0) return
      const woken = waiting
      waiting = []
      for (const wake of woken) wake()
    },
    tally,
  }

  return {
    get open() {
      return open
    },
    idle: () => (open === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
    async take(order) {
      const taken = await billing.take(order)
      if (taken.kind !== 'hold') return taken
      open++
      return { kind: 'hold', hold: new TrackedHold(taken.hold, order, watch) }
    },
  }
}

type Watch = { closed(): void; readonly tally: Pick<Tally, 'ended'> }

/** There is one for every request: a class takes less than as many functions. */
class TrackedHold extends WrappedHold {
  readonly #order: Order
  readonly #watch: Watch
  #isOpen = true
  #isTold = false

  constructor(hold: Hold, order: Order, watch: Watch) {
    super(hold)
    this.#order = order
    this.#watch = watch
  }

  /** Where it fails it is open until it is released: somebody is still at work on it. */
  override async settle(sale: Sale): Promise<Nano> {
    const charged = await super.settle(sale)
    this.#isTold = true
    this.#close()
    this.#watch.tally.ended(this.#order, sale, { charged, usage: sale.usage })
    return charged
  }

  override async release(ending: Ending): Promise<void> {
    try {
      await super.release(ending)
      // Whoever cleans up need not know that it was settled.
      if (!this.#isTold) this.#watch.tally.ended(this.#order, ending)
      this.#isTold = true
    } finally {
      this.#close()
    }
  }

  #close(): void {
    if (this.#isOpen) this.#watch.closed()
    this.#isOpen = false
  }
}
