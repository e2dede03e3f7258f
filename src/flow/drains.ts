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

  /** `reading` is the read that may still be under way for the client. */
  async run(relay: Relay, reading: Promise<unknown>): Promise<void> {
    if (this.#running >= drainsMax) return relay.abort()
    this.#running++
    crashPoint('drain')
    const timer = setTimeout(() => relay.abort(), drainMsMax)
    try {
      await reading
      while ((await relay.next()) !== undefined);
    } catch {
      // Aborted or broken: what was read until now is what can be settled.
    } finally {
      clearTimeout(timer)
      this.#running--
    }
  }
}
