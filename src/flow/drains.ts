import { crashPoint } from '../base/crash-points.ts'
import type { Relay } from './relay.ts'

const drainsMax = 64
const drainMsMax = 60_000

/**
 * Reads streams on whose client has left, to the usage the vendor will charge for anyway. Bounded in number and time:
 * beyond that the call is ended and what was read is charged as an estimate.
 */
export class Drains {
  #running = 0

  async run(relay: Relay): Promise<void> {
    if (this.#running >= drainsMax) return relay.abort()
    this.#running++
    crashPoint('drain')
    const timer = setTimeout(() => relay.abort(), drainMsMax)
    try {
      // Aborted or broken, what was read until then is what can be settled.
      await new Promise<void>((end) => relay.pour({ take() {}, end: () => end() }))
    } finally {
      clearTimeout(timer)
      this.#running--
    }
  }
}
