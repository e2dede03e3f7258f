import { showDollars } from '../base/money.ts'
import { reportRequests, showAttempt, showRequest as showOne, type ShownRequest } from '../reports/requests.ts'
import { reportUsage, type UsageReport } from '../reports/usage.ts'
import { accountById, type Account } from '../store/accounts.ts'
import type { GroupBy } from '../store/groupings.ts'
import { scopeOfKey } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import type { Mode } from '../store/schema.ts'
import { hourMs } from '../store/rollups.ts'
import { requestById } from '../store/request-lists.ts'
import type { UsageFilter } from '../store/usage.ts'
import { allAccounts } from './accounts.ts'
import { inEitherMode, withInstallation, type InstallationOptions as Options } from './installation.ts'
import { keysOf, whose, whoseColumns } from './keys.ts'
import { accountColumn, readFilter, readPage, sayPage, type FilterOptions, type PageOptions } from './listing.ts'
import { say, sayJson, sheet, showTime, table, type Column } from './output.ts'

type Filtered = FilterOptions & { readonly key?: string; readonly model?: string }
type Filter = UsageFilter & { readonly mode: Mode }

/** `turnpike usage`: the sums of the operator's API, all pages of them. */
export async function usage(options: Options & Filtered & { by?: GroupBy }): Promise<void> {
  const { by } = options
  await withInstallation(options, async ({ store, mode }) => {
    const filter = await filterOf(store, mode, options)
    const report = await wholeReport(store, filter, by)
    if (options.json) return sayJson(report)
    if (report.data.length === 0) return say(`No usage was found in ${mode} mode.`)
    say(table(await columnsOf(store, filter, by), report.data))
    if (isWidened(filter)) say(`\nSums cover whole hours: here ${periodOf(report)}.`)
  })
}

/** Whether the sums cover more than was asked for. */
function isWidened({ from = 0, to = 0 }: UsageFilter): boolean {
  return from % hourMs !== 0 || to % hourMs !== 0
}

function periodOf({ from, to }: UsageReport): string {
  const bounds = [from !== null && `from ${showTime(from * 1000)}`, to !== null && `to ${showTime(to * 1000)}`]
  return bounds.filter((bound) => bound !== false).join(' ')
}

/** Every page, however short, computes all sums: in pages of a hundred, those of ten thousand keys took minutes. */
const sumsAtOnce = 100_000

export async function wholeReport(store: Store, filter: UsageFilter, by: GroupBy | undefined): Promise<UsageReport> {
  const found: UsageReport['data'] = []
  let after: string | undefined
  for (;;) {
    const page = await reportUsage(store, filter, { limit: sumsAtOnce, group_by: by, after }, 'operator')
    found.push(...page.data)
    if (page.next === null) return { ...page, data: found }
    after = page.next
  }
}

/** `turnpike requests list` */
export async function listRequests(options: Options & Filtered & PageOptions): Promise<void> {
  const { json } = options
  const asked = readPage(options)
  await withInstallation(options, async ({ store, mode }) => {
    const page = await reportRequests(store.db, await filterOf(store, mode, options), asked)
    const columns = requestColumns(await accountColumn(store, page.data))
    sayPage(page, { json, columns, nothing: `No requests were found in ${mode} mode.` })
  })
}

/** `turnpike requests show` */
export async function showRequest(id: string, options: Pick<Options, 'json'>): Promise<void> {
  await inEitherMode({}, async ({ store }) => {
    const found = await requestById(store.db, { scope: 'every-account', id })
    if (found === undefined) throw new Error(`there is no request "${id}"; turnpike requests list shows their ids`)
    const request = showOne(found.request)
    const attempts = found.attempts.map(showAttempt)
    if (options.json) return sayJson({ ...request, attempts })
    const { usage: used, created_at: _, ...facts } = { ...request, cost: showDollars(request.cost) }
    const names = await whose(store, request)
    say(sheet({ ...texts(facts), ...names, ...texts(used ?? {}), created: showTime(found.request.createdAt) }))
    if (attempts.length === 0) return
    say()
    say(table(attemptColumns, attempts))
  })
}

