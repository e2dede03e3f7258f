type Taken = { bytes: number; readonly expiresAt: number }

/** A part of the room that what is kept for our own sake may take, so that it never crowds out what has to be kept. */
export class Share {
  readonly #bytesMax: number
  #taken = 0
  /** In the order in which they were taken: all are kept equally long. */
  readonly #kept: Taken[] = []

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Undefined where there is no room for it. */
  take(bytes: number, expiresAt: number, now: number): Taken | undefined {
    for (let [oldest] = this.#kept; oldest !== undefined && oldest.expiresAt <= now; [oldest] = this.#kept) {
      this.#kept.shift()
      this.#taken -= oldest.bytes
    }
    if (this.#taken + bytes > this.#bytesMax) return undefined
    const taken = { bytes, expiresAt }
    this.#taken += bytes
    this.#kept.push(taken)
    return taken
  }

  /** What was taken for something that came to nothing. */
  giveBack(taken: Taken): void {
    this.#taken -= taken.bytes
    taken.bytes = 0
  }
}
