import type { Nano } from '../base/money.ts'
import type { Tally } from '../telemetry/tally.ts'
import type { Billing, Ending, Hold, Order, Sale } from './billing.ts'
import { WrappedHold } from './wrapped-hold.ts'

/**
 * Billing that counts its open holds, so that a node can wait for the last one before it stops, and that reports to the
 * metrics how each of them ended.
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

/** There is one for every request, and an instance of a class costs less than a set of closures. */
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

  /** If settling fails, the hold stays open until it is released, because its request is still at work. */
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
      // Cleaning up also releases holds that were settled: their ending is reported already.
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
