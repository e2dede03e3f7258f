import type { Clock, Timers } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { isUnavailable } from './faults.ts'

/** Something that has happened and is not yet recorded in the database. */
export type Unwritten = {
  /** Must be safe to repeat, since a commit whose answer was lost may have taken place. */
  readonly write: () => Promise<unknown>
  readonly about: About
  /** Unix milliseconds after which it need not be written, since cleanup ends it. Absent: nothing else does. */
  readonly deadline?: number
}

/** Logged with a write that is given up: all that is needed to record it by hand. */
export type About = Readonly<Record<string, string>>

// Each is the record of a request, some kilobytes at most. Nothing new begins without the database, so there are about
// as many as requests were under way when it became unavailable.
const unwrittenMax = 10_000

type Options = {
  readonly log: Log
  readonly clock: Pick<Clock, 'now'>
  readonly timers: Timers
  /** The pause between two tries while the database is unavailable. */
  readonly pauseMs: number
}

/**
 * Retries in the background what could not be written because the database was unavailable, until it is written, its
 * deadline is past or the node stops. Writes go one at a time, so that neither a database that hangs nor one that is
 * just back is met by all of them at once.
 */
export class RetryQueue {
  readonly #options: Options
  readonly #unwritten = new Set<Unwritten & { over(): void }>()
  #working: Promise<void> | undefined
  #isClosing = false
  #wake = () => {}

  constructor(options: Options) {
    this.#options = options
  }

  /** Resolves when it is written or given up. */
  add(unwritten: Unwritten): Promise<void> {
    if (this.#isClosing || this.#unwritten.size >= unwrittenMax) {
      this.#options.log.error(unwritten.about, 'it will not be recorded')
      return Promise.resolve()
    }
    return new Promise((over) => {
      this.#unwritten.add({ ...unwritten, over })
      this.#working ??= this.#work()
    })
  }

  /** Resolves when no write is waiting any more. */
  async idle(): Promise<void> {
    await this.#working
  }

  /** Tries each write once more, as long as the database answers. */
  close(): Promise<void> {
    this.#isClosing = true
    this.#wake()
    return this.idle()
  }

  async #work(): Promise<void> {
    let isAway = true // writes are only added here after the database failed them
    // A set iterates in the order of insertion, so a write that is put back comes again after all others.
    for (const one of this.#unwritten) {
      if (isAway) await this.#pause()
      isAway = !(await this.#tryWrite(one))
      if (isAway && this.#isClosing) break
      this.#unwritten.delete(one)
      if (isAway) this.#unwritten.add(one)
      else one.over()
    }
    for (const left of this.#unwritten) {
      this.#options.log.error(left.about, 'the node stops before it could be recorded')
      left.over()
    }
    this.#unwritten.clear()
    this.#working = undefined
  }

  async #tryWrite({ write, about, deadline = Infinity }: Unwritten): Promise<boolean> {
    const { log, clock } = this.#options
    try {
      await write()
      log.warn(about, 'recorded after all')
    } catch (thrown) {
      if (isUnavailable(thrown) && clock.now() < deadline) return false
      log.error({ ...about, cause: String(thrown) }, 'it cannot be recorded')
    }
    return true
  }

  #pause(): Promise<void> {
    if (this.#isClosing) return Promise.resolve()
    return new Promise((resume) => {
      const callOff = this.#options.timers.after(this.#options.pauseMs, resume)
      this.#wake = () => {
        callOff()
        resume()
      }
    })
  }
}
