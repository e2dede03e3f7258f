type Taken = { readonly bytes: number; readonly expiresAt: number }

/** The part of the room that the gateway's own bytes may take, so that they never crowd out customers' results. */
export class Share {
  readonly #bytesMax: number
  #taken = 0
  /** In the order in which they were taken, which is that of their expiry, since all are kept equally long. */
  readonly #kept = new Set<Taken>()

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** How many entries room is taken for. */
  get things(): number {
    return this.#kept.size
  }

  /** Undefined where there is not enough room. */
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

  /** For bytes that were not stored in the end. Drops their entry too, since a bucket may fail for a whole day. */
  giveBack(taken: Taken): void {
    if (this.#kept.delete(taken)) this.#taken -= taken.bytes
  }
}
