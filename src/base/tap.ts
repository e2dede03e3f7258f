/** What is told about the reader of a tapped body. */
export type Watcher = {
  /** It has room: at first, and again after it was behind. */
  wanted(): void
  /** It left before the end. Told at most once, and never after `end` or `fail`. */
  gone(): void
}

// The runtime cuts off by a reset, which takes from the reader what it has got and not read yet.
const lastReadMs = 100

/**
 * A body whose end is told exactly once, whichever way it comes: read to its end, failed, or left by its reader, even
 * before the first read (where the `finally` of an async generator would never run). What is put goes to the client's
 * socket at once, by the runtime's own `direct` kind of stream: no queue, and no promise for an event.
 */
export class Tap {
  readonly body: ReadableStream<Uint8Array>
  readonly #watcher: Watcher
  readonly #signal: AbortSignal
  readonly #ended = Promise.withResolvers<void>()
  #socket: ReadableStreamDirectController | undefined
  #isOver = false

  constructor(watcher: Watcher, signal: AbortSignal) {
    this.#watcher = watcher
    this.#signal = signal
    this.#ended.promise.catch(() => {}) // it may break before anybody reads it
    if (signal.aborted) this.#leave()
    else signal.addEventListener('abort', this.#leave, { once: true })
    const source: Bun.DirectUnderlyingSource<Uint8Array> = {
      type: 'direct',
      pull: (socket) => {
        this.#socket = socket
        if (!this.#isOver) watcher.wanted()
        return this.#ended.promise
      },
      cancel: this.#leave,
    }
    // The types of the web do not know this kind.
    this.body = new ReadableStream(source as unknown as UnderlyingDefaultSource<Uint8Array>)
  }

  /** False: the reader is behind. What comes now waits in memory, so that whoever sends should wait until it is wanted. */
  put(bytes: Uint8Array): boolean {
    if (this.#isOver || this.#socket === undefined) return false
    const written = this.#socket.write(bytes)
    void this.#socket.flush()
    if (typeof written === 'number') return true
    written.then(this.#drained, this.#drained)
    return false
  }

  end(): void {
    if (!this.#settle()) return
    this.#socket?.close()
    this.#ended.resolve()
  }

  /** Cut off: a reader must not take what it has for the whole. */
  fail(): void {
    if (this.#settle()) setTimeout(() => this.#ended.reject(), lastReadMs)
  }

  readonly #leave = (): void => {
    if (!this.#settle()) return
    this.#ended.resolve()
    this.#watcher.gone()
  }

  readonly #drained = (): void => {
    if (!this.#isOver) this.#watcher.wanted()
  }

  #settle(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#signal.removeEventListener('abort', this.#leave)
    return true
  }
}
