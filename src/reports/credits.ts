import { badRequest } from '../base/errors.ts'
import { unixSeconds } from '../base/moment.ts'
import { formatDollars } from '../base/money.ts'
import { listCredits, placeOfCredit, type BookedCredit } from '../store/credits.ts'
import type { Queries } from '../store/schema.ts'
import { type Page, pageOf } from './query.ts'

/** What was paid into one account, newest first. `after` is the id of the last of the page before. */
export async function reportCredits(
  db: Queries,
  accountId: string,
  page: { readonly limit: number; readonly after?: string },
): Promise<Page<ShownCredit>> {
  const { limit, after } = page
  const before = after === undefined ? undefined : await placeOfCredit(db, { accountId, id: after })
  if (after !== undefined && before === undefined) throw badRequest('There is no such credit.', 'after')
  const rows = await listCredits(db, { accountId, limit: limit + 1, ...(before !== undefined && { before }) })
  return pageOf(rows, limit, showCredit, ({ id }) => id)
}

export type ShownCredit = ReturnType<typeof showCredit>

function showCredit({ id, amount, source, note, at }: BookedCredit) {
  return { id, amount: formatDollars(amount), source, note, created_at: unixSeconds(at) }
}
