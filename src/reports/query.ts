import { z } from 'zod'
import { badRequest } from '../base/errors.ts'
import type { HttpRequest } from '../base/http/request.ts'
import { parseMoment } from '../base/moment.ts'
import { queryOf } from '../edge/target.ts'
import { fieldError } from '../wire/issues.ts'

/** The query of a request, checked like a body: an unknown name is refused, since it would silently filter nothing. */
export function readQuery<S extends z.ZodType>(request: HttpRequest, schema: S): z.output<S> {
  const given: Record<string, string> = {}
  for (const [name, value] of queryOf(request)) {
    if (Object.hasOwn(given, name)) throw badRequest(`'${name}' is given twice.`, name)
    given[name] = value
  }
  const parsed = schema.safeParse(given)
  if (!parsed.success) throw fieldError(parsed.error)
  return parsed.data
}

export const pageSizeMax = 100
const limitDefault = 20

const limit = z
  .string()
  .regex(/^\d{1,3}$/, `a whole number from 1 to ${pageSizeMax}`)
  .transform(Number)
  .refine((count) => count >= 1 && count <= pageSizeMax, `a whole number from 1 to ${pageSizeMax}`)

/** Matched exactly, never as a pattern. No id or name has control characters, and PostgreSQL refuses some of them. */
export const exactText = z
  .string()
  .regex(/^[^\p{Cc}]{1,200}$/u, '1 to 200 characters, none of them a control character')
/** A group's name may be empty: that of the requests for which no vendor was called. */
const groupName = z.string().regex(/^[^\p{Cc}]{0,200}$/u, '200 characters at most, none of them a control character')

/** Which page of a list. `after` is the `next` of the previous page. */
export const pageFields = { limit: limit.default(limitDefault), after: exactText.exactOptional() }
/** The same for sums. They are few, so the default is the longest page. */
export const sumPageFields = { limit: limit.default(pageSizeMax), after: groupName.exactOptional() }

export const momentRule = 'unix seconds, or a date such as 2027-01-31 or 2027-01-31T18:00:00Z'

// A shorter number is a date without its dashes (20270131) or a year, and is not meant as some day of 1970.
const unixMoment = /^(?:0|\d{9,11})$/

export function readMoment(text: string): number | undefined {
  return unixMoment.test(text) ? Number(text) * 1000 : parseMoment(text)
}

const moment = z.string().transform((text, context) => {
  const at = readMoment(text)
  if (at !== undefined) return at
  context.addIssue(momentRule)
  return z.NEVER
})

/** `from` is inside the period, `to` is not. Unix milliseconds, once read. */
export const periodFields = { from: moment.exactOptional(), to: moment.exactOptional() }

export type Period = { readonly from?: number | undefined; readonly to?: number | undefined }

export function checkPeriod({ from, to }: Period): void {
  if (from !== undefined && to !== undefined && to <= from) throw badRequest(`'to' must be after 'from'.`, 'to')
}

export type PageAsked = { readonly limit: number; readonly after?: string | undefined }

/**
 * Which rows to ask the store for: one more than are shown, all older than the last one of the previous page. Where
 * that was deleted in the meantime, as old tasks are, nothing tells any more where the next page begins.
 */
export async function rowsFor<P>(
  { limit, after }: PageAsked,
  what: string,
  find: (id: string) => Promise<P | undefined>,
): Promise<{ readonly limit: number; readonly before?: P }> {
  if (after === undefined) return { limit: limit + 1 }
  const before = await find(after)
  if (before === undefined)
    throw badRequest(`There is no such ${what}, or not any more. Begin again without 'after'.`, 'after')
  return { limit: limit + 1, before }
}

export type Page<T> = { readonly data: T[]; readonly next: string | null }

/** Makes a page from up to one row more than it shows, which tells without counting whether there is a next page. */
export function pageOf<R, T>(
  rows: readonly R[],
  limit: number,
  show: (row: R) => T,
  cursor: (row: R) => string | number | null,
): Page<T> {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const next = rows.length > limit && last !== undefined ? String(cursor(last)) : null
  return { data: shown.map(show), next }
}
