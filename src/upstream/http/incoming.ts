import { joined } from '../../base/bytes.ts'
import type { Movable } from '../../base/deadlines.ts'
import type { Outlet } from '../../base/pour.ts'
import type { ResponseHead } from './response-head.ts'

/** The source of the bytes, which can be paused and ended. */
export type Flow = { pause(): void; resume(): void; destroy(reason: Error): void }

// How many bytes may wait here unread before the vendor is made to wait.
const unreadBytesMax = 64 * 1024

/** The call that sent the request. It is told the head of the response and its end, or why none came. */
export type Asker = {
  begin(head: ResponseHead): void
  unanswered(failure: Error): void
  /** Told while the response is poured, or with the next pour. */
  end(failure: Error | undefined): void
}

/**
 * One response as it arrives. Bytes that no outlet takes yet wait here, and in the end the vendor waits too. They go to
 * their outlet past the call, because each further object that an event of a stream touches is a cache miss.
 */
export class Incoming implements Movable {
  readonly #flow: Flow
  readonly #asker: Asker
  #hasHead = false
  #unread: Uint8Array[] = []
  #unreadBytes = 0
  #isPaused = false
  #isOver = false
  #failure: Error | undefined
  #outlet: Pick<Outlet, 'take'> | undefined
  #hasMoved = false

  constructor(flow: Flow, asker: Asker) {
    this.#flow = flow
    this.#asker = asker
  }

  /** Gives what has come as one piece, and then each piece as it comes, until it is paused. */
  pour(outlet: Pick<Outlet, 'take'>): void {
    this.#outlet = outlet
    if (this.#unread.length > 0) outlet.take(this.#takeUnread())
    if (this.#isOver || this.#failure !== undefined) this.#tellEnd()
  }

  pause(): void {
    this.#outlet = undefined
  }

  /** Takes back what was poured last and is still to be read. */
  putBack(piece: Uint8Array): void {
    this.#unread.unshift(piece)
    this.#unreadBytes += piece.length
  }

  /** Drops the rest of the response: its reader gets the reason instead. */
  abort(reason: Error): void {
    // A response that is over has given its connection back, which may carry another exchange by now.
    if (!this.#isOver) this.#flow.destroy(reason)
  }

  begin(head: ResponseHead): void {
    this.#hasHead = true
    this.#asker.begin(head)
  }

  takeMoved(): boolean {
    const hasMoved = this.#hasMoved
    this.#hasMoved = false
    return hasMoved
  }

  push(piece: Uint8Array): void {
    this.#hasMoved = true
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
    // Unread bytes stay here: the next exchange over the connection must not wait for their reader.
    this.#resume()
    this.#tellEnd()
  }

  /** Bytes that have come can still be read; after them the failure comes instead of an end. */
  fail(failure: Error): void {
    if (this.#isOver || this.#failure !== undefined) return
    this.#failure = failure
    if (this.#hasHead) this.#tellEnd()
    else this.#asker.unanswered(failure)
  }

  #tellEnd(): void {
    if (this.#outlet === undefined) return
    this.#outlet = undefined // first, because the call may end in the middle of a pour, which then tells no second end
    this.#asker.end(this.#failure)
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
    this.#flow.resume()
  }
}
