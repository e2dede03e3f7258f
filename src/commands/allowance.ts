import { formatDollars, parseDollars, zeroNano } from '../base/money.ts'
import type { Cap } from '../store/accounts.ts'
import type { CapPeriod, KeyLimits } from '../store/schema.ts'

/** What the options of a command say of limits and caps. */
export type LimitOptions = {
  readonly requestsPerMinute?: string
  readonly tokensPerMinute?: string
  readonly concurrent?: string
}

const periods: readonly CapPeriod[] = ['total', 'day', 'month']

/** A change of nothing would say that it was made, and stand in the audit. */
export function mustChange(given: Readonly<Record<string, string | undefined>>): void {
  if (Object.values(given).every((value) => value === undefined)) {
    throw new Error('nothing was given that should change; --help lists what can')
  }
}

/** `--cap 25/month`, or `none`. */
export function readCap(text: string): Cap | null {
  if (text === 'none') return null
  const [dollars = '', period = 'total'] = text.split('/')
  const amount = parseDollars(dollars)
  const found = periods.find((known) => known === period)
  if (amount === undefined || amount <= zeroNano || found === undefined) {
    throw new Error('--cap takes dollars and a period, such as 25/month, 5/day or 100/total; or none')
  }
  return { amount, period: found }
}

/** As `--cap` takes it. */
export function showCap(cap: Cap | null): string {
  return cap === null ? '-' : `$${formatDollars(cap.amount)}/${cap.period}`
}

export function showLimits(limits: KeyLimits | null): string {
  const { requestsPerMinute, tokensPerMinute, concurrent } = limits ?? {}
  const shown = [
    ...(requestsPerMinute === undefined ? [] : [`${requestsPerMinute} requests/min`]),
    ...(tokensPerMinute === undefined ? [] : [`${tokensPerMinute} tokens/min`]),
    ...(concurrent === undefined ? [] : [`${concurrent} at once`]),
  ]
  return shown.length === 0 ? '-' : shown.join(', ')
}

/** Undefined where no option was given, so that a change leaves the limits alone; `none` takes one away. */
export function readLimits(options: LimitOptions, before: KeyLimits | null = null): KeyLimits | undefined {
  const { requestsPerMinute, tokensPerMinute, concurrent } = options
  if (requestsPerMinute === undefined && tokensPerMinute === undefined && concurrent === undefined) return undefined
  return {
    ...limit('requestsPerMinute', requestsPerMinute, before),
    ...limit('tokensPerMinute', tokensPerMinute, before),
    ...limit('concurrent', concurrent, before),
  }
}

function limit(name: keyof KeyLimits, text: string | undefined, before: KeyLimits | null): KeyLimits {
  if (text === 'none') return {}
  if (text === undefined) {
    const kept = before?.[name]
    return kept === undefined ? {} : { [name]: kept }
  }
  if (!/^[1-9]\d{0,11}$/.test(text)) throw new Error('a limit is a whole number from 1 up, or none')
  return { [name]: Number(text) }
}
