import { creditMax, limitMax, metadata } from '../admin/fields.ts'
import { formatDollars, parseDollars, showDollars, zeroNano } from '../base/money.ts'
import type { Cap } from '../store/accounts.ts'
import { keyLimits, type CapPeriod, type KeyLimit, type KeyLimits, type Metadata } from '../store/schema.ts'
import { counted } from './output.ts'

/** The options of a command that set limits. */
export type LimitOptions = { readonly [L in KeyLimit]?: string }

/** How a limit is written in a table. */
const limitTexts = {
  requestsPerMinute: (count) => `${counted(count, 'request')}/min`,
  tokensPerMinute: (count) => `${counted(count, 'token')}/min`,
  concurrent: (count) => `${count} at once`,
} as const satisfies Record<KeyLimit, (count: number) => string>

const periods: readonly CapPeriod[] = ['total', 'day', 'month']

/** Reads an option if it was given. */
export function ifGiven<T>(text: string | undefined, read: (text: string) => T): T | undefined {
  return text === undefined ? undefined : read(text)
}

/** `--enabled true`. */
export function isTrue(text: string): boolean {
  return text === 'true'
}

/** Refuses a change without any field, which would otherwise be reported as made. */
export function mustChange(given: Readonly<Record<string, string | undefined>>): void {
  if (Object.values(given).every((value) => value === undefined)) {
    throw new Error('no change was given; --help lists the options')
  }
}

/** `--cap 25/month`, or `none`. */
export function readCap(text: string): Cap | null {
  if (text === 'none') return null
  const [dollars = '', period = 'total', ...rest] = text.split('/')
  const amount = parseDollars(dollars)
  const found = periods.find((known) => known === period)
  const isAmount = amount !== undefined && amount >= zeroNano && amount <= creditMax
  if (!isAmount || found === undefined || rest.length > 0) {
    const most = formatDollars(creditMax)
    throw new Error(`--cap takes dollars, up to ${most}, and a period, such as 25/month, 5/day or 100/total; or none`)
  }
  return { amount, period: found }
}

/** The form that `--cap` takes, with a dollar sign. */
export function showCap(cap: Cap | null): string {
  return cap === null ? '-' : `${showDollars(cap.amount)}/${cap.period}`
}

/** `--metadata team=blue,env=ci`, or `none`. */
export function readMetadata(text: string): Metadata {
  const pairs = text === 'none' ? [] : text.split(',').map((pair) => /^([^=]+)=(.*)$/s.exec(pair))
  const given = Object.fromEntries(pairs.map((pair) => [pair?.[1]?.trim() ?? '', pair?.[2]?.trim() ?? '']))
  const { success, data } = metadata.safeParse(given)
  if (!success) throw new Error('--metadata takes up to 16 names with their texts, such as team=blue,env=ci; or none')
  return data
}

export function showLimits(limits: KeyLimits | null): string {
  const shown = keyLimits.flatMap((limit) => {
    const count = limits?.[limit]
    return count === undefined ? [] : [limitTexts[limit](count)]
  })
  return shown.length === 0 ? '-' : shown.join(', ')
}

/** Undefined where no option was given, so that a change leaves the limits alone; `none` takes one away. */
export function readLimits(options: LimitOptions, before: KeyLimits | null = null): KeyLimits | null | undefined {
  const given = keyLimits.flatMap((limit) => {
    const text = options[limit]
    return text === undefined ? [] : [[limit, text === 'none' ? undefined : readLimit(text)] as const]
  })
  if (given.length === 0) return undefined
  const set = Object.entries({ ...before, ...Object.fromEntries(given) }).filter(([, limit]) => limit !== undefined)
  return set.length === 0 ? null : Object.fromEntries(set)
}

function readLimit(text: string): number {
  const limit = Number(text)
  if (/^[1-9]\d{0,9}$/.test(text) && limit <= limitMax) return limit
  throw new Error(`"${text}" is not a limit: write a whole number from 1 to ${limitMax}, or none`)
}
