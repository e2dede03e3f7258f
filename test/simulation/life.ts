/** Thrown through the code of a process at the moment it dies, so that nothing after that moment runs. */
export class Killed extends Error {
  constructor() {
    super('this process is dead')
    this.name = 'Killed'
  }
}

/** What an end takes with it: nothing that was written, or with the power all that was not synced. */
export type Loss = 'kill' | 'power'

/** One process of a node, from its start to its end. What it does to the outside after its end does not happen. */
export class Life {
  readonly name: string
  isAlive = true
  /** Another process has taken this node over: this one is a zombie, whether it knows or not. */
  isReplaced = false
  /** It does not reach the bank while its disk is on the way to its successor. */
  isCutOff = false
  /** The bank has told it that another has its place. */
  isRefused = false
  /** The machine's, which knows what is lost. */
  readonly kill: (loss: Loss) => void
  readonly #onDeath: (() => void)[] = []

  constructor(name: string, kill: (life: Life, loss: Loss) => void) {
    this.name = name
    this.kill = (loss) => kill(this, loss)
  }

  onDeath(run: () => void): void {
    this.#onDeath.push(run)
  }

  end(): void {
    if (!this.isAlive) return
    this.isAlive = false
    for (const run of this.#onDeath) run()
  }
}
