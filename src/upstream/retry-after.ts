/** For how long a vendor asks to be left alone: seconds, or a date by our own clock; a vendor's nonsense is no answer. */
export function readRetryAfter(header: string | null, now: number): number | undefined {
  if (header === null) return undefined
  const seconds = /^\d+(?:\.\d+)?$/.test(header) ? Number(header) : (Date.parse(header) - now) / 1000
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined
}
