import type { Deadline, Deadlines } from '../base/deadlines.ts'

/**
 * Keeps a stream alive while its vendor is silent, because load balancers and proxies give up on a connection after a
 * minute of silence. It hears of deliveries only now and then, not with every event, so that events cost no more.
 */
export class KeepAlive {
  readonly #quiet: Deadline
  readonly #quietMs: number

  /** `say` is called each time that nothing was delivered for `quietMs`. */
  constructor(deadlines: Deadlines, quietMs: number, say: () => void) {
    this.#quietMs = quietMs
    this.#quiet = deadlines.open(() => {
      this.#quiet.set(quietMs)
      say()
    })
  }

  delivered(): void {
    this.#quiet.set(this.#quietMs)
  }

  end(): void {
    this.#quiet.clear()
  }
}
