import { type RawBuilder, type Selectable, sql } from 'kysely'
import type { Nano } from '../base/money.ts'
import type { Capability } from '../capabilities/capability.ts'
import { type Usage, units } from '../capabilities/usage.ts'
import { sum } from './check.ts'
import type { Engine, Store } from './open.ts'
import type { AttemptTable, Basis, Queries, RequestTable, Scope } from './schema.ts'

export type Filter = {
  readonly scope: Scope
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
  if (filter.keyId !== undefined) query = query.where('key_id', '=', filter.keyId)
  if (filter.model !== undefined) query = query.where('model', '=', filter.model)
  if (filter.from !== undefined) query = query.where('created_at', '>=', filter.from)
  if (filter.to !== undefined) query = query.where('created_at', '<', filter.to)
  return query
}

/** Newest first; `before` is the last row of the page before. */
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

export type GroupBy = 'hour' | 'day' | 'model' | 'key' | 'account' | 'capability'

export type UsageSum = {
  /** The start of the hour or day (UTC, unix milliseconds as text), or the name of what is grouped by. */
  readonly group: string
  readonly requests: number
  readonly cost: Nano
  readonly usage: Usage
}

const bucketMs = { hour: 3_600_000, day: 86_400_000 } as const
const columns = { model: 'model', key: 'key_id', account: 'account_id', capability: 'capability' } as const
const summed = [...units, 'reasoning'] as const

export async function sumUsage(store: Store, filter: Filter, by: GroupBy): Promise<UsageSum[]> {
  const group =
    by === 'hour' || by === 'day'
      ? sql<string>`cast(created_at / ${sql.lit(bucketMs[by])} * ${sql.lit(bucketMs[by])} as text)`
      : sql<string>`${sql.ref(columns[by])}`
  const rows = await store.snapshot((tx) =>
    requestsOf(tx, filter)
      .select((eb) => [group.as('label'), sum(eb.ref('cost')).as('total'), sql<number>`count(*)`.as('rows')])
      .select(summed.map((unit) => sumOfUnit(store.engine, unit).as(`sum_${unit}`)))
      .groupBy(group)
      .orderBy(group)
      .execute(),
  )
  return rows.map((row) => ({ group: row.label, requests: row.rows, cost: row.total, usage: toUsage(row) }))
}

/** Usage is stored as text; each engine has its own way into it. */
function sumOfUnit(engine: Engine, unit: (typeof summed)[number]): RawBuilder<number> {
  const count =
    engine === 'sqlite'
      ? sql`json_extract("usage", ${sql.lit(`$.${unit}`)})`
      : sql`cast(cast("usage" as jsonb) ->> ${sql.lit(unit)} as bigint)`
  return sql<number>`cast(coalesce(sum(${count}), 0) as bigint)`
}

function toUsage(row: { readonly [name: `sum_${string}`]: number }): Usage {
  const counted = summed.map((unit) => [unit, row[`sum_${unit}`] ?? 0] as const).filter(([, count]) => count !== 0)
  return Object.fromEntries(counted)
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
