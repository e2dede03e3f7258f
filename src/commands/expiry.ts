import { expiryMsMax } from '../admin/fields.ts'
import { parseMoment } from '../base/moment.ts'

const hourMs = 3_600_000
const unitMs = { h: hourMs, d: 24 * hourMs, w: 7 * 24 * hourMs } as const

const duration = /^(\d{1,6})([hdw])$/

/** Reads `30d`, `12h` or `2w` from now, a date (its midnight in UTC), a time with its zone, or `never`. */
export function readExpiry(text: string, now = Date.now()): number | null {
  if (text === 'never') return null
  const at = momentOf(text, now)
  if (at === undefined) {
    throw new Error(`"${text}" is not a time: write 12h, 30d, 8w, or a date such as 2027-01-31 or 2027-01-31T18:00:00Z`)
  }
  if (at <= now) throw new Error(`${text} is in the past`)
  if (at > now + expiryMsMax) throw new Error(`${text} is too far away; leave it out for a key that never expires`)
  return at
}

function momentOf(text: string, now: number): number | undefined {
  const [, count, unit] = duration.exec(text) ?? []
  if (count !== undefined && isUnit(unit)) return now + Number(count) * unitMs[unit]
  return parseMoment(text)
}

function isUnit(text: string | undefined): text is keyof typeof unitMs {
  return text !== undefined && Object.hasOwn(unitMs, text)
}
