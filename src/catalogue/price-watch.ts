import type { Clock, Timers } from '../base/clock.ts'
import type { PriceSpan } from './dated-prices.ts'

// The runtime's timers overflow after 24 days, and the machine's clock may be set meanwhile.
const lookMsMax = 3_600_000

type PriceWatchParts = {
  readonly clock: Pick<Clock, 'now'>
  readonly timers: Timers
  /**
   * Called when other prices apply: those that were announced have begun, or the clock, which had run ahead, is set
   * back to before they do.
   */
  readonly change: () => void
}

/** Waits for the moments at which prices begin that a vendor has announced. */
export class PriceWatch {
  readonly #parts: PriceWatchParts
  #cancel = () => {}
  #isClosed = false

  constructor(parts: PriceWatchParts) {
    this.#parts = parts
  }

  /** Waits until the prices of this span no longer apply, and no longer for those before. */
  waitFor(span: PriceSpan): void {
    const { from, until } = span
    this.#cancel()
    if (this.#isClosed || (from === -Infinity && until === Infinity)) return
    const { clock, timers, change } = this.#parts
    const leftMs = until - clock.now()
    this.#cancel = timers.after(Math.min(Math.max(leftMs, 0), lookMsMax), () => {
      const now = clock.now()
      if (from <= now && now < until) this.waitFor(span)
      else change()
    })
  }

  /** The catalogue may be read once more after a stop, when a search for local servers ends; it waits for nothing. */
  close(): void {
    this.#isClosed = true
    this.#cancel()
  }
}
