import { type Selectable, type SqlBool, sql } from 'kysely'
import type { Nano } from '../base/money.ts'
import type { Capability } from '../capabilities/capability.ts'
import type { Usage } from '../capabilities/usage.ts'
import { sum } from './check.ts'
import type { Store } from './open.ts'
import { hourMs, type SummedColumn, summedColumns } from './rollups.ts'
import type { AttemptTable, Basis, Mode, Queries, RequestTable, Scope } from './schema.ts'

export type Filter = {
  readonly scope: Scope
  /** Of accounts of this mode alone: play money and real money do not add up. */
  readonly mode?: Mode
  readonly keyId?: string
  readonly model?: string
  /** Unix milliseconds, inclusive. */
  readonly from?: number
  /** Exclusive. */
  readonly to?: number
}

export type RequestRow = {
  readonly id: string
  readonly accountId: string
  readonly keyId: string
  readonly model: string
  readonly capability: Capability
  readonly status: number
  readonly cost: Nano
  readonly basis: Basis
  readonly usage: Usage | null
  readonly streamed: boolean
  readonly durationMs: number
  readonly createdAt: number
}

export type AttemptRow = {
  readonly id: string
  readonly channel: string
  readonly vendor: string
  readonly upstreamModel: string
  readonly status: number
  readonly vendorCost: Nano
}

function requestsOf(db: Queries, filter: Filter) {
  let query = db.selectFrom('request')
  if (filter.scope !== 'every-account') query = query.where('account_id', '=', filter.scope.accountId)
  else if (filter.mode !== undefined) query = query.where(accountsOf(filter.mode))
  if (filter.keyId !== undefined) query = query.where('key_id', '=', filter.keyId)
  if (filter.model !== undefined) query = query.where('model', '=', filter.model)
  if (filter.from !== undefined) query = query.where('created_at', '>=', filter.from)
  if (filter.to !== undefined) query = query.where('created_at', '<', filter.to)
  return query
}

function accountsOf(mode: Mode) {
  return sql<SqlBool>`account_id in (select id from account where mode = ${mode})`
}

/** Newest first; `before` is the last row of the page before. Every filter has an index that ends in this order. */
export async function listRequests(
  db: Queries,
  filter: Filter,
  page: { readonly limit: number; readonly before?: { readonly createdAt: number; readonly id: string } },
): Promise<RequestRow[]> {
  const { before } = page
  let query = requestsOf(db, filter).selectAll().orderBy('created_at', 'desc').orderBy('id', 'desc').limit(page.limit)
  if (before !== undefined) {
    query = query.where((eb) => eb(eb.refTuple('created_at', 'id'), '<', eb.tuple(before.createdAt, before.id)))
  }
  return (await query.execute()).map(toRequest)
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

/** Where a request stands in the order of the lists. */
export async function placeOfRequest(
  db: Queries,
  by: { readonly scope: Scope; readonly id: string },
): Promise<{ createdAt: number; id: string } | undefined> {
  const row = await requestsOf(db, { scope: by.scope }).select('created_at').where('id', '=', by.id).executeTakeFirst()
  return row && { createdAt: row.created_at, id: by.id }
}

/** What was charged since the start of an hour, for spending caps. Open holds are not in it. */
export async function spentSince(
  db: Queries,
  by: { readonly accountId: string; readonly keyId?: string; readonly since: number },
): Promise<Nano> {
  let query = db
    .selectFrom('usage_hour')
    .select((eb) => sum(eb.ref('cost')).as('total'))
    .where('account_id', '=', by.accountId)
    .where('hour', '>=', by.since)
  if (by.keyId !== undefined) query = query.where('key_id', '=', by.keyId)
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

const dayMs = 24 * hourMs
const columns = {
  model: 'model',
  key: 'key_id',
  account: 'account_id',
  vendor: 'vendor',
  capability: 'capability',
} as const

/**
 * Sums by group, in the order of the groups, from the sums of each hour alone: ten million requests are some ten thousand
 * rows there. So `from` and `to` are whole hours. `after` is the last group of the page before.
 */
export async function sumUsage(
  store: Store,
  filter: Filter,
  by: GroupBy | 'nothing',
  page: { readonly limit: number; readonly after?: string | number } = { limit: 1_000 },
): Promise<UsageSum[]> {
  return store.snapshot(async (tx) => {
    const hours = hoursOf(tx, after(filter, by, page.after)).select((eb) => [
      sum(eb.ref('cost')).as('cost'),
      sum(eb.ref('vendor_cost')).as('vendor_cost'),
      count('requests').as('requests'),
      ...summedColumns.map((column) => count(column).as(column)),
    ])
    if (by === 'nothing') return (await hours.execute()).map((row) => toSum(row, null))
    if (by === 'hour' || by === 'day') {
      const start = by === 'hour' ? sql<number>`hour` : sql<number>`hour / ${sql.lit(dayMs)} * ${sql.lit(dayMs)}`
      const rows = await hours.select(start.as('hour')).groupBy(start).orderBy(start).limit(page.limit).execute()
      return rows.map((row) => toSum(row, row.hour))
    }
    const column = columns[by]
    let named = hours.select(`${column} as label`).groupBy(column).orderBy(column).limit(page.limit)
    if (page.after !== undefined) named = named.where(column, '>', String(page.after))
    return (await named.execute()).map((row) => toSum(row, row.label))
  })
}

/** Pages of hours and days begin where the last group ended. */
function after(filter: Filter, by: GroupBy | 'nothing', last: string | number | undefined): Filter {
  if (last === undefined || (by !== 'hour' && by !== 'day')) return filter
  const next = Number(last) + (by === 'hour' ? hourMs : dayMs)
  return { ...filter, from: Math.max(next, filter.from ?? 0) }
}

function hoursOf(db: Queries, filter: Filter) {
  let query = db.selectFrom('usage_hour')
  if (filter.scope !== 'every-account') query = query.where('account_id', '=', filter.scope.accountId)
  else if (filter.mode !== undefined) query = query.where(accountsOf(filter.mode))
  if (filter.keyId !== undefined) query = query.where('key_id', '=', filter.keyId)
  if (filter.model !== undefined) query = query.where('model', '=', filter.model)
  if (filter.from !== undefined) query = query.where('hour', '>=', filter.from)
  if (filter.to !== undefined) query = query.where('hour', '<', filter.to)
  return query
}

/** PostgreSQL sums bigints to numeric, which would come back as text. */
function count(column: string) {
  return sql<number>`cast(coalesce(sum(${sql.ref(column)}), 0) as bigint)`
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

export type VendorSum = { readonly vendor: string; readonly attempts: number; readonly cost: Nano }

/** What vendors were asked and what that cost us: to be compared with their bills, never with the charges. */
export async function sumVendors(
  store: Store,
  period: { readonly from: number; readonly to: number },
): Promise<VendorSum[]> {
  const rows = await store.snapshot((tx) =>
    tx
      .selectFrom('attempt')
      .select((eb) => ['vendor', sum(eb.ref('vendor_cost')).as('total'), sql<number>`count(*)`.as('rows')])
      .where('created_at', '>=', period.from)
      .where('created_at', '<', period.to)
      .groupBy('vendor')
      .orderBy('vendor')
      .execute(),
  )
  return rows.map((row) => ({ vendor: row.vendor, attempts: row.rows, cost: row.total }))
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
