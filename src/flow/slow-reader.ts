import type { Deadline, Deadlines } from '../base/deadlines.ts'
import type { Routed } from './stages.ts'

/** How long a client may take nothing of its stream, and how long a request may take in all. */
export type ReaderTimeouts = { readonly readerMs: number; readonly totalMs: number }

// Looks per `readerMs`. More looks would notice a stopped reader sooner, but each one reads the system's socket table.
const looks = 4

// Where the system does not say what a reader takes, the only sign is the runtime's, which comes when a third of the
// buffers is free again. The reader gets this many times as long then.
const blindFactor = 5

/**
 * Tells a slow reader from one that has stopped. The buffers are full, with megabytes on the way to the client: as long
 * as these become fewer, the client is reading.
 */
export class SlowReader {
  readonly #routed: Pick<Routed, 'client' | 'elapsedMs'>
  readonly #timeouts: ReaderTimeouts
  readonly #stopped: () => void
  readonly #next: Deadline
  readonly #lookMs: number
  #isBehind = false
  #hasLooked = false
  /** The bytes that the client had not taken at the last look. */
  #unreadBytes: number | undefined
  #looksAlike = 0

  /** `stopped` is called when nothing was taken for `readerMs`, or the request's total time is up. */
  constructor(
    routed: Pick<Routed, 'client' | 'elapsedMs'>,
    deadlines: Deadlines,
    timeouts: ReaderTimeouts,
    stopped: () => void,
  ) {
    this.#routed = routed
    this.#timeouts = timeouts
    this.#stopped = stopped
    this.#lookMs = timeouts.readerMs / looks
    this.#next = deadlines.open(() => void this.#look(), timeouts.totalMs - routed.elapsedMs())
  }

  /** The client's socket has no room. */
  behind(): void {
    if (this.#isBehind) return
    this.#isBehind = true
    this.#hasLooked = false
    this.#next.set(this.#lookMs)
  }

  /** The client's socket has room again, or the stream is over. */
  caughtUp(): void {
    this.#isBehind = false
    this.#next.clear()
  }

  async #look(): Promise<void> {
    const { client, elapsedMs } = this.#routed
    if (elapsedMs() >= this.#timeouts.totalMs) return this.#stop()
    const unreadBytes = await client.unreadBytes(this.#lookMs / 10)
    if (!this.#isBehind) return
    this.#looksAlike = this.#hasLooked && unreadBytes === this.#unreadBytes ? this.#looksAlike + 1 : 0
    this.#hasLooked = true
    this.#unreadBytes = unreadBytes
    if (this.#looksAlike >= (unreadBytes === undefined ? looks * blindFactor : looks)) this.#stop()
    else this.#next.set(this.#lookMs)
  }

  #stop(): void {
    this.caughtUp()
    this.#stopped()
  }
}
