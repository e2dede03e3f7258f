// Fractions of up to nine digits are accepted because programs write them, although only milliseconds are kept.
const isoMoment = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/

/** Reads a date (as its midnight UTC) or a time with a zone as unix milliseconds. */
export function parseMoment(text: string): number | undefined {
  if (!isoMoment.test(text)) return undefined
  const at = Date.parse(text)
  // Date.parse reads the 30th of February as the 2nd of March.
  const day = text.slice(0, 10)
  const isReal = !Number.isNaN(at) && new Date(day).toISOString().startsWith(day)
  return isReal ? at : undefined
}

/** Times in JSON are whole unix seconds. */
export function unixSeconds(unixMs: number): number {
  return Math.floor(unixMs / 1000)
}

/** The same of a time that there may not be, which is null in JSON. */
export function unixSecondsOrNull(unixMs: number | null | undefined): number | null {
  return unixMs === null || unixMs === undefined ? null : unixSeconds(unixMs)
}
