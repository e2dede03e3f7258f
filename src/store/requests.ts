import type { Nano } from '../base/money.ts'
import type { Capability } from '../capabilities/capability.ts'
import type { Usage } from '../capabilities/usage.ts'
import { json } from './rows.ts'
import type { Basis, Queries } from './schema.ts'
import type { Write } from './writes.ts'

/** What is kept of a request; never its content. */
export type RequestRecord = {
  /** The `x-request-id` of the answer. */
  readonly id: string
  readonly keyId: string
  readonly model: string
  readonly capability: Capability
  /** As answered to the client. */
  readonly status: number
  readonly streamed: boolean
  readonly durationMs: number
  readonly createdAt: number
}

export type AttemptRecord = {
  /** Sent to the vendor as our reference, so that its bill can be matched. */
  readonly id: string
  readonly channel: string
  readonly vendor: string
  readonly upstreamModel: string
  /** As answered by the vendor; 0 where no answer came. */
  readonly status: number
  readonly vendorCost: Nano
  /** Whether the client got what this attempt made. Only then is its cost a cost of sales; otherwise it is our loss. */
  readonly delivered: boolean
  readonly createdAt: number
}

export type Charged = {
  readonly cost: Nano
  readonly basis: Basis
  readonly usage: Usage | null
  /** Absent on requests that are always free. */
  readonly holdId?: string
}

/**
 * A task's request is recorded when it is accepted and again when it ends, since its cost is known only then: the later
 * record completes the earlier one of the same account.
 */
export function requestRecordWrite(db: Queries, accountId: string, request: RequestRecord, charged: Charged): Write {
  return db
    .insertInto('request')
    .values(requestRow(accountId, request, charged))
    .onConflict((conflict) =>
      conflict
        .column('id')
        .doUpdateSet((eb) => ({
          status: eb.ref('excluded.status'),
          cost: eb.ref('excluded.cost'),
          basis: eb.ref('excluded.basis'),
          usage: eb.ref('excluded.usage'),
          duration_ms: eb.ref('excluded.duration_ms'),
          hold_id: eb.ref('excluded.hold_id'),
        }))
        .where('request.account_id', '=', accountId),
    )
}

export function requestRow(accountId: string, request: RequestRecord, charged: Charged) {
  return {
    id: request.id,
    account_id: accountId,
    key_id: request.keyId,
    model: request.model,
    capability: request.capability,
    status: request.status,
    cost: charged.cost,
    basis: charged.basis,
    usage: json(charged.usage),
    streamed: request.streamed,
    duration_ms: request.durationMs,
    created_at: request.createdAt,
    hold_id: charged.holdId ?? null,
  }
}

/** When a recorded request arrived, by the clock of the node that took it: it counts in that hour and day. */
export async function requestedAt(db: Queries, id: string): Promise<number> {
  const row = await db.selectFrom('request').select('created_at').where('id', '=', id).executeTakeFirstOrThrow()
  return row.created_at
}

export function attemptRecordWrites(db: Queries, requestId: string, attempts: readonly AttemptRecord[]): Write[] {
  return attempts.length === 0 ? [] : [db.insertInto('attempt').values(attemptRows(requestId, attempts))]
}

export function attemptRows(requestId: string, attempts: readonly AttemptRecord[]) {
  return attempts.map((attempt) => ({
    id: attempt.id,
    request_id: requestId,
    channel: attempt.channel,
    vendor: attempt.vendor,
    upstream_model: attempt.upstreamModel,
    status: attempt.status,
    vendor_cost: attempt.vendorCost,
    delivered: attempt.delivered,
    created_at: attempt.createdAt,
    recorded_cost: null,
  }))
}
