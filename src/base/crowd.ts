/** Whoever can be in a crowd knows its place there; -1 outside of it. */
export type Member = { place: number }

/**
 * Things that come and go with every request. Not a `Set` or a `Map`: those make themselves anew after every few that left, and
 * what they were before keeps what was in it alive until the next full collection. For the deadlines of calls that was two
 * kilobytes a request, and half of the collector's work.
 */
export class Crowd<M extends Member> {
  readonly #members: M[] = []

  get size(): number {
    return this.#members.length
  }

  add(member: M): void {
    if (member.place === -1) member.place = this.#members.push(member) - 1
  }

  /** False where it was not there. The last one takes its place. */
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

  /** Each that is there, the last first: so that one may leave, or another come, while it is its turn. */
  *[Symbol.iterator](): Generator<M> {
    for (let i = this.#members.length - 1; i >= 0; i--) {
      const member = this.#members[i]
      if (member !== undefined) yield member
    }
  }
}
