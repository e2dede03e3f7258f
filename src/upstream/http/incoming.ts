import type { ResponseHead } from './response-head.ts'

/** Whoever brings the bytes, and can be made to wait, or to stop. */
export type Flow = { pause(): void; resume(): void; destroy(reason: Error): void }

// What may lie here unread before the vendor is made to wait.
const unreadBytesMax = 64 * 1024

/** One response as it arrives: a connection pushes, a reader pulls, and neither needs the other to be ready. */
export class Incoming {
  readonly #arrived = Promise.withResolvers<ResponseHead>()
  readonly #flow: Flow
  #hasHead = false
  #unread: Uint8Array[] = []
  #unreadBytes = 0
  #isPaused = false
  #isOver = false
  #failure: Error | undefined
  #reader: PromiseWithResolvers<Uint8Array | undefined> | undefined

  constructor(flow: Flow) {
    this.#flow = flow
  }

  /** Resolves when the head has come. */
  get head(): Promise<ResponseHead> {
    return this.#arrived.promise
  }

  /** All that has come and was not read yet, or the next that comes; undefined at the end. One reader at a time. */
  read(): Promise<Uint8Array | undefined> {
    if (this.#unread.length > 0) return Promise.resolve(this.#takeUnread())
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    if (this.#isOver) return Promise.resolve(undefined)
    this.#reader = Promise.withResolvers()
    return this.#reader.promise
  }

  /** Nobody wants the rest. Whoever waits for it gets the reason instead. */
  abort(reason: Error): void {
    // What is over has given its connection back, and that may be another's by now.
    if (!this.#isOver) this.#flow.destroy(reason)
  }

  begin(head: ResponseHead): void {
    this.#hasHead = true
    this.#arrived.resolve(head)
  }

  push(piece: Uint8Array): void {
    if (this.#reader !== undefined) {
      this.#wake(piece)
      return
    }
    this.#unread.push(piece)
    this.#unreadBytes += piece.length
    if (this.#unreadBytes > unreadBytesMax && !this.#isPaused) {
      this.#isPaused = true
      this.#flow.pause()
    }
  }

  end(): void {
    this.#isOver = true
    // What is unread waits here; whoever has the connection next must not wait for its reader.
    this.#resume()
    this.#wake(undefined)
  }

  /** What has come can still be read; then this is what there is instead of an end. */
  fail(failure: Error): void {
    if (this.#isOver || this.#failure !== undefined) return
    this.#failure = failure
    if (!this.#hasHead) this.#arrived.reject(failure)
    const reader = this.#reader
    this.#reader = undefined
    reader?.reject(failure)
  }

  #wake(piece: Uint8Array | undefined): void {
    const reader = this.#reader
    this.#reader = undefined
    reader?.resolve(piece)
  }

  #takeUnread(): Uint8Array {
    const [first] = this.#unread
    const all = this.#unread.length === 1 && first !== undefined ? first : Buffer.concat(this.#unread)
    this.#unread = []
    this.#unreadBytes = 0
    this.#resume()
    return all
  }

  #resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#flow.resume()
  }
}
