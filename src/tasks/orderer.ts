import type { GatewayError } from '../base/errors.ts'
import type { Task } from '../store/tasks.ts'

/**
 * Whoever waits for what becomes of an order. A node that stops does not let it wait for the vendor: an order that is on
 * record is a task, whose end the client can ask for, and one that is not yet never will be.
 */
export class Orderer {
  readonly #told = Promise.withResolvers<Task>()
  #dismissed: GatewayError | undefined
  #mayBeRecorded = false
  /** As it is on record, while it is with a vendor. */
  #sent: Task | undefined
  #isTold = false
  readonly #refused = new AbortController()

  /** Aborts when the client is sent away without a task: nothing more is to be got ready for it. */
  get refused(): AbortSignal {
    return this.#refused.signal
  }

  /** The task as it is, where that is told before its creation is over. */
  get told(): Promise<Task> {
    return this.#told.promise
  }

  /** The client was told of a task: it can no longer be refused, only fail. */
  get hasTask(): boolean {
    return this.#isTold
  }

  /** To be said right before the record is made. Throws where the client was sent away. */
  recording(): void {
    if (this.#dismissed !== undefined) throw this.#dismissed
    this.#mayBeRecorded = true
  }

  sending(task: Task): void {
    this.#sent = task
    if (this.#dismissed !== undefined) this.#tell(task)
  }

  /** The vendor would not have it: until that is settled, nobody knows what there is to tell. */
  notTaken(): void {
    this.#sent = undefined
  }

  /** The node stops. */
  dismiss(reason: GatewayError): void {
    this.#dismissed = reason
    if (!this.#mayBeRecorded) {
      this.#told.reject(reason)
      this.#refused.abort(reason)
    } else if (this.#sent !== undefined) this.#tell(this.#sent)
  }

  #tell(task: Task): void {
    this.#isTold = true
    this.#told.resolve(task)
  }
}
