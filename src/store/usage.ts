import { type RawBuilder, type Selectable, sql } from 'kysely'
import type { Nano } from '../base/money.ts'
import { isOfMode } from './mode.ts'
import type { Store } from './open.ts'
import type { AttemptRecord, Charged, RequestRecord } from './requests.ts'
import { dayMs, hourMs, type SummedColumn, summedColumns } from './rollups.ts'
import type { AttemptTable, Mode, Queries, RequestTable, Scope, Tx } from './schema.ts'
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

export type RequestRow = RequestRecord & Omit<Charged, 'holdId'> & { readonly accountId: string }

export type AttemptRow = Omit<AttemptRecord, 'delivered' | 'createdAt'>

function requestsOf(db: Queries, filter: UsageFilter) {
  let query = db.selectFrom('request')
  if (filter.scope !== 'every-account') query = query.where('account_id', '=', filter.scope.accountId)
  else if (filter.mode !== undefined) query = query.where(isOfMode('request', filter.mode))
  if (filter.keyId !== undefined) query = query.where('key_id', '=', filter.keyId)
  if (filter.model !== undefined) query = query.where('model', '=', filter.model)
  if (filter.from !== undefined) query = query.where('created_at', '>=', filter.from)
  if (filter.to !== undefined) query = query.where('created_at', '<', filter.to)
  return query
}

// A day earlier than what the mode has, since the clocks of nodes may differ, but by less than that.
const marginMs = sql.lit(dayMs)

/** A mode has no requests before its first account, so its newest are not searched for in years of the other's. */
function firstDayOf(mode: Mode) {
  return sql<number>`(select min(account.created_at) - ${marginMs} from account where account.mode = ${mode})`
}

/**
 * The same for a mode whose first account was made while the clock was ahead: after the clock was corrected, requests
 * are older than the account. It goes by the days on which each account used anything and, for videos that are still
 * being made, which no sum has yet, by their orders.
 */
function firstUsedDayOf(mode: Mode) {
  return sql<number>`(
    select min(at) - ${marginMs} from (
      select min(account.created_at) as at from account where account.mode = ${mode}
      union all
      select min(first_day) from (
        select (select min(hour) from usage_day where usage_day.account_id = account.id) as first_day
        from account where account.mode = ${mode}
      ) as used
      union all
      select min(request.created_at) from hold
        join task on task.hold_id = hold.id join request on request.id = task.request_id
        where hold.state = 'open' and hold.kind = 'task'
    ) as firsts
  )`
}

/** Newest first; `before` is the last row of the page before. Every filter has an index that ends in this order. */
export async function listRequests(
  db: Queries,
  filter: UsageFilter,
  page: { readonly limit: number; readonly before?: { readonly createdAt: number; readonly id: string } },
): Promise<RequestRow[]> {
  const { before } = page
  const narrowed = await onUsedDays(db, filter)
  if (narrowed === undefined) return []
  let query = requestsOf(db, narrowed).selectAll().orderBy('created_at', 'desc').orderBy('id', 'desc').limit(page.limit)
  if (before !== undefined) {
    query = query.where((eb) => eb(eb.refTuple('created_at', 'id'), '<', eb.tuple(before.createdAt, before.id)))
  }
  const { scope, mode } = filter
  if (scope !== 'every-account' || mode === undefined) return (await query.execute()).map(toRequest)
  const rows = await query.where('created_at', '>=', firstDayOf(mode)).execute()
  // The second bound takes a lookup for each account, and only a page that is not full can lack older requests.
  const whole =
    rows.length === page.limit ? rows : await query.where('created_at', '>=', firstUsedDayOf(mode)).execute()
  return whole.map(toRequest)
}

/**
 * No index has an account's requests of one model, and the two that could help may have millions of rows that do not
 * match. The daily sums tell from which day to which there are any, and only those days are searched. Orders of videos
 * that are still being made are on record but not in the sums, so they widen the search.
 */
async function onUsedDays(db: Queries, filter: UsageFilter): Promise<UsageFilter | undefined> {
  if (filter.scope === 'every-account' || filter.model === undefined) return filter
  // Read before the sums, so that a task that ends in between is in both rather than in neither.
  const running = await db
    .selectFrom('hold')
    .innerJoin('task', 'task.hold_id', 'hold.id')
    .innerJoin('request', 'request.id', 'task.request_id')
    .select((eb) => [eb.fn.min('request.created_at').as('hour'), eb.fn.max('request.created_at').as('until')])
    .where('hold.account_id', '=', filter.scope.accountId)
    .where('hold.state', '=', 'open')
    .where('hold.kind', '=', 'task')
    .where('request.model', '=', filter.model)
    .executeTakeFirstOrThrow()
  const summed = await sumsOf(db, 'usage_day', { ...filter, from: undefined, to: undefined })
    .clearSelect()
    .select((eb) => [eb.fn.min('hour').as('hour'), eb.fn.max('hour').as('until')])
    .executeTakeFirstOrThrow()
  const found = [running, summed].flatMap(({ hour: first, until }) =>
    first === null || until === null ? [] : [{ first, until }],
  )
  if (found.length === 0) return undefined
  return {
    ...filter,
    from: Math.max(Math.min(...found.map(({ first }) => first)), filter.from ?? 0),
    to: Math.min(Math.max(...found.map(({ until }) => until)) + dayMs, filter.to ?? Number.MAX_SAFE_INTEGER),
  }
}

export async function requestById(
  db: Queries,
  by: { readonly scope: Scope; readonly id: string },
): Promise<{ request: RequestRow; attempts: AttemptRow[] } | undefined> {
  const row = await requestsOf(db, { scope: by.scope }).selectAll().where('id', '=', by.id).executeTakeFirst()
  if (row === undefined) return undefined
  const attempts = await db
    .selectFrom('attempt')
    .selectAll()
    .where('request_id', '=', by.id)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  return { request: toRequest(row), attempts: attempts.map(toAttempt) }
}

/** A request's position in the order of `listRequests`. */
export async function placeOfRequest(
  db: Queries,
  by: { readonly scope: Scope; readonly id: string },
): Promise<{ createdAt: number; id: string } | undefined> {
  const row = await requestsOf(db, { scope: by.scope }).select('created_at').where('id', '=', by.id).executeTakeFirst()
  return row && { createdAt: row.created_at, id: by.id }
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

export const groupings = ['hour', 'day', 'model', 'key', 'account', 'vendor', 'capability'] as const
export type GroupBy = (typeof groupings)[number]

/** `group` is the start of the hour or day (UTC, unix milliseconds), the name of what is grouped by, or null for all. */
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

function sumsOf(db: Queries, table: 'usage_hour' | 'usage_day', filter: UsageFilter) {
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

function toRequest(row: Selectable<RequestTable>): RequestRow {
  return {
    id: row.id,
    accountId: row.account_id,
    keyId: row.key_id,
    model: row.model,
    capability: row.capability,
    status: row.status,
    cost: row.cost,
    basis: row.basis,
    usage: row.usage,
    streamed: row.streamed,
    durationMs: row.duration_ms,
    createdAt: row.created_at,
  }
}

function toAttempt(row: AttemptTable): AttemptRow {
  return {
    id: row.id,
    channel: row.channel,
    vendor: row.vendor,
    upstreamModel: row.upstream_model,
    status: row.status,
    vendorCost: row.vendor_cost,
  }
}
