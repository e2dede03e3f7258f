// A short token of English text, as an event of one token has it.
const tokenBytes = 4

/**
 * How much a stream has said so far: what a charge is reckoned from where the vendor's own count does not come. Only words
 * count. What is around them takes ten times their room, and in each kind of event another.
 */
export class SaidOutput {
  events = 0
  #bytes = 0
  #worded = 0
  #shortest = tokenBytes

  add(bytes: number): void {
    this.events++
    if (bytes === 0) return
    this.#worded++
    this.#bytes += bytes
    this.#shortest = Math.min(this.#shortest, bytes)
  }

  /** Beyond the one token that an event counts for in any case. */
  get bytes(): number {
    return this.#bytes - this.#worded * this.#shortest
  }
}
