/**
 * Something that is made when it is first asked for, and once. What could not be made is tried again by the next who asks: a
 * disk that was full for a moment is no reason to stay without.
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

  /** What there is, or will be; undefined where nobody has asked for it, or it could not be made. */
  async ifMade(): Promise<T | undefined> {
    return this.#made?.catch(() => undefined)
  }
}
