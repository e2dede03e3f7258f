/**
 * Lets what arrives in one turn of the event loop set out together, at the end of the turn. From there on it goes in
 * step: every `await` hands over to the next of them, so that each stage runs for all of them in a row, and its code is
 * fetched into the processor's caches once for all. Under load this takes a fifth off the CPU time of a request; one
 * that arrives alone waits for no other. See docs/decisions/0016.
 */
export class Gathering {
  #joined: (() => void)[] = []
  readonly #goOn = (): void => {
    const joined = this.#joined
    this.#joined = []
    for (const go of joined) go()
  }

  /** `go` is called at the end of this turn, in the order of joining. It must not throw. */
  join(go: () => void): void {
    if (this.#joined.push(go) === 1) setImmediate(this.#goOn)
  }
}
