/**
 * Counts what is under way by name. A name whose count is back at zero is forgotten, so that no flood of names stays.
 */
export class NamedCounts {
  readonly #counts = new Map<string, number>()

  of(name: string): number {
    return this.#counts.get(name) ?? 0
  }

  add(name: string, more: 1 | -1): void {
    const count = this.of(name) + more
    if (count === 0) this.#counts.delete(name)
    else this.#counts.set(name, count)
  }
}
