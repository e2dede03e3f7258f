type Close = () => Promise<void> | void

/** For whoever opens something, and leaves it to others when it closes. */
export type Opening<Step extends string> = Pick<Closing<Step>, 'opened'>

/**
 * What is open, and the one order in which it closes: at the end, and where a beginning fails half-way. The order is
 * written down, and not the reverse of the opening: a port opens before anything else, and is also the first to close.
 */
export class Closing<Step extends string> {
  readonly #order: readonly Step[]
  readonly #open = new Map<Step, Close>()
  #closed: Promise<void> | undefined

  constructor(order: readonly Step[]) {
    this.#order = order
  }

  /** To be said as soon as it is open, and before anything else can fail. */
  opened(step: Step, close: Close): void {
    if (this.#closed !== undefined) throw new Error(`${step} is opened after the end`)
    if (this.#open.has(step)) throw new Error(`${step} is opened twice`)
    this.#open.set(step, close)
  }

  /** Closes what is open, once: whoever else asks waits for the same. A failure is told at the end, and stops nothing. */
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
