import type { Nano } from '../base/money.ts'
import type { Ending, Hold, Progress, Sale, SentAttempt } from './billing.ts'

/** A hold that passes every call on to another one, so that a subclass overrides only what differs. */
export class WrappedHold implements Hold {
  readonly #inner: Hold

  constructor(inner: Hold) {
    this.#inner = inner
  }

  sending(attempt: SentAttempt): Promise<void> | undefined {
    return this.#inner.sending(attempt)
  }

  mark(workOut: () => Progress | undefined): void {
    this.#inner.mark(workOut)
  }

  settle(sale: Sale): Promise<Nano> {
    return this.#inner.settle(sale)
  }

  release(ending: Ending): Promise<void> {
    return this.#inner.release(ending)
  }
}
