import type { ClientSignal } from './http/client-signal.ts'
import type { PushedBody, Sink } from './http/pushed-body.ts'
import type { Bytes } from './spliced.ts'

/** Callbacks about the reader of a tapped body. */
export type Watcher = {
  /** The reader has room: called at the beginning, and again after the reader had fallen behind. */
  wanted(): void
  /** The reader left before the end. Called at most once, and never after `end` or `fail`. */
  gone(): void
}

// Many clients drop what they have received and not read yet once the connection ends, so `fail` waits this long first.
const lastReadMs = 100

/**
 * A body whose end is reported exactly once, however it comes: read to its end, failed, or left by its reader, even
 * before the first read (where the `finally` of an async generator would never run). `put` writes to the client's
 * socket at once: there is no queue, and no promise for each event.
 */
export class Tap implements PushedBody {
  readonly #watcher: Watcher
  readonly #signal: ClientSignal
  #sink: Sink | undefined
  #isOver = false
  /** What its reader is told where it was over before it was read. */
  #toldLater: ((sink: Sink) => void) | undefined

  constructor(watcher: Watcher, signal: ClientSignal) {
    this.#watcher = watcher
    this.#signal = signal
    if (signal.aborted) this.left()
    else signal.addEventListener('abort', this.#leave, { once: true })
  }

  begin(sink: Sink): void {
    this.#sink = sink
    if (this.#isOver) this.#toldLater?.(sink)
    else this.#watcher.wanted()
  }

  drained(): void {
    if (!this.#isOver) this.#watcher.wanted()
  }

  left(): void {
    if (!this.#settle()) return
    this.#tell((sink) => sink.end())
    this.#watcher.gone()
  }

  /** False means that the reader is behind: the bytes wait in memory, and the caller should pause until `wanted`. */
  put(bytes: Bytes): boolean {
    return !this.#isOver && this.#sink?.write(bytes) === true
  }

  end(): void {
    if (this.#settle()) this.#tell((sink) => sink.end())
  }

  /**
   * Cuts the body off, so that the reader does not take what it has for the whole. A reader in this process is told
   * why.
   */
  fail(why?: unknown): void {
    if (this.#settle()) this.#tell((sink) => void setTimeout(() => sink.cut(why), lastReadMs))
  }

  readonly #leave = (): void => this.left()

  #tell(how: (sink: Sink) => void): void {
    if (this.#sink === undefined) this.#toldLater = how
    else how(this.#sink)
  }

  #settle(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#signal.removeEventListener('abort', this.#leave)
    return true
  }
}
