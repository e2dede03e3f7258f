/** Callbacks about the reader of a tapped body. */
export type Watcher = {
  /** The reader has room: called at the beginning, and again after the reader had fallen behind. */
  wanted(): void
  /** The reader left before the end. Called at most once, and never after `end` or `fail`. */
  gone(): void
}

// The runtime cuts a body off with a TCP reset, which discards what the client has received and not read yet, so `fail`
// waits this long before it.
const lastReadMs = 100

/**
 * A body whose end is reported exactly once, however it comes: read to its end, failed, or left by its reader, even
 * before the first read (where the `finally` of an async generator would never run). `put` writes to the client's
 * socket at once, through Bun's own `direct` kind of stream: there is no queue, and no promise for each event.
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
    this.#ended.promise.catch(() => {}) // the stream may fail before it is read
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
    // The web's stream types do not know the `direct` kind.
    this.body = new ReadableStream(source as unknown as UnderlyingDefaultSource<Uint8Array>)
  }

  /** False means that the reader is behind: the bytes wait in memory, and the caller should pause until `wanted`. */
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

  /**
   * Cuts the connection off, so that the reader does not take what it has for the whole body. A reader in this process
   * is told why.
   */
  fail(why?: unknown): void {
    if (this.#settle()) setTimeout(() => this.#ended.reject(why), lastReadMs)
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
