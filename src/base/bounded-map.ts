/** A map that drops its oldest entry when it is full, so that a flood of keys cannot exhaust memory. */
export class BoundedMap<K, V> {
  readonly #entries = new Map<K, V>()
  readonly #entriesMax: number

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)
  }

  set(key: K, value: V): void {
    this.#entries.delete(key)
    if (this.#entries.size >= this.#entriesMax) {
      const oldest = this.#entries.keys().next()
      if (!oldest.done) this.#entries.delete(oldest.value)
    }
    this.#entries.set(key, value)
  }

  clear(): void {
    this.#entries.clear()
  }
}
