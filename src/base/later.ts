/**
 * A value that is made once, when it is first asked for. If making it fails, the next call of `get` tries again,
 * because the cause may have been temporary, such as a full disk.
 */
export class Later<T> {
  readonly #make: () => Promise<T>
  #made: Promise<T> | undefined

  constructor(make: () => Promise<T>) {
    this.#make = make
  }

  get(): Promise<T> {
    if (this.#made !== undefined) return this.#made
    const made = this.#make()
    this.#made = made
    made.catch(() => {
      if (this.#made === made) this.#made = undefined
    })
    return made
  }

  /** Waits for the value if `get` was called before; undefined if it was not, or if making the value failed. */
  async ifMade(): Promise<T | undefined> {
    return this.#made?.catch(() => undefined)
  }
}
