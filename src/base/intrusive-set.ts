/** A member stores its own index in the set; -1 while it is not in one. */
export type Member = { place: number }

/**
 * A set for things that come and go with every request. Not a `Set` or a `Map`: those rebuild their table after every
 * few removals, and the old table keeps its entries alive until the next full collection. For the deadlines of calls
 * that was two kilobytes per request and half of the garbage collector's work.
 */
export class IntrusiveSet<M extends Member> {
  readonly #members: M[] = []

  get size(): number {
    return this.#members.length
  }

  add(member: M): void {
    if (member.place === -1) member.place = this.#members.push(member) - 1
  }

  /** False if it was not a member. The last member moves into the freed place. */
  remove(member: M): boolean {
    const { place } = member
    if (place === -1) return false
    const last = this.#members.pop()
    if (last !== undefined && last !== member) {
      this.#members[place] = last
      last.place = place
    }
    member.place = -1
    return true
  }

  /** Iterates from the last to the first, so that the current member may leave, or another be added, on the way. */
  *[Symbol.iterator](): Generator<M> {
    for (let i = this.#members.length - 1; i >= 0; i--) {
      const member = this.#members[i]
      if (member !== undefined) yield member
    }
  }
}
