import type { GatewayError } from '../../base/errors.ts'
import type { Outlet } from '../../base/pour.ts'
import type { Bytes } from '../../base/spliced.ts'
import type { ReplyWriter } from '../../capabilities/chat.ts'
import { countLegs, type Leg } from '../legs.ts'
import type { Relay, StreamRelay } from '../relay.ts'

/** The streams of several calls as one stream, in the order in which their events come. */
export class MergedRelay implements Relay {
  readonly legs: readonly Leg[]
  readonly #writer: ReplyWriter
  readonly #open: Set<StreamRelay>
  #failure: GatewayError | undefined
  #outlet: Outlet<Bytes> | undefined

  /** `begun` has the relays in the order in which they began. */
  constructor(relays: readonly StreamRelay[], writer: ReplyWriter, begun: readonly StreamRelay[] = relays) {
    this.legs = relays.flatMap(({ legs }) => legs)
    this.#writer = writer
    this.#open = new Set(begun)
  }

  pour(outlet: Outlet<Bytes>): void {
    this.#outlet = outlet
    const inTurn = [...this.#open]
    // The one writer has written the first events of all choices, in this order, before any of what follows.
    for (const relay of inTurn) {
      if (this.#outlet === undefined) return
      relay.pourFirst(this.#outletOf(relay))
    }
    for (const relay of inTurn) {
      if (this.#outlet === undefined) return
      // Moved behind the others: if the outlet has no room for all, the next pour begins with those that had no turn.
      this.#open.delete(relay)
      this.#open.add(relay)
      relay.pour(this.#outletOf(relay))
    }
    this.#tellEnd()
  }

  #outletOf(relay: StreamRelay): Outlet<Bytes> {
    return {
      take: (bytes) => this.#outlet?.take(bytes),
      end: (failure) => this.#ended(relay, failure),
    }
  }

  pause(): void {
    this.#outlet = undefined
    for (const relay of this.#open) relay.pause()
  }

  get isUncounted(): boolean {
    return this.#open.size > 0 && [...this.#open].every((relay) => relay.isUncounted)
  }

  left(): void {
    for (const relay of this.#open) relay.left()
  }

  keepAlive(): Uint8Array | undefined {
    return this.#writer.write([{ kind: 'heartbeat' }])
  }

  closing(): Uint8Array {
    return this.#writer.closing(countLegs(this.legs)?.usage)
  }

  abort(): void {
    for (const relay of this.#open) relay.abort()
  }

  #ended(relay: StreamRelay, failure: GatewayError | undefined): void {
    this.#open.delete(relay)
    if (failure !== undefined && this.#failure === undefined) {
      this.#failure = failure
      this.abort() // a stream that was cut off ends the others at once
    }
    this.#tellEnd()
  }

  #tellEnd(): void {
    if (this.#open.size > 0 && this.#failure === undefined) return
    const outlet = this.#outlet
    this.#outlet = undefined
    outlet?.end(this.#failure)
  }
}
