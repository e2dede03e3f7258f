import type { GatewayError } from '../base/errors.ts'
import type { Task } from '../store/tasks.ts'

/**
 * The client that waits while its order is placed. A node that stops does not let it wait for the vendor: an order on
 * record is a task whose end the client can ask for later, and an order not yet on record never will be.
 */
export class Orderer {
  readonly #told = Promise.withResolvers<Task>()
  #dismissed: GatewayError | undefined
  #mayBeRecorded = false
  /** The task as it is on record, while its order is with a vendor. */
  #sent: Task | undefined
  #isTold = false
  readonly #refused = new AbortController()

  /** Aborts when the client is refused without a task, so that nothing more is prepared for its order. */
  get refused(): AbortSignal {
    return this.#refused.signal
  }

  /** The task as it is on record, where the client is told of it before its creation is over. */
  get told(): Promise<Task> {
    return this.#told.promise
  }

  /** The client was told of its task, so the order can no longer be refused; the task can only fail. */
  get hasTask(): boolean {
    return this.#isTold
  }

  /** Must be called right before the task is recorded. Throws where the client was already refused. */
  recording(): void {
    if (this.#dismissed !== undefined) throw this.#dismissed
    this.#mayBeRecorded = true
  }

  sending(task: Task): void {
    this.#sent = task
    if (this.#dismissed !== undefined) this.#tell(task)
  }

  /** The vendor refused the order: until the task is rerouted or ended, there is no state to tell the client. */
  notTaken(): void {
    this.#sent = undefined
  }

  /** To be called when the node stops. */
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
