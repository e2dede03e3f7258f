/** A part of the room that what is kept for our own sake may take, so that it never crowds out what has to be kept. */
export class Share {
  readonly #bytesMax: number
  #taken = 0
  /** In the order in which they were taken: all are kept equally long. */
  readonly #kept: { readonly bytes: number; readonly expiresAt: number }[] = []

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** False where there is no room for it. */
  take(bytes: number, expiresAt: number, now: number): boolean {
    for (let [oldest] = this.#kept; oldest !== undefined && oldest.expiresAt <= now; [oldest] = this.#kept) {
      this.#kept.shift()
      this.#taken -= oldest.bytes
    }
    if (this.#taken + bytes > this.#bytesMax) return false
    this.#taken += bytes
    this.#kept.push({ bytes, expiresAt })
    return true
  }
}
