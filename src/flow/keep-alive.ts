import type { Deadline, Deadlines } from '../base/deadlines.ts'

/**
 * Says that a stream lives while its vendor thinks: balancers and proxies give up on a connection that was silent for a
 * minute. It is told now and then that something was delivered, and not with every event: so events cost no more for it.
 */
export class KeepAlive {
  readonly #quiet: Deadline
  readonly #quietMs: number

  /** `say` is called after each time that nothing was delivered for so long. */
  constructor(deadlines: Deadlines, quietMs: number, say: () => void) {
    this.#quietMs = quietMs
    this.#quiet = deadlines.open(() => {
      this.#quiet.set(quietMs)
      say()
    })
  }

  delivered(): void {
    this.#quiet.renew(this.#quietMs)
  }

  end(): void {
    this.#quiet.clear()
  }
}
