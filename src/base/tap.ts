/** What is told about the reader of a tapped body. */
export type Watcher = {
  /** It has read all there was and waits for more. */
  wanted(): void
  /** It left before the end. Told at most once, and never after `end` or `fail`. */
  gone(): void
}

/**
 * A body whose end is told exactly once, whichever way it comes: read to its end, failed, or left by its reader, even
 * before the first read (where the `finally` of an async generator would never run).
 */
export class Tap {
  readonly body: ReadableStream<Uint8Array>
  readonly #watcher: Watcher
  readonly #signal: AbortSignal
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  #isWanted = false
  #isOver = false

  constructor(watcher: Watcher, signal: AbortSignal) {
    this.#watcher = watcher
    this.#signal = signal
    if (signal.aborted) this.#leave()
    else signal.addEventListener('abort', this.#leave, { once: true })
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: (controller) => {
          if (this.#isOver) return controller.close()
          this.#isWanted = true
          watcher.wanted()
        },
        cancel: this.#leave,
      },
      { highWaterMark: 0 },
    )
  }

  /** False: the reader is behind. What comes now waits in memory, so that whoever sends should wait until it is wanted. */
  put(bytes: Uint8Array): boolean {
    if (this.#isOver) return false
    const hasReader = this.#isWanted
    this.#isWanted = false
    this.#controller?.enqueue(bytes)
    return hasReader
  }

  end(): void {
    if (this.#settle()) this.#controller?.close()
  }

  /** Cut off: a reader must not take what it has for the whole. */
  fail(): void {
    if (this.#settle()) this.#controller?.error() // without a reason, which Bun would print to the console
  }

  readonly #leave = (): void => {
    if (this.#settle()) this.#watcher.gone()
  }

  #settle(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#signal.removeEventListener('abort', this.#leave)
    return true
  }
}
