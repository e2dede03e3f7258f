import type { Clock } from '../base/clock.ts'

// More than one, because a vendor may choke on a single request, and few enough that customers hardly notice.
const inARow = 3
// As long as a refused key rests: finding out whether the channel still fails is worth one call a minute.
const asideMs = 60_000

/** The requests that failed in a row, at most `inARow` of them. */
type Failing = { readonly requests: Set<string>; readonly asideUntil: number }

/** Tracks which places keep failing. A place is named by one model and the channel that has it. */
export type Failures = {
  /** Says whether this sets the place aside. A request is one failure, however many calls were made for it. */
  failed(place: string, request: string): boolean
  answered(place: string): void
  isAside(place: string): boolean
  /** Whether any place keeps failing whose name begins so. */
  anyOf(beginning: string): boolean
  /**
   * The first request after a place's time aside is over finds out whether it still fails: for all others the place is
   * set aside once more, for as long as that request can take.
   */
  asking(place: string, longestMs: number): void
  /** The request ended without showing whether the place still fails. */
  leftOpen(place: string): void
}

export function makeFailures(clock: Clock): Failures {
  const failing = new Map<string, Failing>()

  function setAside(place: string, ms: number): void {
    if (failing.size === 0) return
    const { requests } = failing.get(place) ?? {}
    if (requests?.size === inARow) failing.set(place, { requests, asideUntil: clock.monotonic() + ms })
  }

  return {
    failed(place, request) {
      const { requests } = failing.get(place) ?? { requests: new Set() }
      const wasEnough = requests.size === inARow
      if (!wasEnough) requests.add(request)
      failing.set(place, { requests, asideUntil: 0 })
      setAside(place, asideMs)
      return !wasEnough && requests.size === inARow
    },
    answered: (place) => void (failing.size > 0 && failing.delete(place)),
    isAside: (place) => failing.size > 0 && (failing.get(place)?.asideUntil ?? 0) > clock.monotonic(),
    anyOf: (beginning) =>
      failing.entries().some(([place, { requests }]) => requests.size === inARow && place.startsWith(beginning)),
    asking: (place, longestMs) => setAside(place, Math.max(longestMs, asideMs)),
    leftOpen: (place) => setAside(place, asideMs),
  }
}
