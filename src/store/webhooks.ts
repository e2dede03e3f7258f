import type { Selectable } from 'kysely'
import { type Actor, recordChange } from './audit.ts'
import { isOfMode } from './mode.ts'
import type { Store } from './open.ts'
import type { WebhookAttempt } from './outbox.ts'
import { isBehind, type PageEnd } from './pages.ts'
import type { Mode, Queries, Scope } from './schema.ts'
import { unclaimed, type WebhookEventState, type WebhookEventTable } from './task-schema.ts'

/** An event as operators see it. */
export type WebhookEvent = {
  readonly id: string
  readonly accountId: string
  readonly taskId: string
  readonly url: string
  readonly payload: string
  readonly state: WebhookEventState
  /** Attempts since the task ended, or since the event was last resent by hand. */
  readonly attempts: number
  /** When it is tried next, if at all. */
  readonly nextAt: number | null
  readonly createdAt: number
}

export type EventFilter = {
  readonly scope: Scope
  /** Of the events of every account, only those in this mode; one account may be of either. */
  readonly mode: Mode
  readonly state?: WebhookEventState | undefined
  readonly taskId?: string | undefined
  /** Unix milliseconds, inclusive. */
  readonly from?: number | undefined
  /** Exclusive. */
  readonly to?: number | undefined
}

/** Newest first; `before` is the last event of the page before. */
export async function listEvents(
  db: Queries,
  filter: EventFilter,
  page: { readonly limit: number; readonly before?: PageEnd },
): Promise<WebhookEvent[]> {
  const { scope, state, taskId, from, to } = filter
  const { before } = page
  let query = db
    .selectFrom('webhook_event')
    .selectAll()
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit)
  if (scope === 'every-account') query = query.where(isOfMode('webhook_event', filter.mode))
  else query = query.where('account_id', '=', scope.accountId)
  if (state !== undefined) query = query.where('state', '=', state)
  if (taskId !== undefined) query = query.where('task_id', '=', taskId)
  if (from !== undefined) query = query.where('created_at', '>=', from)
  if (to !== undefined) query = query.where('created_at', '<', to)
  if (before !== undefined) query = query.where(isBehind(before))
  return (await query.execute()).map(toEvent)
}

export async function eventById(db: Queries, id: string): Promise<WebhookEvent | undefined> {
  const row = await db.selectFrom('webhook_event').selectAll().where('id', '=', id).executeTakeFirst()
  return row && toEvent(row)
}

/** Every attempt at these events, the oldest first. */
export async function attemptsOfEvents(
  db: Queries,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly WebhookAttempt[]>> {
  const found = new Map<string, WebhookAttempt[]>(ids.map((id) => [id, []]))
  if (ids.length === 0) return found
  const rows = await db
    .selectFrom('webhook_attempt')
    .selectAll()
    .where('event_id', 'in', ids)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  for (const { event_id: id, status, why, excerpt, duration_ms: durationMs, created_at: at } of rows) {
    found.get(id)?.push({ at, durationMs, status, why, excerpt })
  }
  return found
}

/**
 * Sends an event once more, whatever became of it, under the same id and from the beginning of its schedule. One that
 * is being sent at this moment is sent a second time beside it, and a failure of the first no longer counts. Gives
 * undefined for an unknown id.
 */
export async function resendEvent(
  store: Store,
  resend: { readonly id: string; readonly actor: Actor },
): Promise<WebhookEvent | undefined> {
  return store.transaction(async (tx) => {
    const now = store.now()
    const before = await eventById(tx, resend.id)
    const row = await tx
      .updateTable('webhook_event')
      .set({ state: 'pending', attempts: 0, next_at: now, ...unclaimed })
      .where('id', '=', resend.id)
      .returningAll()
      .executeTakeFirst()
    if (before === undefined || row === undefined) return undefined
    await recordChange(tx, {
      at: now,
      actor: resend.actor,
      action: 'webhook.resend',
      subject: resend.id,
      detail: { account: row.account_id, task: row.task_id, was: before.state },
    })
    return toEvent(row)
  })
}

function toEvent(row: Selectable<WebhookEventTable>): WebhookEvent {
  return {
    id: row.id,
    accountId: row.account_id,
    taskId: row.task_id,
    url: row.url,
    payload: row.payload,
    state: row.state,
    attempts: row.attempts,
    nextAt: row.next_at,
    createdAt: row.created_at,
  }
}
