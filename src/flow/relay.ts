import { GatewayError } from '../base/errors.ts'
import { EventSplitter } from '../base/sse.ts'
import type { ChatStream, StreamFacts } from '../capabilities/chat.ts'
import type { Exchange } from '../upstream/transport.ts'

// No vendor's event comes near it; a line without an end must not fill the memory.
const eventBytesMax = 1024 * 1024
// Far above what any vendor wraps around a token; a stream that passes its cap by this much is not going to end.
const wireBytesPerToken = 8 * 1024
const wireBytesSpare = 1024 * 1024

/**
 * Carries a vendor's stream to a client of the same protocol, in whole events. Pull-driven: it reads from the vendor
 * only when the client's side has room.
 */
export class Relay {
  readonly #exchange: Exchange
  readonly #stream: ChatStream
  readonly #splitter = new EventSplitter(eventBytesMax)
  readonly #discreet: (failure: GatewayError) => GatewayError
  readonly #bytesMax: number
  #bytes = 0
  #over = false
  #first: Uint8Array | undefined

  constructor(
    exchange: Exchange,
    stream: ChatStream,
    options: { outputTokensMax: number; discreet: (failure: GatewayError) => GatewayError },
  ) {
    this.#exchange = exchange
    this.#stream = stream
    this.#discreet = options.discreet
    this.#bytesMax = options.outputTokensMax * wireBytesPerToken + wireBytesSpare
  }

  get facts(): StreamFacts {
    return this.#stream.facts
  }

  /** Waits for the first thing worth forwarding: until then a failure is an ordinary error answer. */
  async begin(): Promise<void> {
    this.#first = await this.#pull()
    if (this.#first === undefined) this.complete()
  }

  /** The next bytes for the client, or undefined when the vendor's stream is over. */
  next(): Promise<Uint8Array | undefined> {
    const first = this.#first
    if (first === undefined) return this.#pull()
    this.#first = undefined
    return Promise.resolve(first)
  }

  /** Throws unless the vendor's stream came to its proper end: a cut must never look like one. */
  complete(): void {
    const { failure, ended, finished } = this.facts
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
      if (this.facts.ended || this.facts.failure !== undefined) {
        this.#over = true
        this.#exchange.finish()
        break
      }
    }
    const [first] = forward
    return forward.length <= 1 ? first : Buffer.concat(forward)
  }
}
