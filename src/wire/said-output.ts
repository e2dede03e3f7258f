/**
 * How much a stream has said so far, by the sizes of its events: what a charge is reckoned from where the vendor's own count
 * does not come. The smallest event is taken for the frame that all of them have.
 */
export class SaidOutput {
  events = 0
  #bytes = 0
  #frameBytes = Number.MAX_SAFE_INTEGER

  /** An event of this size may be no more than a frame. */
  sawFrame(bytes: number): void {
    this.#frameBytes = Math.min(this.#frameBytes, bytes)
  }

  add(bytes: number): void {
    this.events++
    this.#bytes += bytes
  }

  /** Without the frames. */
  get bytes(): number {
    return this.#bytes - this.events * Math.min(this.#frameBytes, this.#bytes / Math.max(1, this.events))
  }
}
