import type { Deadline, Deadlines } from '../base/deadlines.ts'
import type { Progress } from '../billing/billing.ts'
import { priceOfParts } from '../billing/price.ts'
import { costOf, countLegs } from './legs.ts'
import type { Relay } from './relay.ts'
import type { Routed } from './stages.ts'

const markEveryMs = 2_000
const markEveryBytes = 32 * 1024

type Told = {
  /** Called when a mark that was due by time could not be recorded. */
  readonly broken: (thrown: unknown) => void
  /** Called with every mark, so now and then while the stream delivers. */
  readonly passed: () => void
}

/** Records now and then what a stream has delivered: after a crash of this node that much is charged, and no more. */
export class Marks {
  readonly #routed: Routed
  readonly #relay: Relay
  readonly #due: Deadline
  readonly #passed: () => void
  /** Bytes delivered since the last mark. */
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

  /** Whether something was delivered since the last mark. */
  get isDue(): boolean {
    return this.#bytes > 0
  }

  /** Ends the marks before the stream is settled: a mark after its settlement would belong to no open hold. */
  end(): void {
    this.#due.clear()
  }

  #mark(): void {
    this.#due.clear()
    this.#bytes = 0
    this.#passed()
    this.#routed.funds.mark(() => this.#progress())
  }

  #progress(): Progress | undefined {
    const counted = countLegs(this.#relay.legs)
    if (counted === undefined) return undefined
    const { prices, costs } = this.#routed.model
    return {
      usage: counted.usage,
      price: priceOfParts(counted.parts, prices),
      delivered: counted.legs.flatMap(({ leg, counted: count }) =>
        count === undefined ? [] : [{ id: leg.attemptId, vendorCost: costOf(count, costs) }],
      ),
    }
  }
}
