import { z } from 'zod'
import { isGiven } from '../base/json.ts'
import { parseMoment } from '../base/moment.ts'
import { formatDollars, nano, parseDollars, type Nano } from '../base/money.ts'
import { modelGlob } from '../catalogue/schema.ts'
import type { Cap } from '../store/accounts.ts'
import { limitNames } from '../store/keys.ts'
import { keyLimits, type KeyLimit, type KeyLimits } from '../store/schema.ts'

const nameCharactersMax = 100
// A million dollars, so that a typing error does not become a balance; 64 bits hold some 9 billion dollars of nanos.
export const creditMax = nano(1_000_000n * 1_000_000_000n)

/** The name of an account or a key. Tables and logs show it, so it has no characters that a terminal would obey. */
export function readName(text: string): string | undefined {
  const name = text.trim()
  return name === '' || name.length > nameCharactersMax || /\p{Cc}/u.test(name) ? undefined : name
}

export const nameRule = `1 to ${nameCharactersMax} characters, and no control characters`

export const accountName = z.string().transform(checkName)

/** The name of a key may be empty. */
export const keyName = z.string().transform((text, context) => (text === '' ? text : checkName(text, context)))

function checkName(text: string, context: z.RefinementCtx): string {
  const name = readName(text)
  if (name !== undefined) return name
  context.addIssue(nameRule)
  return z.NEVER
}

/**
 * Text that is stored exactly as written. PostgreSQL cannot store a NUL in a text, and half of a surrogate pair comes
 * back as another character.
 */
function keptText(charactersMax: number) {
  const rule = 'no NUL, and no half of a surrogate pair'
  return z
    .string()
    .max(charactersMax)
    .refine((text) => !text.includes('\0') && text.isWellFormed(), rule)
}

export const noteCharactersMax = 500

/** What an operator keeps with a credit. */
export const creditNote = keptText(noteCharactersMax)

/** `JSON.parse` turns a number into a float, which is not exact, so amounts are written as text. */
export const dollars = z
  .string({ error: 'an amount is decimal dollars as text, such as "12.50"' })
  .transform((text, context): Nano => {
    const amount = parseDollars(text)
    if (amount === undefined) context.addIssue('decimal dollars with up to nine decimals, such as "12.50"')
    else if (amount > creditMax || amount < 0n - creditMax)
      context.addIssue(`at most ${formatDollars(creditMax)} at a time`)
    else return amount
    return z.NEVER
  })

const positiveOrNothing = dollars.refine((amount) => amount >= 0n, 'must not be negative')

export const firstCredit = positiveOrNothing

export const cap = z
  .strictObject({ amount: positiveOrNothing, period: z.enum(['total', 'day', 'month']) })
  .transform((given): Cap => given)

export const limitMax = 1_000_000_000
const count = z.int().min(1).max(limitMax)

/** Replaces all limits together: a limit that is absent or null does not apply. */
export const limits = z
  .strictObject({
    requests_per_minute: count.nullish(),
    tokens_per_minute: count.nullish(),
    concurrent: count.nullish(),
  } satisfies Record<(typeof limitNames)[KeyLimit], z.ZodType>)
  .transform((given): KeyLimits | null => {
    const found = keyLimits.map((limit) => [limit, given[limitNames[limit]]] as const)
    const set = found.filter(([, count]) => isGiven(count))
    return set.length === 0 ? null : Object.fromEntries(set)
  })

const patternsMax = 100

/** Model ids of the catalogue, in which `*` stands for any text. With an empty list a key could use no model. */
export const modelPatterns = z.array(modelGlob).min(1).max(patternsMax)

export const metadata = z
  .record(keptText(64).min(1), keptText(500))
  .refine((given) => Object.keys(given).length <= 16, 'at most 16 entries')

// A hundred years. A later time is meant in another unit.
export const expiryMsMax = 100 * 366 * 86_400_000

/** Unix seconds, or a date or time as text; it has to be in the future. */
export function expiry(now: () => number) {
  return z.union([z.int(), z.string()]).transform((given, context): number => {
    const at = typeof given === 'number' ? given * 1000 : parseMoment(given)
    if (at === undefined) context.addIssue('unix seconds, or a date such as "2027-01-31" or "2027-01-31T18:00:00Z"')
    else if (at <= now()) context.addIssue('in the past')
    else if (at > now() + expiryMsMax) context.addIssue('too far away: unix seconds, not milliseconds')
    else return at
    return z.NEVER
  })
}
