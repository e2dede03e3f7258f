import type { Exchange } from './exchange.ts'
import type { PushedBody, Sink } from './pushed-body.ts'
import type { Delimiting } from './reply.ts'

/** What a connection does for a body that is poured into it. */
export type Vessel = {
  /** Whether the response of this exchange is not finished. */
  carries(exchange: Exchange): boolean
  write(bytes: Uint8Array): boolean
  /** The body is complete. */
  finish(exchange: Exchange, keeps: boolean): void
  /** The body broke off. `isNoticed`: the client notices that even if the connection is closed properly. */
  cut(exchange: Exchange, isNoticed: boolean): void
}

type Framed = { readonly head: string; readonly delimiting: Delimiting; readonly keeps: boolean }

const cr = 13
const lf = 10
const lastChunk = '0\r\n\r\n'

/** Writes a body to a connection as it comes into being. The head goes out with its first bytes, in one packet. */
export class Pouring implements Sink {
  readonly #vessel: Vessel
  readonly #exchange: Exchange
  readonly body: PushedBody
  readonly #framed: Framed
  #head: string | undefined
  #bytes = 0

  constructor(vessel: Vessel, exchange: Exchange, body: PushedBody, framed: Framed) {
    this.#vessel = vessel
    this.#exchange = exchange
    this.body = body
    this.#framed = framed
    this.#head = framed.head
  }

  write(bytes: Uint8Array): boolean {
    if (!this.#vessel.carries(this.#exchange)) return false
    if (bytes.length === 0) return true // an empty chunk would be the last one
    this.#bytes += bytes.length
    const isChunked = this.#framed.delimiting === 'chunked'
    const head = this.#takeHead()
    if (!isChunked && head === '') return this.#vessel.write(bytes)
    const before = isChunked ? `${head}${bytes.length.toString(16)}\r\n` : head
    const frame = Buffer.allocUnsafe(before.length + bytes.length + (isChunked ? 2 : 0))
    frame.write(before, 'latin1')
    frame.set(bytes, before.length)
    if (isChunked) {
      frame[frame.length - 2] = cr
      frame[frame.length - 1] = lf
    }
    return this.#vessel.write(frame)
  }

  end(): void {
    if (!this.#vessel.carries(this.#exchange)) return
    const { delimiting, keeps } = this.#framed
    // A body that turned out shorter than its head says would be completed with the next response.
    if (typeof delimiting === 'number' && this.#bytes !== delimiting) return this.cut()
    const rest = this.#takeHead() + (delimiting === 'chunked' ? lastChunk : '')
    if (rest !== '') this.#vessel.write(Buffer.from(rest, 'latin1'))
    this.#vessel.finish(this.#exchange, keeps)
  }

  cut(): void {
    // The end of the connection is also how a body without chunks or a length ends properly.
    const isNoticed = this.#head === undefined && this.#framed.delimiting !== 'until-close'
    this.#vessel.cut(this.#exchange, isNoticed)
  }

  #takeHead(): string {
    const head = this.#head ?? ''
    this.#head = undefined
    return head
  }
}
