import { priceOfParts } from '../billing/price.ts'
import type { Usage } from '../capabilities/usage.ts'
import { countLegs } from './legs.ts'
import type { Relay } from './relay.ts'
import type { Routed } from './stages.ts'

const markEveryMs = 2_000
const markEveryBytes = 32 * 1024

/** Puts on record, now and then, what a stream has delivered: after a crash of ours that much is charged, and no more. */
export class Marks {
  readonly #routed: Routed
  readonly #relay: Relay
  #bytes = 0
  #markedAtMs: number

  constructor(routed: Routed, relay: Relay) {
    this.#routed = routed
    this.#relay = relay
    this.#markedAtMs = routed.elapsedMs()
  }

  delivered(bytes: number): void {
    this.#bytes += bytes
    const elapsedMs = this.#routed.elapsedMs()
    if (this.#bytes < markEveryBytes && elapsedMs - this.#markedAtMs < markEveryMs) return
    this.#bytes = 0
    this.#markedAtMs = elapsedMs
    this.#mark()
  }

  #mark(): void {
    const { model, funds } = this.#routed
    const counted = countLegs(this.#relay.legs)
    if (counted === undefined) return
    funds.mark({
      usage: counted.usage,
      price: priceOfParts(callsOf(counted.parts), model.prices),
      vendorCost: priceOfParts(callsOf(counted.vendorParts), model.costs),
    })
  }
}

function callsOf(parts: readonly Usage[]): Usage[] {
  return parts.map((part) => ({ ...part, request: 1 }))
}
