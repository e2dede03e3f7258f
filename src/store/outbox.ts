import { type ExpressionBuilder, type SqlBool, sql } from 'kysely'
import { newOrderedId } from '../base/ids.ts'
import { lockedIfFree } from './locks.ts'
import { isOfMode } from './mode.ts'
import type { Store } from './open.ts'
import type { Mode, Queries, Schema, Tx } from './schema.ts'
import { type Claim, unclaimed } from './task-schema.ts'

export type NewEvent = {
  readonly id: string
  readonly accountId: string
  readonly taskId: string
  readonly url: string
  readonly payload: string
}

/** Puts an event into the outbox, in the commit that ends its task: neither is ever there without the other. */
export async function addEventIn(tx: Tx, event: NewEvent, now: number): Promise<void> {
  await tx
    .insertInto('webhook_event')
    .values({
      id: event.id,
      account_id: event.accountId,
      task_id: event.taskId,
      url: event.url,
      host: new URL(event.url).host,
      payload: event.payload,
      state: 'pending',
      attempts: 0,
      next_at: now,
      ...unclaimed,
      created_at: now,
    })
    .execute()
}

/** One account's events to one host. A receiver that misbehaves affects only the account that named it. */
export type Lane = { readonly accountId: string; readonly host: string }

export type WaitingEvent = Lane & { readonly id: string }

/** Events that could not be sent now, so that they are not looked for. */
export type PassOver = {
  readonly hosts: readonly string[]
  readonly lanes: readonly Lane[]
  /** Accounts of which only the lanes in `proven` may be served; `all` stands for every account. */
  readonly unproven: 'all' | readonly string[]
  readonly proven: readonly Lane[]
}

/**
 * Due events that no node has claimed, the longest due first. Reading them claims nothing; see `claimEvents`. Events of
 * the other mode are checked by other rules, and delivered when that mode runs again.
 */
export async function dueEvents(
  db: Queries,
  due: { readonly mode: Mode; readonly now: number; readonly limit: number; readonly except: PassOver },
): Promise<WaitingEvent[]> {
  const { hosts, lanes, unproven, proven } = due.except
  let query = db
    .selectFrom('webhook_event')
    .select(['id', 'account_id', 'host'])
    .where((eb) => isFree(eb, due.now))
    .where(isOfMode('webhook_event', due.mode))
    .orderBy('next_at')
    .limit(due.limit)
  if (hosts.length > 0) query = query.where('host', 'not in', hosts)
  if (lanes.length > 0) query = query.where((eb) => eb.not(isAmong(lanes)))
  if (unproven.length > 0) {
    query = query.where((eb) =>
      eb.or([
        ...(unproven === 'all' ? [] : [eb('account_id', 'not in', unproven)]),
        ...(proven.length === 0 ? [] : [isAmong(proven)]),
      ]),
    )
  }
  const rows = await query.execute()
  return rows.map(({ id, account_id: accountId, host }) => ({ id, accountId, host }))
}

/** Whether any event is still to be sent, now or later, by any node. */
export async function hasWaitingEvents(db: Queries, mode: Mode): Promise<boolean> {
  const waiting = db
    .selectFrom('webhook_event')
    .select('id')
    .where('next_at', 'is not', null)
    .where(isOfMode('webhook_event', mode))
  return (await waiting.limit(1).execute()).length > 0
}

/** How many events any node has still to send, now or later, and since when the longest waiting one has been due. */
export async function countWaitingEvents(
  db: Queries,
  { now, mode }: { readonly now: number; readonly mode: Mode },
): Promise<{ readonly count: number; readonly dueAt: number | null }> {
  const { rows, next_at: dueAt } = await db
    .selectFrom('webhook_event')
    .select((eb) => eb.fn.countAll<number>().as('rows'))
    .select((eb) => sql<number | null>`min(case when ${isFree(eb, now)} then next_at end)`.as('next_at'))
    .where('next_at', 'is not', null)
    .where(isOfMode('webhook_event', mode))
    .executeTakeFirstOrThrow()
  return { count: rows, dueAt }
}

type Builder = ExpressionBuilder<Schema, 'webhook_event'>

function isFree(eb: Builder, now: number) {
  return eb.and([eb('next_at', '<=', now), eb.or([eb('claim_until', 'is', null), eb('claim_until', '<=', now)])])
}

/** Compares one text per lane, which both engines look up in a table; PostgreSQL would try pairs one after another. */
function isAmong(lanes: readonly Lane[]) {
  const names = lanes.map(({ accountId, host }) => `${accountId} ${host}`)
  return sql<SqlBool>`account_id || ' ' || host in (${sql.join(names)})`
}

/** An event that one node has claimed, until the claim expires. */
export type ClaimedEvent = WaitingEvent & {
  readonly url: string
  /** The exact bytes to send. */
  readonly payload: string
  /** Attempts already made since the task ended, or since the event was last resent by hand. */
  readonly attempts: number
  readonly claim: Claim
}

/**
 * Claims those of the given events that are still free. An expired claim belongs to no node: the next one carries on,
 * and nothing has to be cleaned up after a node that died.
 */
