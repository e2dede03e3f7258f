type Close = () => Promise<void> | void

/** For a part that opens something but does not decide when it closes. */
export type Opening<Step extends string> = Pick<Closing<Step>, 'opened'>

/**
 * Keeps what is open and closes it in one fixed order, both at a normal stop and when a start fails half-way. The order
 * is given explicitly and is not the reverse of opening: the port opens before everything else and also closes first.
 */
export class Closing<Step extends string> {
  readonly #order: readonly Step[]
  readonly #open = new Map<Step, Close>()
  #closed: Promise<void> | undefined

  constructor(order: readonly Step[]) {
    this.#order = order
  }

  /** Call this as soon as the part is open, before anything else can fail. */
  opened(step: Step, close: Close): void {
    if (this.#closed !== undefined) throw new Error(`${step} is opened after the end`)
    if (this.#open.has(step)) throw new Error(`${step} is opened twice`)
    this.#open.set(step, close)
  }

  /** Closes everything, once; further calls wait for the same closing. Failures are thrown after the last step. */
  close(): Promise<void> {
    this.#closed ??= this.#closeInOrder()
    return this.#closed
  }

  async #closeInOrder(): Promise<void> {
    const failures: unknown[] = []
    for (const step of this.#order) {
      try {
        await this.#open.get(step)?.()
      } catch (thrown) {
        failures.push(thrown)
      }
    }
    if (failures.length === 1) throw failures[0]
    if (failures.length > 1) throw new AggregateError(failures, failures.map(String).join('; '))
  }
}
