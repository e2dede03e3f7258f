import { wholeOf, type Bytes } from '../spliced.ts'
import { chunkOf } from './chunk.ts'
import type { Exchange } from './exchange.ts'
import type { PushedBody, Sink } from './pushed-body.ts'
import type { Delimiting } from './reply.ts'

/** What a connection does for a body that is poured into it. */
export type Vessel = {
  /** Whether the response of this exchange is not finished. */
  carries(exchange: Exchange): boolean
  write(bytes: Uint8Array): boolean
  /** Never of no bytes, which would end the body. */
  readonly writeChunk: (bytes: Bytes) => boolean // a property, see `Outlet`
  /** The body is complete. */
  finish(exchange: Exchange, keeps: boolean): void
  /** The body broke off. `isNoticed`: the client notices that even if the connection is closed properly. */
  cut(exchange: Exchange, isNoticed: boolean): void
}

type Framed = { readonly head: string; readonly delimiting: Delimiting; readonly keeps: boolean }

const lastChunk = '0\r\n\r\n'

/** Writes a body to a connection as it comes into being. The head goes out with its first bytes, in one packet. */
export class Pouring implements Sink {
  readonly #vessel: Vessel
  readonly #exchange: Exchange
  readonly body: PushedBody
  // Taken out of what was framed: each further object that an event of a stream touches is a cache miss.
  readonly #delimiting: Delimiting
  readonly #keeps: boolean
  #head: string | undefined
  #bytes = 0
  /** Its last bytes are written, though the client may not have taken them yet. */
  #isOver = false

  constructor(vessel: Vessel, exchange: Exchange, body: PushedBody, { head, delimiting, keeps }: Framed) {
    this.#vessel = vessel
    this.#exchange = exchange
    this.body = body
    this.#head = head
    this.#delimiting = delimiting
    this.#keeps = keeps
  }

  write(bytes: Bytes): boolean {
    if (this.#isOver || !this.#vessel.carries(this.#exchange)) return false
    if (bytes.length === 0) return true // an empty chunk would be the last one
    this.#bytes += bytes.length
    const delimiting = this.#delimiting
    // What is beyond the length that its head says would be taken for the next response.
    if (typeof delimiting === 'number' && this.#bytes > delimiting) {
      this.cut()
      return false
    }
    if (this.#head !== undefined) return this.#writeFirst(bytes)
    return delimiting === 'chunked' ? this.#vessel.writeChunk(bytes) : this.#vessel.write(wholeOf(bytes))
  }

  end(): void {
    if (this.#isOver || !this.#vessel.carries(this.#exchange)) return
    const delimiting = this.#delimiting
    // A body that turned out shorter than its head says would be completed with the next response.
    if (typeof delimiting === 'number' && this.#bytes !== delimiting) return this.cut()
    this.#isOver = true
    const rest = this.#takeHead() + (delimiting === 'chunked' ? lastChunk : '')
    if (rest !== '') this.#vessel.write(Buffer.from(rest, 'latin1'))
    this.#vessel.finish(this.#exchange, this.#keeps)
  }

  cut(): void {
    if (this.#isOver) return
    this.#isOver = true
    // The end of the connection is also how a body without chunks or a length ends properly.
    const isNoticed = this.#head === undefined && this.#delimiting !== 'until-close'
    this.#vessel.cut(this.#exchange, isNoticed)
  }

  #writeFirst(bytes: Bytes): boolean {
    const head = Buffer.from(this.#takeHead(), 'latin1')
    return this.#vessel.write(Buffer.concat([head, this.#delimiting === 'chunked' ? chunkOf(bytes) : wholeOf(bytes)]))
  }

  #takeHead(): string {
    const head = this.#head ?? ''
    this.#head = undefined
    return head
  }
}
