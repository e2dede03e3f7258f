import type { Outlet } from '../../base/pour.ts'
import type { ResponseHead } from './response-head.ts'

/** Whoever brings the bytes, and can be made to wait, or to stop. */
export type Flow = { pause(): void; resume(): void; destroy(reason: Error): void }

// What may lie here unread before the vendor is made to wait.
const unreadBytesMax = 64 * 1024

/** Whoever asked. Told once, what came first or why nothing did. */
export type Asker = { begin(head: ResponseHead): void; unanswered(failure: Error): void }

/** One response as it arrives. What comes while nobody takes it waits here, and in the end the vendor waits too. */
export class Incoming {
  readonly #flow: Flow
  readonly #asker: Asker
  #hasHead = false
  #unread: Uint8Array[] = []
  #unreadBytes = 0
  #isPaused = false
  #isOver = false
  #failure: Error | undefined
  #outlet: Outlet<Error> | undefined

  constructor(flow: Flow, asker: Asker) {
    this.#flow = flow
    this.#asker = asker
  }

  /** What has come, as one piece, and then whatever comes, until it is held. */
  pour(outlet: Outlet<Error>): void {
    this.#outlet = outlet
    if (this.#unread.length > 0) outlet.take(this.#takeUnread())
    if (this.#isOver || this.#failure !== undefined) this.#tellEnd()
  }

  hold(): void {
    this.#outlet = undefined
  }

  /** Nobody wants the rest. Whoever waits for it gets the reason instead. */
  abort(reason: Error): void {
    // What is over has given its connection back, and that may be another's by now.
    if (!this.#isOver) this.#flow.destroy(reason)
  }

  begin(head: ResponseHead): void {
    this.#hasHead = true
    this.#asker.begin(head)
  }

  push(piece: Uint8Array): void {
    if (this.#outlet !== undefined) {
      this.#outlet.take(piece)
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
    this.#tellEnd()
  }

  /** What has come can still be read; then this is what there is instead of an end. */
  fail(failure: Error): void {
    if (this.#isOver || this.#failure !== undefined) return
    this.#failure = failure
    if (this.#hasHead) this.#tellEnd()
    else this.#asker.unanswered(failure)
  }

  #tellEnd(): void {
    const outlet = this.#outlet
    this.#outlet = undefined
    outlet?.end(this.#failure)
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
