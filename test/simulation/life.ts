/** Thrown through the code of a process at the moment it dies, so that nothing after that moment runs. */
export class Killed extends Error {
  constructor() {
    super('this process is dead')
    this.name = 'Killed'
  }
}

/** What a death loses: with `kill` nothing that was written, with `power` everything that was not synced. */
export type Loss = 'kill' | 'power'

/** One process of a node, from its start to its end. After its end it has no effect on the outside. */
export class Life {
  readonly name: string
  isAlive = true
  /** Another process has taken over this node: this one is a zombie, whether it knows it or not. */
  isReplaced = false
  /** It cannot reach the bank while its disk is handed to its successor. */
  isCutOff = false
  /** The bank has told it that another process has taken over. */
  isRefused = false
  /** Calls the machine, which knows what is lost. */
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
