import type { Deadline, Deadlines } from '../base/deadlines.ts'
import type { Routed } from './stages.ts'

/** How long a client may take nothing of its stream, and how long any stream may take. */
export type ReaderTimeouts = { readonly readerMs: number; readonly totalMs: number }

// Of one wait. More would tell sooner that somebody has stopped, and cost a reading of the system's table each.
const looks = 4

// Where the system does not say what a reader takes, only the runtime does, when a third of the buffers is free again.
const blindFactor = 5

/**
 * Tells a reader that takes its time from one that has stopped. There is no room for more, but megabytes lie on the way:
 * as long as they become fewer, somebody reads them.
 */
export class SlowReader {
  readonly #routed: Pick<Routed, 'client' | 'elapsedMs'>
  readonly #timeouts: ReaderTimeouts
  readonly #stopped: () => void
  readonly #next: Deadline
  readonly #lookMs: number
  #isBehind = false
  #hasLooked = false
  /** At the last look. */
  #untaken: number | undefined
  #looksAlike = 0

  /** `stopped`: nothing was taken for as long as it may, or the time for all of it is up. */
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

  /** It has no room. */
  behind(): void {
    if (this.#isBehind) return
    this.#isBehind = true
    this.#hasLooked = false
    this.#looksAlike = 0
    this.#next.set(this.#lookMs)
  }

  /** It has room, or is not waited for any more. */
  caughtUp(): void {
    this.#isBehind = false
    this.#next.clear()
  }

  async #look(): Promise<void> {
    const { client, elapsedMs } = this.#routed
    if (elapsedMs() >= this.#timeouts.totalMs) return this.#stop()
    const untaken = await client.untaken(this.#lookMs / 10)
    if (!this.#isBehind) return
    this.#looksAlike = this.#hasLooked && untaken === this.#untaken ? this.#looksAlike + 1 : 0
    this.#hasLooked = true
    this.#untaken = untaken
    if (this.#looksAlike >= (untaken === undefined ? looks * blindFactor : looks)) this.#stop()
    else this.#next.set(this.#lookMs)
  }

  #stop(): void {
    this.caughtUp()
    this.#stopped()
  }
}
