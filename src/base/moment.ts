// To the nanosecond: what is finer than a millisecond says nothing here, and is how programs write a time.
const isoMoment = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/

/** A date, which begins at midnight UTC, or a time that says its zone, as unix milliseconds. */
export function parseMoment(text: string): number | undefined {
  if (!isoMoment.test(text)) return undefined
  const at = Date.parse(text)
  // Date.parse takes the 30th of February for the 2nd of March.
  const day = text.slice(0, 10)
  const isReal = !Number.isNaN(at) && new Date(day).toISOString().startsWith(day)
  return isReal ? at : undefined
}

/** Times in JSON are whole unix seconds. */
export function unixSeconds(unixMs: number): number {
  return Math.floor(unixMs / 1000)
}
