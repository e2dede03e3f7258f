type Taken = { readonly bytes: number; readonly expiresAt: number }

/** A part of the room that what is kept for our own sake may take, so that it never crowds out what has to be kept. */
export class Share {
  readonly #bytesMax: number
  #taken = 0
  /** In the order in which they were taken: all are kept equally long. */
  readonly #kept = new Set<Taken>()

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** For how many things room is taken. */
  get things(): number {
    return this.#kept.size
  }

  /** Undefined where there is no room for it. */
  take(bytes: number, expiresAt: number, now: number): Taken | undefined {
    for (const oldest of this.#kept) {
      if (oldest.expiresAt > now) break
      this.giveBack(oldest)
    }
    if (this.#taken + bytes > this.#bytesMax) return undefined
    const taken = { bytes, expiresAt }
    this.#taken += bytes
    this.#kept.add(taken)
    return taken
  }

  /** What was taken for something that came to nothing. Nothing is left of it: a bucket may fail for a day. */
  giveBack(taken: Taken): void {
    if (this.#kept.delete(taken)) this.#taken -= taken.bytes
  }
}
