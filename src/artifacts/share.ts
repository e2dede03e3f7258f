type Taken = { readonly bytes: number; readonly expiresAt: number; readonly accountId: string }

/** The part of the room that the gateway's own bytes may take, so that they never crowd out customers' results. */
export class Share {
  readonly #bytesMax: number
  #taken = 0
  readonly #kept = new Set<Taken>()
  readonly #takenBy = new Map<string, number>()

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** How many entries room is taken for. */
  get things(): number {
    return this.#kept.size
  }

  /**
   * Undefined where there is not enough room. An account that has more than would be left for all others gets no more,
   * so that none takes the room from everybody else.
   */
  take(bytes: number, accountId: string, expiresAt: number, now: number): Taken | undefined {
    // Goes through all, since a clock that was set back makes later ones expire earlier. Each is of a megabyte or more,
    // so that there are not many.
    for (const kept of this.#kept) if (kept.expiresAt <= now) this.giveBack(kept)
    const left = this.#bytesMax - this.#taken - bytes
    const had = this.#takenBy.get(accountId) ?? 0
    if (had > left) return undefined // also where less than nothing is left
    const taken = { bytes, expiresAt, accountId }
    this.#count(accountId, bytes)
    this.#kept.add(taken)
    return taken
  }

  /** For bytes that were not stored in the end. Drops their entry too, since a bucket may fail for a whole day. */
  giveBack(taken: Taken): void {
    if (this.#kept.delete(taken)) this.#count(taken.accountId, -taken.bytes)
  }

  #count(accountId: string, bytes: number): void {
    this.#taken += bytes
    const by = (this.#takenBy.get(accountId) ?? 0) + bytes
    if (by > 0) this.#takenBy.set(accountId, by)
    else this.#takenBy.delete(accountId)
  }
}
