import { type Nano, zeroNano } from '../base/money.ts'
import type { Capability } from '../capabilities/capability.ts'
import { inPages } from './pages.ts'
import type { Basis, Queries } from './schema.ts'

/** A call to a vendor as the books have it, with the request it was made for. */
export type RecordedAttempt = {
  readonly id: string
  readonly vendor: string
  readonly cost: Nano
  /** Whether the customer paid for this attempt. */
  readonly delivered: boolean
  /** Absent where only the vendor's bill knows of the call. */
  readonly request: RecordedRequest | undefined
}

export type RecordedRequest = {
  readonly id: string
  readonly accountId: string
  readonly keyId: string
  readonly model: string
  readonly capability: Capability
  readonly status: number
  readonly basis: Basis
  readonly cost: Nano
  readonly createdAt: number
  readonly holdId: string | null
  readonly priceVersion: string | null
}

function attemptRows(db: Queries) {
  return db
    .selectFrom('attempt')
    .leftJoin('request', 'request.id', 'attempt.request_id')
    .leftJoin('txn', 'txn.id', 'request.hold_id')
    .select([
      'attempt.id',
      'attempt.vendor',
      'attempt.status',
      'attempt.vendor_cost',
      'attempt.recorded_cost',
      'attempt.delivered',
      'request.id as request_id',
      'request.account_id',
      'request.key_id',
      'request.model',
      'request.capability',
      'request.status as request_status',
      'request.basis',
      'request.cost',
      'request.created_at as requested_at',
      'request.hold_id',
      'txn.price_version',
    ])
}

type Row = Awaited<ReturnType<ReturnType<typeof attemptRows>['execute']>>[number]

export async function attemptsByIds(db: Queries, ids: readonly string[]): Promise<RecordedAttempt[]> {
  const found: RecordedAttempt[] = []
  for (const page of inPages(ids)) {
    found.push(...(await attemptRows(db).where('attempt.id', 'in', page).execute()).map(toAttempt))
  }
  return found
}

/**
 * The ids of the attempts that each of these requests was charged for, in ascending order. Leaves out a request where
 * it is uncertain whether another of its attempts was among them.
 */
export async function deliveredAttempts(db: Queries, requestIds: readonly string[]): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>()
  const doubtful = new Set<string>()
  for (const page of inPages(requestIds)) {
    const rows = await db
      .selectFrom('attempt')
      .select(['id', 'request_id', 'status', 'vendor_cost', 'recorded_cost', 'delivered'])
      .where('request_id', 'in', page)
      .orderBy('id')
      .execute()
    for (const row of rows) {
      const has = hasDelivered(row)
      if (has === undefined) doubtful.add(row.request_id)
      if (has === true) found.set(row.request_id, [...(found.get(row.request_id) ?? []), row.id])
    }
  }
  for (const requestId of doubtful) found.delete(requestId)
  return found
}

type Delivery = {
  readonly delivered: boolean | null
  readonly status: number
  readonly vendor_cost: Nano
  readonly recorded_cost: Nano | null
}

/**
 * In rows without `delivered`, an attempt recorded at a cost had delivered, and one that the vendor refused had not. Of
 * the rest it is unknown: after a crash the cost of all choices was put on the last attempt.
 */
function hasDelivered(row: Delivery): boolean | undefined {
  if (row.delivered !== null) return row.delivered
  if ((row.recorded_cost ?? row.vendor_cost) > 0n) return true
  return row.status < refused ? undefined : false
}

const refused = 400

/** Attempts of these vendors that cost something, by id, page by page: `after` is the last id of the page before. */
export async function costlyAttempts(
  db: Queries,
  by: { readonly vendors: readonly string[]; readonly since: number; readonly after: string; readonly limit: number },
): Promise<RecordedAttempt[]> {
  if (by.vendors.length === 0) return []
  const rows = await attemptRows(db)
    .where('attempt.vendor', 'in', by.vendors)
    .where('attempt.created_at', '>=', by.since)
    .where('attempt.vendor_cost', '<>', zeroNano)
    .where('attempt.id', '>', by.after)
    .orderBy('attempt.id')
    .limit(by.limit)
    .execute()
  return rows.map(toAttempt)
}

function toAttempt(row: Row): RecordedAttempt {
  return {
    id: row.id,
    vendor: row.vendor,
    cost: row.vendor_cost,
    delivered: hasDelivered(row) ?? false,
    request: toRequest(row),
  }
}

function toRequest(row: Row): RecordedRequest | undefined {
  const { request_id: id, account_id: accountId, key_id: keyId, model, capability, basis, cost } = row
  if (id === null || accountId === null || keyId === null || model === null || capability === null) return undefined
  if (basis === null || cost === null || row.request_status === null || row.requested_at === null) return undefined
  return {
    id,
    accountId,
    keyId,
    model,
    capability,
    status: row.request_status,
    basis,
    cost,
    createdAt: row.requested_at,
    holdId: row.hold_id,
    priceVersion: row.price_version,
  }
}

/** The vendor to which the newest call of this upstream model went, if it was ever called. */
export async function vendorOfModel(db: Queries, upstreamModel: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('attempt')
    .select('vendor')
    .where('upstream_model', '=', upstreamModel)
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.vendor
}

/** All open leases and request holds: a call on one may be under way, or known only to the journal of a dead node. */
export type OpenLeasesAndHolds = {
  readonly leases: readonly {
    readonly node: string
    readonly accountId: string
    readonly amount: Nano
    /** When the node last spoke to the database, in unix milliseconds. */
    readonly seenAt: number
  }[]
  readonly holds: readonly {
    readonly id: string
    readonly node: string
    readonly accountId: string
    readonly amount: Nano
    readonly createdAt: number
  }[]
}

export async function openLeasesAndHolds(db: Queries): Promise<OpenLeasesAndHolds> {
  const leases = await db
    .selectFrom('lease')
    .innerJoin('node', 'node.id', 'lease.node')
    .select(['lease.node', 'lease.account_id', 'lease.amount', 'node.seen_at'])
    .where('lease.amount', '>', zeroNano)
    .orderBy('lease.node')
    .orderBy('lease.account_id')
    .execute()
  const holds = await db
    .selectFrom('hold')
    .select(['id', 'node', 'account_id', 'amount', 'created_at'])
    .where('state', '=', 'open')
    .where('kind', '=', 'request')
    .orderBy('created_at')
    .execute()
  return {
    leases: leases.map(({ node, account_id: accountId, amount, seen_at: seenAt }) => ({
      node,
      accountId,
      amount,
      seenAt,
    })),
    holds: holds.map(({ id, node, account_id: accountId, amount, created_at: createdAt }) => ({
      id,
      node,
      accountId,
      amount,
      createdAt,
    })),
  }
}
