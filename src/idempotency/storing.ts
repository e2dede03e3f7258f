// A bucket that hangs is waited for, for minutes, and all that while each answer is in memory twice: plain and sealed.
const bytesMaxDefault = 256 * 1024 * 1024

/** The answers that are on their way to the storage for long ones, and so in memory. */
export class Storing {
  readonly #bytesMax: number
  readonly #underway = new Set<Promise<void>>()
  #bytes = 0

  constructor(bytesMax = bytesMaxDefault) {
    this.#bytesMax = bytesMax
  }

  get count(): number {
    return this.#underway.size
  }

  /** False, and nothing is begun, where too many bytes are under way already. `store` never rejects. */
  begin(bytes: number, store: () => Promise<void>): boolean {
    if (this.#bytes + bytes > this.#bytesMax) return false
    this.#bytes += bytes
    const stored = store().finally(() => {
      this.#bytes -= bytes
      this.#underway.delete(stored)
    })
    this.#underway.add(stored)
    return true
  }

  /** Resolves once all that is under way now has arrived, or was given up. */
  async arrived(): Promise<void> {
    await Promise.all(this.#underway)
  }
}
