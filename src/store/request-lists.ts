import { type Selectable, sql } from 'kysely'
import { isOfMode } from './mode.ts'
import { isBehind, type PageEnd } from './pages.ts'
import type { AttemptRecord, Charged, RequestRecord } from './requests.ts'
import { dayMs } from './rollups.ts'
import type { AttemptTable, Mode, Queries, RequestTable, Scope } from './schema.ts'
import { sumsOf, type UsageFilter } from './usage.ts'

export type RequestRow = RequestRecord & Omit<Charged, 'holdId'> & { readonly accountId: string }

export type AttemptRow = Omit<AttemptRecord, 'delivered' | 'createdAt'>

/** Newest first; `before` is the last row of the page before. Every filter has an index that ends in this order. */
export async function listRequests(
  db: Queries,
  filter: UsageFilter,
  page: { readonly limit: number; readonly before?: PageEnd },
): Promise<RequestRow[]> {
  const { before } = page
  const narrowed = await onUsedDays(db, filter)
  if (narrowed === undefined) return []
  let query = requestsOf(db, narrowed).selectAll().orderBy('created_at', 'desc').orderBy('id', 'desc').limit(page.limit)
  if (before !== undefined) query = query.where(isBehind(before))
  const { scope, mode } = filter
  if (scope !== 'every-account' || mode === undefined) return (await query.execute()).map(toRequest)
  const rows = await query.where('created_at', '>=', firstDayOf(mode)).execute()
  // The second bound takes a lookup for each account, and only a page that is not full can lack older requests.
  const whole =
    rows.length === page.limit ? rows : await query.where('created_at', '>=', firstUsedDayOf(mode)).execute()
  return whole.map(toRequest)
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
    .select((eb) => [eb.fn.min('request.created_at').as('first'), eb.fn.max('request.created_at').as('until')])
    .where('hold.account_id', '=', filter.scope.accountId)
    .where('hold.state', '=', 'open')
    .where('hold.kind', '=', 'task')
    .where('request.model', '=', filter.model)
    .executeTakeFirstOrThrow()
  const summed = await sumsOf(db, 'usage_day', { ...filter, from: undefined, to: undefined })
    .clearSelect()
    .select((eb) => [eb.fn.min('hour').as('first'), eb.fn.max('hour').as('until')])
    .executeTakeFirstOrThrow()
  const found = [running, summed].flatMap(({ first, until }) =>
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
): Promise<PageEnd | undefined> {
  const row = await requestsOf(db, { scope: by.scope }).select('created_at').where('id', '=', by.id).executeTakeFirst()
  return row && { createdAt: row.created_at, id: by.id }
}

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
