import { joined } from '../base/bytes.ts'
import { asGatewayError, GatewayError } from '../base/errors.ts'
import type { Outlet, Source } from '../base/pour.ts'
import type { Bytes } from '../base/spliced.ts'
import { EventSplitter } from '../base/sse.ts'
import type { ChatStream } from '../capabilities/chat.ts'
import type { AttemptRecord } from '../store/requests.ts'
import type { Exchange } from '../upstream/transport.ts'
import type { Leg } from './legs.ts'

/** A vendor's answer on its way to the client, poured in whole events. A stream that is cut off ends as a failure. */
export type Relay = Pick<Source, 'pause'> & {
  /** As a source is poured. */
  readonly pour: (outlet: Outlet<Bytes>) => void
  readonly legs: readonly Leg[]
  /** Calls for parts of the answer that failed, also those that were repeated. */
  readonly failed?: readonly AttemptRecord[]
  /** The answer is complete and only the vendor's usage is missing, so that ending the call now would save nothing. */
  readonly isUncounted?: boolean
  /** The client has left or stopped reading: no further call is made, and output it was not shown yet is owed too. */
  left?(): void
  /**
   * Bytes to send between two events of a quiet stream, so that proxies do not take it for dead; undefined for none.
   */
  keepAlive?(): Uint8Array | undefined
  /** The bytes that were held back until the settlement is recorded. */
  closing(): Uint8Array
  /** Ends the call; an outlet that is being poured into is told the end. */
  abort(): void
}

export type RelayOptions = {
  /** The limits for one event and for the whole stream. */
  readonly bytesMax: { readonly event: number; readonly stream: number }
  readonly leg: Leg
  /** The error that a failure means after something was delivered. Before that, the caller of `begin` judges it. */
  readonly judge: (failure: GatewayError) => GatewayError
  /** Called when the stream has come to its proper end. */
  readonly complete: () => void
}

/** What a relay needs of the call that it carries. */
export type Poured = Pick<Exchange, 'pour' | 'pause' | 'finish' | 'abort'>

/** Carries one stream: takes the bytes that the vendor sends, and passes on the events that each read completes. */
export class StreamRelay implements Relay, Outlet {
  readonly legs: readonly Leg[]
  readonly #exchange: Poured
  readonly #stream: ChatStream
  readonly #splitter: EventSplitter
  readonly #judge: (failure: GatewayError) => GatewayError
  readonly #complete: () => void
  readonly #bytesMax: number
  #bytes = 0
  #first: Bytes | undefined
  #hasBegun = false
  #outlet: Outlet<Bytes> | undefined
  #over: { readonly failure: GatewayError | undefined } | undefined

  constructor(exchange: Poured, stream: ChatStream, options: RelayOptions) {
    this.legs = [options.leg]
    this.#exchange = exchange
    this.#stream = stream
    this.#judge = options.judge
    this.#complete = options.complete
    this.#splitter = new EventSplitter(options.bytesMax.event)
    this.#bytesMax = options.bytesMax.stream
  }

  /** Waits for the first bytes to forward: until they come, a failure can still be an ordinary error answer. */
  begin(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.pour({
        take: (first) => {
          this.pause()
          this.#first = first
          this.#hasBegun = true
          resolve()
        },
        end: (failure) => (failure === undefined ? resolve() : reject(failure)),
      })
    })
  }

  /** Passes on what `begin` waited for, and asks for nothing more. */
  pourFirst(outlet: Outlet<Bytes>): void {
    this.#outlet = outlet
    this.#giveFirst()
    this.#outlet = undefined
  }

  pour(outlet: Outlet<Bytes>): void {
    this.#outlet = outlet
    this.#giveFirst()
    if (this.#over !== undefined) this.#tellEnd(this.#over)
    else if (this.#outlet !== undefined) this.#exchange.pour(this)
  }

  pause(): void {
    this.#outlet = undefined
    if (this.#over === undefined) this.#exchange.pause()
  }

  get isUncounted(): boolean {
    const { finished, usage } = this.#stream.facts
    return this.#over === undefined && finished && usage?.output === undefined
  }

  left(): void {
    this.#stream.left?.()
  }

  keepAlive(): Uint8Array | undefined {
    return this.#stream.keepAlive?.()
  }

  closing(): Uint8Array {
    return this.#stream.closing()
  }

  abort(): void {
    this.#exchange.abort()
  }

  take(chunk: Uint8Array): void {
    try {
      this.#bytes += chunk.length
      if (this.#bytes > this.#bytesMax) {
        throw new GatewayError('upstream-failed', "The model's vendor sent more than was requested.")
      }
      const atOnce = this.#splitter.isAtStart ? this.#stream.takeUsual?.(chunk) : undefined
      const shown = atOnce ?? this.#showRead(chunk)
      if (shown !== undefined) this.#give(shown)
    } catch (thrown) {
      this.#break(thrown)
    }
    if (this.#over !== undefined) this.#tellEnd(this.#over)
  }

  end(failure?: GatewayError): void {
    this.#over ??= { failure: failure ?? this.#cut() }
    this.#tellEnd(this.#over)
  }

  #giveFirst(): void {
    const first = this.#first
    this.#first = undefined
    if (first !== undefined) this.#give(first)
  }

  /** An outlet that throws has not got the bytes, so the stream fails even if the vendor has ended it properly. */
  #give(bytes: Bytes): void {
    try {
      this.#outlet?.take(bytes)
    } catch (thrown) {
      this.#break(thrown)
    }
  }

  #break(thrown: unknown): void {
    this.#over = { failure: asGatewayError(thrown) }
    this.#exchange.abort()
  }

  #tellEnd({ failure }: { readonly failure: GatewayError | undefined }): void {
    const outlet = this.#outlet
    this.#outlet = undefined
    if (failure === undefined) this.#complete()
    outlet?.end(failure !== undefined && this.#hasBegun ? this.#judge(failure) : failure)
  }

  #showRead(chunk: Uint8Array): Uint8Array | undefined {
    return this.#splitter.isWhole(chunk) ? this.#show(chunk) : this.#showAll(this.#splitter.push(chunk))
  }

  #showAll(events: readonly Uint8Array[]): Uint8Array | undefined {
    const shown: Uint8Array[] = []
    for (const event of events) {
      const bytes = this.#show(event)
      if (bytes !== undefined) shown.push(bytes)
      if (this.#over !== undefined) break
    }
    return shown.length === 0 ? undefined : joined(shown)
  }

  /** What the client is shown of an event; after the last one the stream is over. */
  #show(event: Uint8Array): Uint8Array | undefined {
    const shown = this.#stream.take(event)
    const { ended, failure } = this.#stream.facts
    if (ended || failure !== undefined) {
      this.#over = { failure: this.#cut() }
      this.#exchange.finish()
    }
    return shown
  }

  /** Judges the end by the stream's own events: the failure, or undefined for a proper end. */
  #cut(): GatewayError | undefined {
    const { failure, ended, finished, outputEvents } = this.#stream.facts
    if (failure !== undefined) return failure
    // Some proxies send an end whatever happened behind them: without a finish or any output it tells of no answer.
    if (finished || (ended && outputEvents > 0)) return undefined
    return new GatewayError('upstream-failed', "The model's vendor ended the stream before it was finished.")
  }
}
