import { IntrusiveSet, type Member } from '../base/intrusive-set.ts'
import type { GatewayError } from '../base/errors.ts'

/** The requests that have no answer yet: a stop answers every one of them, whatever it is waiting for. */
export class Waiting {
  readonly #crowd = new IntrusiveSet<Waiter>()
  readonly #sentAway = new IntrusiveSet<Waiter>()
  #stopped: GatewayError | undefined

  enter(): Waiter {
    return new Waiter(this.#crowd, this.#sentAway, this.#stopped)
  }

  /** Refuses every request, now and later, for which no vendor was called; the code at work answers the others. */
  stop(reason: GatewayError): void {
    this.#stopped = reason
    for (const waiter of this.#crowd) if (!waiter.isVendorCalled) waiter.dismiss(reason)
  }

  /** Refuses all requests that are left. */
  end(reason: GatewayError): void {
    for (const waiter of this.#crowd) waiter.dismiss(reason)
  }

  get isAnybody(): boolean {
    return this.#crowd.size > 0
  }

  /** Whether work that was begun for a refused request still goes on. */
  get isAnythingBehind(): boolean {
    return this.#sentAway.size > 0
  }
}

export class Waiter implements Member {
  #crowd: IntrusiveSet<Waiter>
  readonly #sentAway: IntrusiveSet<Waiter>
  readonly #stopped: GatewayError | undefined
  #refuse: ((reason: GatewayError) => void) | undefined
  #isVendorCalled = false
  #isDismissed = false
  place = -1

  constructor(crowd: IntrusiveSet<Waiter>, sentAway: IntrusiveSet<Waiter>, stopped: GatewayError | undefined) {
    this.#crowd = crowd
    this.#sentAway = sentAway
    this.#stopped = stopped
  }

  get isVendorCalled(): boolean {
    return this.#isVendorCalled
  }

  /** The request was refused because of a stop, while the work that it waited for goes on. */
  get isDismissed(): boolean {
    return this.#isDismissed
  }

  /** From now on the code at work for the request is told of a stop itself, and has a better answer to it. */
  markVendorCalled(): void {
    this.#isVendorCalled = true
  }

  /** Waits for an answer, or rejects with the reason of a stop. */
  for<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#refuse = reject
      this.#crowd.add(this)
      answer.then(
        (told) => {
          this.#crowd.remove(this)
          return resolve(told)
        },
        (thrown: unknown) => {
          this.#crowd.remove(this)
          reject(thrown)
        },
      )
      if (this.#stopped !== undefined && !this.#isVendorCalled) this.dismiss(this.#stopped)
    })
  }

  dismiss(reason: GatewayError): void {
    this.#crowd.remove(this)
    this.#crowd = this.#sentAway
    this.#crowd.add(this)
    this.#isDismissed = true
    this.#refuse?.(reason)
  }
}
