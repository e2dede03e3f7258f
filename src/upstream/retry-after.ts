/** How many seconds a vendor asks us to wait, from seconds or a date in its header; undefined for anything else. */
export function readRetryAfter(header: string | null, now: number): number | undefined {
  if (header === null) return undefined
  const seconds = /^\d+(?:\.\d+)?$/.test(header) ? Number(header) : (Date.parse(header) - now) / 1000
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined
}
