import { priceOf } from '../billing/price.ts'
import { estimateOutput } from './estimate.ts'
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
  #inputTokens: number | undefined

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
    const { ask, codec, model, funds } = this.#routed
    const { facts } = this.#relay
    if (facts.outputEvents === 0) return
    // Once a stream: a long prompt takes milliseconds to count.
    this.#inputTokens ??= codec.estimateInput(ask)
    const usage = facts.usage ?? {
      input: this.#inputTokens,
      output: Math.min(estimateOutput(facts), ask.outputTokensMax * ask.choices),
    }
    const counts = { ...usage, request: 1 }
    funds.mark({ usage, price: priceOf(counts, model.prices), vendorCost: priceOf(counts, model.costs) })
  }
}
