// What one account may put into rows in a day, at most twice this at a time: the rows of the day before may still be
// there. Beyond a hundred thousand usual answers, so that only a flood, perhaps of a model that costs nothing, reaches
// it.
const accountBytesMaxDefault = 1024 * 1024 * 1024

/**
 * The room that each account has for its answers in rows, anew every day. Counted in memory, on each node by itself and
 * anew after a start: this bounds a flood, and no money.
 */
export class RowRoom {
  readonly #dayMs: number
  readonly #accountBytesMax: number
  readonly #takenBy = new Map<string, number>()
  #day = 0

  /** `dayMs`: how long a row stays. */
  constructor(dayMs: number, accountBytesMax = accountBytesMaxDefault) {
    this.#dayMs = dayMs
    this.#accountBytesMax = accountBytesMax
  }

  /** False where the account has too little room left today. */
  take(accountId: string, bytes: number, now: number): boolean {
    const today = Math.floor(now / this.#dayMs)
    if (today !== this.#day) this.#takenBy.clear()
    this.#day = today
    const taken = (this.#takenBy.get(accountId) ?? 0) + bytes
    if (taken > this.#accountBytesMax) return false
    this.#takenBy.set(accountId, taken)
    return true
  }
}
