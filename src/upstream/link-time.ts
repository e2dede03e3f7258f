import { GuardRefusal } from '../base/untrusted-url.ts'
import type { FetchLink } from './links.ts'

// Twice what a single link has: one slow server leaves as much for the links to others.
const totalMsDefault = 30_000

/**
 * Bounds the time that one request spends on its client's links. Each link has a limit of its own, but a request may
 * have many of them, and every channel that needs the files fetches them anew. Links fetched side by side share the
 * time; what passes between two fetches does not count.
 */
export class LinkTime {
  #leftMs: number
  #underway = 0
  #sinceMs = 0

  constructor(totalMs = totalMsDefault) {
    this.#leftMs = totalMs
  }

  /** `elapsedMs`: any clock that never jumps. */
  bound(fetchLink: FetchLink, elapsedMs: () => number): FetchLink {
    return async (link, channel, signal) => {
      if (link.transport !== 'guarded') return fetchLink(link, channel, signal)
      this.#spend(elapsedMs())
      this.#underway++
      const late = new AbortController()
      const giveUp = () => late.abort(new GuardRefusal('too-slow'))
      const timer = setTimeout(giveUp, this.#leftMs)
      // The fetch itself refuses then, and says at which field.
      if (this.#leftMs === 0) giveUp()
      try {
        return await fetchLink(link, channel, AbortSignal.any([signal, late.signal]))
      } finally {
        clearTimeout(timer)
        this.#spend(elapsedMs())
        this.#underway--
      }
    }
  }

  #spend(nowMs: number): void {
    if (this.#underway > 0) this.#leftMs = Math.max(0, this.#leftMs - (nowMs - this.#sinceMs))
    this.#sinceMs = nowMs
  }
}
