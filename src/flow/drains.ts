import { crashPoint } from '../base/crash-points.ts'
import type { Relay } from './relay.ts'

const drainsMax = 64
const drainMsMax = 60_000

/**
 * Keeps reading streams whose client has left, up to the usage event, because the vendor charges for the whole answer
 * anyway. Bounded in number and time: beyond that the call is ended and what was read is charged as an estimate.
 */
export class Drains {
  #running = 0

  async run(relay: Relay): Promise<void> {
    if (this.#running >= drainsMax) return relay.abort()
    this.#running++
    crashPoint('drain')
    const timer = setTimeout(() => relay.abort(), drainMsMax)
    try {
      // A stream that is aborted or breaks off is settled by what was read until then.
      await new Promise<void>((end) => relay.pour({ take() {}, end: () => end() }))
    } finally {
      clearTimeout(timer)
      this.#running--
    }
  }
}
