import { momentRule, pageSizeMax, readMoment, type PageAsked } from '../reports/query.ts'
import { accountNames } from '../store/accounts.ts'
import type { Store } from '../store/open.ts'
import type { Mode } from '../store/schema.ts'
import { accountNamed } from './accounts.ts'
import { ifGiven } from './options.ts'
import { say, sayJson, table, type Column } from './output.ts'

/** The options that choose a page of a list. */
export type PageOptions = { readonly limit: string; readonly after?: string }

/** The options that narrow a list to an account and a period. */
export type FilterOptions = { readonly account?: string; readonly from?: string; readonly to?: string }

export function readPage({ limit, after }: PageOptions): PageAsked {
  const size = Number(limit)
  if (!/^\d{1,3}$/.test(limit) || size < 1 || size > pageSizeMax) {
    throw new Error(`--limit takes a number from 1 to ${pageSizeMax}`)
  }
  return { limit: size, after }
}

export async function readFilter(store: Store, mode: Mode, { account, ...options }: FilterOptions) {
  const [from, to] = [ifGiven(options.from, momentOf), ifGiven(options.to, momentOf)]
  const everyone = 'every-account' as const
  const scope = account === undefined ? everyone : { accountId: (await accountNamed(store, mode, account)).id }
  return { scope, mode, from, to }
}

function momentOf(text: string): number {
  const at = readMoment(text)
  if (at === undefined) throw new Error(`"${text}" is not a time: write ${momentRule}`)
  return at
}

/** Whose each row is: by the name of the account, because its id means nothing to people. */
export async function accountColumn<Row extends { readonly account: string }>(
  store: Store,
  rows: readonly Row[],
): Promise<Column<Row>> {
  const ids = rows.map(({ account }) => account)
  const names = await accountNames(store.db, ids)
  return { name: 'ACCOUNT', show: ({ account }) => names.get(account) ?? account }
}

type Page<Row> = { readonly data: readonly Row[]; readonly next: string | null }

/** `nothing` is printed for an empty page. */
export function sayPage<Row>(
  page: Page<Row>,
  { json, columns, nothing }: { json: boolean | undefined; columns: readonly Column<Row>[]; nothing: string },
): void {
  if (json) return sayJson(page)
  if (page.data.length === 0) return say(nothing)
  say(table(columns, page.data))
  if (page.next !== null) say(`More: --after ${page.next}`)
}
