// With more of them, a text is rather another name than a mistyped one. Short names are alike, so that they take fewer.
const slipsMax = 2
const charactersPerSlip = 4

/**
 * How many slips of the pen lead from a known name to a text: a character that is missing, added, another, or swapped
 * with the next. Infinity if they are too many for slips.
 */
export function slipsBetween(given: string, known: string): number {
  return slipsFrom(given, 0, known, 0, Math.min(slipsMax, Math.floor(known.length / charactersPerSlip)))
}

/** The same for the ends of both that begin at `at` and `from`, with `most` slips. */
function slipsFrom(given: string, at: number, known: string, from: number, most: number): number {
  let g = at
  let k = from
  while (g < given.length && given[g] === known[k]) {
    g++
    k++
  }
  const left = given.length - g
  const due = known.length - k
  if (Math.abs(left - due) > most) return Infinity
  if (left === 0 || due === 0) return left + due
  if (most === 0) return Infinity
  const isSwapped = given[g] === known[k + 1] && given[g + 1] === known[k]
  return (
    1 +
    Math.min(
      slipsFrom(given, g + 1, known, k + 1, most - 1),
      slipsFrom(given, g + 1, known, k, most - 1),
      slipsFrom(given, g, known, k + 1, most - 1),
      isSwapped ? slipsFrom(given, g + 2, known, k + 2, most - 1) : Infinity,
    )
  )
}

/** The one with the fewest slips, the first among equals; undefined if all have too many. */
export function nearest<T>(known: Iterable<T>, slipsTo: (one: T) => number): T | undefined {
  let found: T | undefined
  let fewest = Infinity
  for (const one of known) {
    const slips = slipsTo(one)
    if (slips >= fewest) continue
    found = one
    fewest = slips
  }
  return found
}