export async function claimEvents(
  store: Store,
  claim: Claim & { readonly ids: readonly string[]; readonly now: number },
): Promise<ClaimedEvent[]> {
  const { ids, now, owner, until } = claim
  if (ids.length === 0) return []
  return store.transaction(async (tx) => {
    const free = tx
      .selectFrom('webhook_event')
      .select('id')
      .where('id', 'in', ids)
      .where((eb) => isFree(eb, now))
    const rows = await tx
      .updateTable('webhook_event')
      .set({ claim_owner: owner, claim_until: until })
      .where('id', 'in', lockedIfFree(tx, free))
      .returningAll()
      .execute()
    return rows.map((row) => ({
      id: row.id,
      accountId: row.account_id,
      host: row.host,
      url: row.url,
      payload: row.payload,
      attempts: row.attempts,
      claim: { owner, until },
    }))
  })
}

export type WebhookAttempt = {
  readonly at: number
  readonly durationMs: number
  /** The receiver's HTTP status; 0 where no answer came. */
  readonly status: number
  /** Why no answer came. */
  readonly why: string | null
  /** The beginning of an answer that was not a success. */
  readonly excerpt: string | null
}

/** What follows from an attempt: a final state, or another attempt. */
export type Next =
  | { readonly state: 'delivered' | 'gone' | 'given-up' }
  | { readonly state: 'pending'; readonly nextAt: number }

/**
 * Always records the attempt, and then what follows from it. A failure counts only under its own claim, so that a late
 * one does not put off what another node is doing; an answer that ends the event counts from any node.
 */
export async function endAttempt(
  store: Store,
  event: ClaimedEvent,
  attempt: WebhookAttempt,
  next: Next,
): Promise<void> {
  await store.transaction(async (tx) => {
    await tx
      .insertInto('webhook_attempt')
      .values({
        id: newOrderedId('wha', attempt.at),
        event_id: event.id,
        status: attempt.status,
        why: attempt.why,
        excerpt: attempt.excerpt,
        duration_ms: attempt.durationMs,
        created_at: attempt.at,
      })
      .execute()
    const isFailure = next.state === 'pending' || next.state === 'given-up'
    const update = tx
      .updateTable('webhook_event')
      .set((eb) => ({
        attempts: eb('attempts', '+', 1),
        state: next.state,
        next_at: next.state === 'pending' ? next.nextAt : null,
        ...unclaimed,
      }))
      .where('id', '=', event.id)
      .where('state', '=', 'pending')
    await (isFailure ? update.where((eb) => isMine(eb, event.claim)) : update).execute()
  })
}

/** Gives up a claim without an attempt, so that the next claim need not wait until it expires. */
export async function releaseClaim(db: Queries, { id, claim }: Pick<ClaimedEvent, 'id' | 'claim'>): Promise<void> {
  await db
    .updateTable('webhook_event')
    .set(unclaimed)
    .where('id', '=', id)
    .where((eb) => isMine(eb, claim))
    .execute()
}

/**
 * Called when a node starts: what its last process was delivering may not have arrived, and is sent again. Events that
 * are put off further than any schedule allows become due now: a clock that was far ahead scheduled them, and was
 * corrected while no node was there to notice.
 */
export async function releaseClaimsOf(
  db: Queries,
  { owner, now, putOffMsMax }: { readonly owner: string; readonly now: number; readonly putOffMsMax: number },
): Promise<void> {
  await db
    .updateTable('webhook_event')
    .set(unclaimed)
    .where('claim_owner', '=', owner)
    .where('next_at', 'is not', null)
    .execute()
  await db
    .updateTable('webhook_event')
    .set({ next_at: now })
    .where('next_at', '>', now + putOffMsMax)
    .execute()
}

/** After the clock was set back by `ms`: events that no node is sending become due earlier by as much. */
export async function bringForward(
  db: Queries,
  { now, ms }: { readonly now: number; readonly ms: number },
): Promise<void> {
  await db
    .updateTable('webhook_event')
    .set({ next_at: sql<number>`next_at - cast(${ms} as bigint)` })
    .where('next_at', '>', now)
    .where('claim_owner', 'is', null)
    .execute()
}

function isMine(eb: Builder, { owner, until }: Claim) {
  return eb.and([eb('claim_owner', '=', owner), eb('claim_until', '=', until)])
}

/** Gives up old events that have long been due, but none that is being sent just now. Gives how many. */
export async function giveUpOverdue(
  db: Queries,
  overdue: { readonly mode: Mode; readonly now: number; readonly madeBefore: number; readonly dueBefore: number },
): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('webhook_event')
    .set({ state: 'given-up', next_at: null, ...unclaimed })
    .where((eb) => isFree(eb, overdue.now))
    .where(isOfMode('webhook_event', overdue.mode))
    .where('next_at', '<', overdue.dueBefore)
    .where('created_at', '<', overdue.madeBefore)
    .executeTakeFirst()
  return Number(numUpdatedRows)
}
