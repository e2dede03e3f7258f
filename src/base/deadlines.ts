import type { Clock } from './clock.ts'
import { Crowd } from './crowd.ts'

// How late a deadline may be noticed. Nothing it is used for is as short as a second.
const tickMs = 50

/**
 * Deadlines by the ten thousand, and one timer for all of them: a request has several, nearly none is ever reached, and a
 * timer of its own for each would cost more than what it guards.
 */
export class Deadlines {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #set = new Crowd<Deadline>()
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** `expire` is called once after each time that it is set and passes. */
  open(expire: () => void): Deadline {
    return new Deadline(this.#clock, this.#watch, expire)
  }

  readonly #watch = {
    begin: (deadline: Deadline) => {
      this.#set.add(deadline)
      if (this.#timer !== undefined) return
      this.#timer = setInterval(() => this.#tick(), tickMs)
      this.#timer.unref()
    },
    end: (deadline: Deadline) => {
      this.#set.remove(deadline)
    },
  }

  #tick(): void {
    const now = this.#clock.monotonic()
    for (const deadline of this.#set) deadline.check(now)
    if (this.#set.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

type Watch = { begin(deadline: Deadline): void; end(deadline: Deadline): void }

/** A moment by which something must have happened; it moves with every read, and moving it only writes a number. */
export class Deadline {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #watch: Watch
  readonly #expire: () => void
  #expiresAt = Number.POSITIVE_INFINITY
  /** Among those that are watched. */
  place = -1

  constructor(clock: Pick<Clock, 'monotonic'>, watch: Watch, expire: () => void) {
    this.#clock = clock
    this.#watch = watch
    this.#expire = expire
  }

  set(ms: number): void {
    this.setAt(this.#clock.monotonic() + ms)
  }

  /** By the monotonic clock. */
  setAt(expiresAt: number): void {
    this.#expiresAt = expiresAt
    if (this.place === -1) this.#watch.begin(this)
  }

  /** Time does not count for now: we wait for the client, not for the vendor. */
  pause(): void {
    this.#expiresAt = Number.POSITIVE_INFINITY
  }

  clear(): void {
    this.pause()
    if (this.place !== -1) this.#watch.end(this)
  }

  check(now: number): void {
    if (now < this.#expiresAt) return
    this.clear()
    this.#expire()
  }
}
