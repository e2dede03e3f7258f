import { type RawBuilder, sql } from 'kysely'
import type { Nano } from '../base/money.ts'
import type { GroupBy } from './groupings.ts'
import { isOfMode } from './mode.ts'
import type { Store } from './open.ts'
import { dayMs, hourMs, type SummedColumn, summedColumns } from './rollups.ts'
import type { Mode, Queries, Scope, Tx } from './schema.ts'
import { sum } from './sum.ts'

export type UsageFilter = {
  readonly scope: Scope
  /** Only accounts in this mode: play money and real money do not add up. */
  readonly mode?: Mode | undefined
  readonly keyId?: string | undefined
  readonly model?: string | undefined
  /** Unix milliseconds, inclusive. */
  readonly from?: number | undefined
  /** Exclusive. */
  readonly to?: number | undefined
}

/** What was charged since the start of a day, for spending caps. Open holds are not included. */
export async function spentSince(
  db: Queries,
  by: { readonly accountId: string; readonly keyId?: string; readonly since: number },
): Promise<Nano> {
  const { accountId, keyId, since: from } = by
  const used = sumsOf(db, 'usage_day', { scope: { accountId }, keyId, from })
  const query = used.clearSelect().select((eb) => sum(eb.ref('cost')).as('total'))
  return (await query.executeTakeFirstOrThrow()).total
}

/**
 * `group` is the start of the hour or day (UTC, unix milliseconds), the name of what is grouped by, or null for all.
 */
export type UsageSum = {
  readonly group: string | number | null
  readonly requests: number
  readonly cost: Nano
  readonly vendorCost: Nano
  /** By column of the sums: `input`, `cached_input`, `images`, … */
  readonly counts: Readonly<Record<SummedColumn, number>>
}

const columns = {
  model: 'model',
  key: 'key_id',
  account: 'account_id',
  vendor: 'vendor',
  capability: 'capability',
} as const

/**
 * Sums by group, in the order of the groups. They are added up from the sums of days and, where the period begins or
 * ends inside a day, of hours; never from the requests themselves. `from` and `to` are whole hours. `after` is the last
 * group of the page before.
 */
export async function sumUsage(
  store: Store,
  filter: UsageFilter,
  by: GroupBy | 'nothing',
  page: {
    readonly limit: number
    readonly after?: string | number | undefined
    readonly statementMsMax?: number | undefined
  } = { limit: 1_000 },
): Promise<UsageSum[]> {
  return store.snapshot(async (tx) => {
    const within = after(filter, by, page.after)
    const used = by === 'hour' ? sumsOf(tx, 'usage_hour', within) : daysAndHours(tx, within)
    const sums = tx
      .selectFrom(used.as('used'))
      .select((eb) => [
        sum(eb.ref('cost')).as('cost'),
        sum(eb.ref('vendor_cost')).as('vendor_cost'),
        sum(eb.ref('requests')).as('requests'),
        ...summedColumns.map((column) => sum(eb.ref(column)).as(column)),
      ])
    if (by === 'nothing') return (await sums.execute()).map((row) => toSum(row, null))
    if (by === 'hour' || by === 'day') {
      const start = by === 'hour' ? sql<number>`hour` : sql<number>`hour / ${sql.lit(dayMs)} * ${sql.lit(dayMs)}`
      const rows = await sums.select(start.as('hour')).groupBy(start).orderBy(start).limit(page.limit).execute()
      return rows.map((row) => toSum(row, row.hour))
    }
    const column = columns[by]
    let named = sums.select(`${column} as label`).groupBy(column).orderBy(column).limit(page.limit)
    if (page.after !== undefined) named = named.where(column, '>', String(page.after))
    return (await named.execute()).map((row) => toSum(row, row.label))
  }, page.statementMsMax)
}

/** Pages of hours and days begin where the last group ended. */
function after(filter: UsageFilter, by: GroupBy | 'nothing', last: string | number | undefined): UsageFilter {
  if (last === undefined || (by !== 'hour' && by !== 'day')) return filter
  const next = Number(last) + (by === 'hour' ? hourMs : dayMs)
  return { ...filter, from: Math.max(next, filter.from ?? 0) }
}

/** The days that are wholly inside the period, and the hours before and after them. */
function daysAndHours(tx: Tx, filter: UsageFilter) {
  const { from, to } = filter
  const firstDay = from === undefined ? undefined : Math.ceil(from / dayMs) * dayMs
  const lastDay = to === undefined ? undefined : Math.floor(to / dayMs) * dayMs
  if (firstDay !== undefined && lastDay !== undefined && firstDay >= lastDay) return sumsOf(tx, 'usage_hour', filter)
  let used = sumsOf(tx, 'usage_day', { ...filter, from: firstDay, to: lastDay })
  if (firstDay !== undefined && firstDay !== from) {
    used = used.unionAll(sumsOf(tx, 'usage_hour', { ...filter, to: firstDay }))
  }
  if (lastDay !== undefined && lastDay !== to) {
    used = used.unionAll(sumsOf(tx, 'usage_hour', { ...filter, from: lastDay }))
  }
  return used
}

/** The rows of sums that a filter leaves. */
export function sumsOf(db: Queries, table: 'usage_hour' | 'usage_day', filter: UsageFilter) {
  // Both tables have the same columns, so one type can stand for both.
  let query = db.selectFrom(table as 'usage_day').selectAll()
  if (filter.scope !== 'every-account') query = query.where('account_id', '=', filter.scope.accountId)
  else if (filter.mode !== undefined) query = query.where(isOfMode(table, filter.mode))
  if (filter.keyId !== undefined) query = query.where('key_id', '=', filter.keyId)
  if (filter.keyId !== undefined && filter.scope !== 'every-account') {
    query = query.where('hour', 'in', usedTimes(table, filter.scope.accountId, filter))
  }
  if (filter.model !== undefined) query = query.where('model', '=', filter.model)
  if (filter.from !== undefined) query = query.where('hour', '>=', filter.from)
  if (filter.to !== undefined) query = query.where('hour', '<', filter.to)
  return query
}

/**
 * The hours or days in which an account used anything. The primary key has an account's sums by time and then by key:
 * at each of these times a key's sums are found directly, without going through those of thousands of other keys.
 */
function usedTimes(table: 'usage_hour' | 'usage_day', accountId: string, { from = 0, to }: UsageFilter) {
  const before = to === undefined ? sql`` : sql`and hour < ${to}`
  const first = (after: RawBuilder<unknown>) =>
    sql`select min(hour) from ${sql.table(table)} where account_id = ${accountId} and hour ${after} ${before}`
  return sql<number>`(
    with recursive used(at) as (
      ${first(sql`>= ${from}`)} union all select (${first(sql`> used.at`)}) from used where used.at is not null
    )
    select at from used where at is not null
  )`
}

type SummedRow = { requests: number; cost: Nano; vendor_cost: Nano } & Record<SummedColumn, number>

function toSum(row: SummedRow, group: string | number | null): UsageSum {
  const counts = Object.fromEntries(summedColumns.map((column) => [column, row[column]]))
  return {
    group,
    requests: row.requests,
    cost: row.cost,
    vendorCost: row.vendor_cost,
    counts: counts as Record<SummedColumn, number>,
  }
}
