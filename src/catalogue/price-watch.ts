import type { Clock, Timers } from '../base/clock.ts'

// The runtime's timers overflow after 24 days, and the machine's clock may be set meanwhile.
const lookMsMax = 3_600_000

type PriceWatchParts = {
  readonly clock: Pick<Clock, 'now'>
  readonly timers: Timers
  /** Called when the prices that were announced begin. */
  readonly begin: () => void
}

/** Waits for the moment at which prices begin that a vendor has announced. */
export class PriceWatch {
  readonly #parts: PriceWatchParts
  #cancel = () => {}
  #isClosed = false

  constructor(parts: PriceWatchParts) {
    this.#parts = parts
  }

  /** Waits for this moment (Unix milliseconds), and no longer for the one before. */
  waitFor(moment: number | undefined): void {
    this.#cancel()
    if (moment === undefined || this.#isClosed) return
    const { clock, timers, begin } = this.#parts
    const leftMs = moment - clock.now()
    this.#cancel = timers.after(Math.min(Math.max(leftMs, 0), lookMsMax), () => {
      if (clock.now() < moment) this.waitFor(moment)
      else begin()
    })
  }

  /** The catalogue may be read once more after a stop, when a search for local servers ends; it waits for nothing. */
  close(): void {
    this.#isClosed = true
    this.#cancel()
  }
}
