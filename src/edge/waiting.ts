import { Crowd, type Member } from '../base/crowd.ts'
import type { GatewayError } from '../base/errors.ts'

/** Everybody who has no answer yet: a stop leaves nobody without one, whatever it is that they wait for. */
export class Waiting {
  readonly #crowd = new Crowd<Waiter>()
  readonly #sentAway = new Crowd<Waiter>()
  #stopped: GatewayError | undefined

  enter(): Waiter {
    return new Waiter(this.#crowd, this.#sentAway, this.#stopped)
  }

  /** Sends away everybody for whom nothing was begun, now or later. Whoever is at work for the others answers them. */
  stop(reason: GatewayError): void {
    this.#stopped = reason
    for (const waiter of this.#crowd) if (!waiter.isInHands) waiter.dismiss(reason)
  }

  /** Sends away the rest. */
  end(reason: GatewayError): void {
    for (const waiter of this.#crowd) waiter.dismiss(reason)
  }

  get isAnybody(): boolean {
    return this.#crowd.size > 0
  }

  /** What was begun for somebody who was sent away has not come to its end. */
  get isAnythingBehind(): boolean {
    return this.#sentAway.size > 0
  }
}

export class Waiter implements Member {
  #crowd: Crowd<Waiter>
  readonly #sentAway: Crowd<Waiter>
  readonly #stopped: GatewayError | undefined
  #refuse: ((reason: GatewayError) => void) | undefined
  #isInHands = false
  #isDismissed = false
  place = -1

  constructor(crowd: Crowd<Waiter>, sentAway: Crowd<Waiter>, stopped: GatewayError | undefined) {
    this.#crowd = crowd
    this.#sentAway = sentAway
    this.#stopped = stopped
  }

  get isInHands(): boolean {
    return this.#isInHands
  }

  /** It was sent away, and what it waited for goes on behind it. */
  get isDismissed(): boolean {
    return this.#isDismissed
  }

  /** From now on somebody is at work for it who hears of a stop and has the better answer. */
  inHands(): void {
    this.#isInHands = true
  }

  /** What it waits for, or the reason why it does not any longer. */
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
      if (this.#stopped !== undefined && !this.#isInHands) this.dismiss(this.#stopped)
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