async function filterOf(store: Store, mode: Mode, options: Filtered): Promise<Filter> {
  const { key, model } = options
  const filter = { ...(await readFilter(store, mode, options)), keyId: key, model }
  if (key === undefined) return filter
  const scope = await scopeOfKey(store.db, filter.scope, key)
  if (scope === undefined) throw new Error(`there is no key "${key}"; turnpike keys list shows their ids`)
  return { ...filter, scope }
}

function texts(facts: Readonly<Record<string, string | number | boolean>>): Record<string, string> {
  return Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, String(value)]))
}

type SumRow = UsageReport['data'][number]

async function columnsOf(store: Store, filter: Filter, by: GroupBy | undefined): Promise<Column<SumRow>[]> {
  if (by === undefined) return sumColumns
  const group = { name: by.toUpperCase(), show: (row: SumRow) => groupOf(row[by] ?? '', by) }
  if (by !== 'account' && by !== 'key') return [group, ...sumColumns]
  // An id means nothing to people, so names come first and the id last.
  return [...(await whoseColumnsOf(store, filter, by)), ...sumColumns, { ...group, name: 'ID' }]
}

async function whoseColumnsOf(store: Store, filter: Filter, by: 'account' | 'key'): Promise<Column<SumRow>[]> {
  const accounts = await accountsIn(store, filter)
  if (by === 'account') {
    const names = new Map(accounts.map(({ id, name }) => [id, name]))
    return [{ name: 'ACCOUNT', show: ({ account }) => names.get(String(account)) ?? '-' }]
  }
  const keys = new Map((await keysOf(store, accounts)).map((row) => [row.key.id, row]))
  return whoseColumns.map(({ name, show }) => ({
    name,
    show({ key }) {
      const row = keys.get(String(key))
      return row === undefined ? '-' : show(row)
    },
  }))
}

/** The accounts whose usage is shown. One that was chosen by an id may be of the other mode. */
async function accountsIn(store: Store, { scope, mode }: Filter): Promise<Account[]> {
  if (scope === 'every-account') return allAccounts(store, mode)
  const only = await accountById(store.db, scope.accountId)
  return only === undefined ? [] : [only]
}

const sumColumns: Column<SumRow>[] = [
  number('REQUESTS', 'requests'),
  { name: 'COST', align: 'right', show: ({ cost }) => showDollars(String(cost)) },
  { name: 'VENDOR COST', align: 'right', show: ({ vendor_cost: cost }) => showDollars(String(cost)) },
  number('INPUT', 'input_tokens'),
  number('CACHED', 'cached_input_tokens'),
  number('OUTPUT', 'output_tokens'),
]

function number(name: string, field: string): Column<SumRow> {
  return { name, align: 'right', show: (row) => String(row[field]) }
}

function groupOf(group: string | number, by: GroupBy): string {
  if (typeof group === 'string') return group || '-'
  const time = showTime(group * 1000)
  return by === 'day' ? time.slice(0, 'yyyy-mm-dd'.length) : time
}

const requestColumns = (whose: Column<ShownRequest>): Column<ShownRequest>[] => [
  { name: 'TIME', show: ({ created_at: at }) => showTime(at * 1000) },
  whose,
  { name: 'MODEL', show: ({ model }) => model },
  { name: 'STATUS', align: 'right', show: ({ status }) => String(status) },
  { name: 'COST', align: 'right', show: ({ cost }) => showDollars(cost) },
  { name: 'BASIS', show: ({ basis }) => basis },
  { name: 'MS', align: 'right', show: ({ duration_ms: ms }) => String(ms) },
  { name: 'KEY', show: ({ key }) => key },
  { name: 'ID', show: ({ id }) => id },
]

const attemptColumns: readonly Column<ReturnType<typeof showAttempt>>[] = [
  { name: 'CHANNEL', show: ({ channel }) => channel },
  { name: 'UPSTREAM MODEL', show: ({ upstream_model: model }) => model },
  { name: 'STATUS', align: 'right', show: ({ status }) => String(status) },
  { name: 'VENDOR COST', align: 'right', show: ({ vendor_cost: cost }) => showDollars(cost) },
  { name: 'ATTEMPT', show: ({ id }) => id },
]
