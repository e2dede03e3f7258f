import { joined } from '../bytes.ts'
import { bodyDecoderFor, type BodyDecoder, type Framing } from './body-decoder.ts'

/** Where the bytes come from; it can be made to wait. */
export type BodySource = {
  pause(): void
  resume(): void
  /** The body is asked for: a client that waits for permission to send it may go on. */
  wanted(): void
}

// How many bytes may wait here unread before the client is made to wait.
const unreadBytesMax = 64 * 1024

type Reader = { readonly resolve: (piece: Uint8Array | undefined) => void; readonly reject: (reason: Error) => void }

/** The body of one request as it arrives. It is read once: whole, or piece by piece. */
export class RequestBody {
  readonly #source: BodySource
  readonly #decoder: BodyDecoder
  #unread: Uint8Array[] = []
  #unreadBytes = 0
  #isPaused = false
  /** Nobody reads it: what still comes is dropped. */
  #isDropped = false
  #failure: Error | undefined
  #reader: Reader | undefined
  /** Collects the whole body, however long it is; who asks for that has looked at the declared length. */
  #whole: Reader | undefined
  isUsed = false

  constructor(framing: Framing, source: BodySource) {
    this.#source = source
    this.#decoder = bodyDecoderFor(framing)
  }

  /** Whether its last byte has come. */
  get isOver(): boolean {
    return this.#decoder.isOver
  }

  /** Takes what came over the connection, and gives how many of the bytes belong to this body. */
  take(bytes: Uint8Array): number {
    const taken = this.#decoder.take(bytes, this)
    if (this.#decoder.isOver) this.#tellEnd()
    return taken
  }

  /** Called by its decoder. */
  push(piece: Uint8Array): void {
    if (this.#isDropped) return
    const reader = this.#reader
    if (reader !== undefined) {
      this.#reader = undefined
      return reader.resolve(piece)
    }
    this.#unread.push(piece)
    this.#unreadBytes += piece.length
    if (this.#unreadBytes > unreadBytesMax && this.#whole === undefined && !this.#isPaused && !this.isOver) {
      this.#isPaused = true
      this.#source.pause()
    }
  }

  /** No more will come. Pieces that have come can still be read, but a whole body cannot. */
  fail(failure: Error): void {
    if (this.isOver || this.#failure !== undefined) return
    this.#failure = failure
    this.#whole?.reject(failure)
    this.#reader?.reject(failure)
    this.#whole = this.#reader = undefined
  }

  drop(): void {
    this.isUsed = this.#isDropped = true
    this.#takeUnread()
  }

  bytes(): Promise<Uint8Array> {
    if (this.isUsed) return Promise.reject(new TypeError('the body was read before'))
    this.isUsed = true
    if (this.isOver) return Promise.resolve(this.#takeUnread())
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    this.#source.wanted()
    return new Promise((resolve, reject) => {
      this.#whole = { resolve: (all) => resolve(all ?? none), reject }
      this.#resume()
    })
  }

  bytesAtOnce(): Uint8Array | undefined {
    if (!this.isOver || this.isUsed) return undefined
    this.isUsed = true
    return this.#takeUnread()
  }

  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          this.isUsed = true
          const piece = await this.#read()
          if (piece === undefined) controller.close()
          else controller.enqueue(piece)
        },
        cancel: () => this.drop(),
      },
      { highWaterMark: 0 },
    )
  }

  #read(): Promise<Uint8Array | undefined> {
    if (this.#unread.length > 0) return Promise.resolve(this.#takeUnread())
    if (this.isOver) return Promise.resolve(undefined)
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    this.#source.wanted()
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject }
    })
  }

  #tellEnd(): void {
    this.#whole?.resolve(this.#takeUnread())
    this.#reader?.resolve(undefined)
    this.#whole = this.#reader = undefined
  }

  #takeUnread(): Uint8Array {
    const all = joined(this.#unread)
    this.#unread = []
    this.#unreadBytes = 0
    this.#resume()
    return all
  }

  #resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#source.resume()
  }
}

const none = new Uint8Array(0)
