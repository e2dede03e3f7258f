import type { Deadline, Deadlines } from '../base/deadlines.ts'
import { priceOfParts } from '../billing/price.ts'
import { costOf, countLegs } from './legs.ts'
import type { Relay } from './relay.ts'
import type { Routed } from './stages.ts'

const markEveryMs = 2_000
const markEveryBytes = 32 * 1024

type Told = {
  /** A mark was due and could not be made. */
  readonly broken: (thrown: unknown) => void
  /** Some seconds of delivering have passed. */
  readonly passed: () => void
}

/** Puts on record, now and then, what a stream has delivered: after a crash of ours that much is charged, and no more. */
export class Marks {
  readonly #routed: Routed
  readonly #relay: Relay
  readonly #due: Deadline
  readonly #passed: () => void
  /** Delivered since the last mark. */
  #bytes = 0

  constructor(routed: Routed, relay: Relay, deadlines: Deadlines, { broken, passed }: Told) {
    this.#passed = passed
    this.#routed = routed
    this.#relay = relay
    this.#due = deadlines.open(() => {
      try {
        this.#mark()
      } catch (thrown) {
        broken(thrown)
      }
    })
  }

  delivered(bytes: number): void {
    if (this.#bytes === 0) this.#due.set(markEveryMs)
    this.#bytes += bytes
    if (this.#bytes >= markEveryBytes) this.#mark()
  }

  /** Something was delivered since the last one. */
  get isDue(): boolean {
    return this.#bytes > 0
  }

  /** What comes now is settled, and a mark behind a settlement would be one of nothing. */
  end(): void {
    this.#due.clear()
  }

  #mark(): void {
    this.#due.clear()
    this.#bytes = 0
    this.#passed()
    const { model, funds } = this.#routed
    const counted = countLegs(this.#relay.legs)
    if (counted === undefined) return
    funds.mark({
      usage: counted.usage,
      price: priceOfParts(counted.parts, model.prices),
      delivered: counted.legs.flatMap(({ leg, counted: count }) =>
        count === undefined ? [] : [{ id: leg.attemptId, vendorCost: costOf(count, model.costs) }],
      ),
    })
  }
}
