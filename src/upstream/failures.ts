import type { Clock } from '../base/clock.ts'

// More than one request that a vendor chokes on, and few enough that customers hardly notice.
const inARow = 3
// As long as a refused key rests: whether it still fails is worth one call a minute.
const asideMs = 60_000

/** The requests that failed in a row, no more of them than count. */
type Failing = { readonly requests: Set<string>; readonly asideUntil: number }

/** Which of the places where models are had fail time and again. A place is a name that stands for one. */
export type Failures = {
  /** Says whether it is set aside by this. A request is one failure, however many calls were made for it. */
  failed(place: string, request: string): boolean
  answered(place: string): void
  isAside(place: string): boolean
  /** Whether any is set aside whose name begins so. */
  anyOf(beginning: string): boolean
  /**
   * The first that asks when the time of a place is over finds out how it is: for all others it is set aside once more, for as
   * long as that can take.
   */
  asking(place: string, longestMs: number): void
  /** Whoever asked has not found out. */
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
