const number = /^\d+(?:\.\d+)?$/

/**
 * How many seconds a vendor asks us to wait; undefined if it does not say. OpenAI and Azure send milliseconds, alone or
 * beside whole seconds, and official clients prefer them. All others send seconds or a date.
 */
export function readRetryAfter(header: (name: string) => string | null, now: number): number | undefined {
  const ms = header('retry-after-ms') ?? ''
  const seconds = number.test(ms) ? Number(ms) / 1000 : readSeconds(header('retry-after') ?? '', now)
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined
}

function readSeconds(written: string, now: number): number {
  return number.test(written) ? Number(written) : (Date.parse(written) - now) / 1000
}
