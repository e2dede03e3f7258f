import { systemTimers, type Clock, type Timers } from './clock.ts'
import { IntrusiveSet } from './intrusive-set.ts'

// How late a deadline may be noticed. That is harmless, because no deadline is shorter than a second.
export const tickMs = 50

/**
 * Tens of thousands of deadlines share one timer: a request has several, nearly none is ever reached, and a timer for
 * each would cost more than what it guards.
 */
export class Deadlines {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #timers: Timers
  readonly #set = new IntrusiveSet<Deadline>()
  #isTicking = false

  constructor(clock: Pick<Clock, 'monotonic'>, timers = systemTimers) {
    this.#clock = clock
    this.#timers = timers
  }

  /** `expire` is called once each time the deadline is set and passes. It cannot be set beyond `msMax` from now. */
  open(expire: () => void, msMax = Number.POSITIVE_INFINITY, now = this.#clock.monotonic()): Deadline {
    return new Deadline(this.#clock, this.#watch, expire, now + msMax)
  }

  readonly #watch = {
    begin: (deadline: Deadline) => {
      this.#set.add(deadline)
      if (!this.#isTicking) this.#tickLater()
    },
    end: (deadline: Deadline) => {
      this.#set.remove(deadline)
    },
  }

  #tickLater(): void {
    this.#isTicking = true
    this.#timers.after(tickMs, () => this.#tick())
  }

  #tick(): void {
    const now = this.#clock.monotonic()
    try {
      for (const deadline of this.#set) deadline.check(now)
    } finally {
      // If one deadline's `expire` throws, the others are still watched.
      if (this.#set.size > 0) this.#tickLater()
      else this.#isTicking = false
    }
  }
}

type Watch = { begin(deadline: Deadline): void; end(deadline: Deadline): void }

/** Something that puts a deadline off with every move. */
export type Movable = {
  /** Whether it has moved since this was asked last. */
  takeMoved(): boolean
}

/** A moment by which something must have happened. */
export class Deadline {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #watch: Watch
  readonly #expire: () => void
  readonly #latest: number
  #expiresAt = Number.POSITIVE_INFINITY
  #followed: { readonly what: Movable; readonly ms: number } | undefined
  /** Its index among the watched deadlines. */
  place = -1

  constructor(clock: Pick<Clock, 'monotonic'>, watch: Watch, expire: () => void, latest: number) {
    this.#clock = clock
    this.#watch = watch
    this.#expire = expire
    this.#latest = latest
  }

  /** `now`: a reading of the same clock that was made in this step, where there is one. */
  set(ms: number, now = this.#clock.monotonic()): void {
    this.#followed = undefined
    this.#setFrom(now, ms)
    if (this.place === -1) this.#watch.begin(this)
  }

  /**
   * Like `set`, and set again with every tick by which something has moved, so that its passing is noticed up to a tick
   * later: what moves thousands of times a second does not touch its deadline.
   */
  follow(what: Movable, ms: number): void {
    this.set(ms)
    what.takeMoved() // whatever moved before does not count
    this.#followed = { what, ms }
  }

  /** Time does not count until the deadline is set again: for when we wait for the client, not for the vendor. */
  pause(): void {
    this.#followed = undefined
    this.#expiresAt = Number.POSITIVE_INFINITY
  }

  clear(): void {
    this.pause()
    if (this.place !== -1) this.#watch.end(this)
  }

  check(now: number): void {
    if (this.#followed?.what.takeMoved() === true) this.#setFrom(now, this.#followed.ms)
    if (now < this.#expiresAt) return
    this.clear()
    this.#expire()
  }

  #setFrom(now: number, ms: number): void {
    this.#expiresAt = Math.min(now + ms, this.#latest)
  }
}
