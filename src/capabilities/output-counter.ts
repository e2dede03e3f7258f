// The length of a short English token, and so of an event that carries one token.
const tokenBytes = 4

/**
 * Counts how much output a stream has had so far, from which a charge is estimated if the vendor's own count does not
 * come. Only the text itself counts: the JSON around it takes ten times as many bytes, and a different number in each
 * kind of event.
 */
export class OutputCounter {
  /** Events with output in them. */
  outputEvents = 0
  #bytes = 0
  #worded = 0
  #shortest = tokenBytes

  addOutput(bytes: number): void {
    this.outputEvents++
    if (bytes === 0) return
    this.#worded++
    this.#bytes += bytes
    this.#shortest = Math.min(this.#shortest, bytes)
  }

  /** The bytes beyond the one token that each event counts for in any case. */
  get outputBytes(): number {
    return this.#bytes - this.#worded * this.#shortest
  }
}
