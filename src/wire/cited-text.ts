/**
 * A text that grows, and the part of it that a citation covers. Vendors say which text they cite in ways of their own,
 * so a citation covers everything since the citation before it.
 */
export class CitedText {
  #length = 0
  #from = 0
  #to = 0

  grow(text: string): void {
    this.#length += text.length
  }

  /** Several sources for the same text get the same range. */
  cite(): { readonly start_index: number; readonly end_index: number } {
    if (this.#to !== this.#length) [this.#from, this.#to] = [this.#to, this.#length]
    return { start_index: this.#from, end_index: this.#to }
  }
}
