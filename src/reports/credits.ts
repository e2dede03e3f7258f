import { unixSeconds } from '../base/moment.ts'
import { formatDollars } from '../base/money.ts'
import { listCredits, placeOfCredit, type BookedCredit } from '../store/credits.ts'
import type { Queries } from '../store/schema.ts'
import { type Page, type PageAsked, pageOf, rowsFor } from './query.ts'

/** What was paid into one account, newest first. `after` is the id of the last credit of the previous page. */
export async function reportCredits(db: Queries, accountId: string, page: PageAsked): Promise<Page<ShownCredit>> {
  const asked = await rowsFor(page, 'credit', (id) => placeOfCredit(db, { accountId, id }))
  return pageOf(await listCredits(db, { accountId, ...asked }), page.limit, showCredit, ({ id }) => id)
}

export type ShownCredit = ReturnType<typeof showCredit>

function showCredit({ id, amount, source, note, at }: BookedCredit) {
  return { id, amount: formatDollars(amount), source, note, created_at: unixSeconds(at) }
}
