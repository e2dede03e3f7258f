import { GatewayError } from '../base/errors.ts'
import { EventSplitter } from '../base/sse.ts'
import type { ChatStream } from '../capabilities/chat.ts'
import type { AttemptRecord } from '../store/requests.ts'
import type { Exchange } from '../upstream/transport.ts'
import type { Leg } from './legs.ts'

// No event of a chat comes near it; a line without an end must not fill the memory.
const chatEventBytesMax = 1024 * 1024
// Far above what any vendor wraps around a token; a stream that passes its cap by this much is not going to end.
const wireBytesPerToken = 8 * 1024
const wireBytesSpare = 1024 * 1024

/** A vendor's answer on its way to the client, in whole events. */
export type Relay = {
  readonly legs: readonly Leg[]
  /** Calls of its own that came to nothing and were made again. */
  readonly failed?: readonly AttemptRecord[]
  /** Waits for the first thing worth forwarding: until then a failure is an ordinary error answer. */
  begin(): Promise<void>
  /** The next bytes for the client, or undefined when the vendor's stream is over. */
  next(): Promise<Uint8Array | undefined>
  /** Throws unless the vendor's stream came to its proper end: a cut must never look like one. */
  complete(): void
  /** What was held back for the end. */
  closing(): Uint8Array
  abort(): void
}

export type RelayOptions = {
  readonly outputTokensMax: number
  /** Where its events are larger than those of a chat: at most so large each, and all together. */
  readonly bytesMax?: { readonly event: number; readonly stream: number }
  readonly leg: Leg
  /** A vendor's own words about a failure, without our secrets. */
  readonly discreet: (failure: GatewayError) => GatewayError
}

/** Carries one stream. Pull-driven: it reads from the vendor only when the client's side has room. */
export class StreamRelay implements Relay {
  readonly legs: readonly Leg[]
  readonly #exchange: Exchange
  readonly #stream: ChatStream
  readonly #splitter: EventSplitter
  readonly #discreet: (failure: GatewayError) => GatewayError
  readonly #bytesMax: number
  #bytes = 0
  #over = false
  #first: Uint8Array | undefined

  constructor(exchange: Exchange, stream: ChatStream, options: RelayOptions) {
    this.legs = [options.leg]
    this.#exchange = exchange
    this.#stream = stream
    this.#discreet = options.discreet
    this.#splitter = new EventSplitter(options.bytesMax?.event ?? chatEventBytesMax)
    this.#bytesMax = options.bytesMax?.stream ?? options.outputTokensMax * wireBytesPerToken + wireBytesSpare
  }

  async begin(): Promise<void> {
    this.#first = await this.#pull()
    if (this.#first === undefined) this.complete()
  }

  next(): Promise<Uint8Array | undefined> {
    const first = this.#first
    if (first === undefined) return this.#pull()
    this.#first = undefined
    return Promise.resolve(first)
  }

  complete(): void {
    const { failure, ended, finished } = this.#stream.facts
    if (failure !== undefined) throw this.#discreet(failure)
    if (!ended && !finished) {
      throw new GatewayError('upstream-failed', "The model's vendor ended the stream before it was finished.")
    }
  }

  closing(): Uint8Array {
    return this.#stream.closing()
  }

  abort(): void {
    this.#exchange.abort()
  }

  async #pull(): Promise<Uint8Array | undefined> {
    while (!this.#over) {
      const chunk = await this.#exchange.read()
      if (chunk === undefined) {
        this.#over = true
        return undefined
      }
      this.#bytes += chunk.length
      if (this.#bytes > this.#bytesMax) {
        this.#exchange.abort()
        throw new GatewayError('upstream-failed', "The model's vendor sent more than was asked of it.")
      }
      const forward = this.#take(this.#splitter.push(chunk))
      if (forward !== undefined) return forward
    }
    return undefined
  }

  #take(events: readonly Uint8Array[]): Uint8Array | undefined {
    const forward: Uint8Array[] = []
    for (const event of events) {
      const shown = this.#stream.take(event)
      if (shown !== undefined) forward.push(shown)
      if (this.#stream.facts.ended || this.#stream.facts.failure !== undefined) {
        this.#over = true
        this.#exchange.finish()
        break
      }
    }
    const [first] = forward
    return forward.length <= 1 ? first : Buffer.concat(forward)
  }
}
