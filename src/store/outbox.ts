import { type ExpressionBuilder, type SqlBool, sql } from 'kysely'
import { newOrderedId } from '../base/ids.ts'
import type { Store } from './open.ts'
import type { Mode, Queries, Schema } from './schema.ts'

/** One account's events to one host: what a receiver does wrong falls back on whoever named it, and on nobody else. */
export type Lane = { readonly accountId: string; readonly host: string }

export type WaitingEvent = Lane & { readonly id: string }

/** What is not worth looking for now. */
export type PassOver = {
  readonly hosts: readonly string[]
  readonly lanes: readonly Lane[]
  /** Accounts of which only the lanes in `proven` may be served; `all`: of every account. */
  readonly unproven: 'all' | readonly string[]
  readonly proven: readonly Lane[]
}

/** Events whose time has come and that nobody has claimed, the longest due first. Only looked at: see `claimEvents`. */
export async function dueEvents(
  db: Queries,
  due: { readonly mode: Mode; readonly now: number; readonly limit: number; readonly except: PassOver },
): Promise<WaitingEvent[]> {
  const { hosts, lanes, unproven, proven } = due.except
  let query = db
    .selectFrom('webhook_event')
    .select(['id', 'account_id', 'host'])
    .where((eb) => isFree(eb, due.now))
    .where(isOfMode(due.mode))
    .orderBy('next_at')
    .limit(due.limit)
  if (hosts.length > 0) query = query.where('host', 'not in', hosts)
  if (lanes.length > 0) query = query.where((eb) => eb.not(isAmong(eb, lanes)))
  if (unproven.length > 0) {
    query = query.where((eb) =>
      eb.or([
        ...(unproven === 'all' ? [] : [eb('account_id', 'not in', unproven)]),
        ...(proven.length === 0 ? [] : [isAmong(eb, proven)]),
      ]),
    )
  }
  const rows = await query.execute()
  return rows.map(({ id, account_id: accountId, host }) => ({ id, accountId, host }))
}

/** Whether any event, of any node, is still to be sent, now or later. */
export async function hasWaitingEvents(db: Queries, mode: Mode): Promise<boolean> {
  const waiting = db.selectFrom('webhook_event').select('id').where('next_at', 'is not', null).where(isOfMode(mode))
  return (await waiting.limit(1).execute()).length > 0
}

/** How many events are to be sent, now or later, of all nodes, and since when the first of them might have been. */
export async function countWaitingEvents(
  db: Queries,
  { now, mode }: { readonly now: number; readonly mode: Mode },
): Promise<{ readonly count: number; readonly dueAt: number | null }> {
  const { rows, next_at: dueAt } = await db
    .selectFrom('webhook_event')
    .select((eb) => eb.fn.countAll<number>().as('rows'))
    .select((eb) => sql<number | null>`min(case when ${isFree(eb, now)} then next_at end)`.as('next_at'))
    .where('next_at', 'is not', null)
    .where(isOfMode(mode))
    .executeTakeFirstOrThrow()
  return { count: rows, dueAt }
}

type Builder = ExpressionBuilder<Schema, 'webhook_event'>

function isFree(eb: Builder, now: number) {
  return eb.and([eb('next_at', '<=', now), eb.or([eb('claim_until', 'is', null), eb('claim_until', '<=', now)])])
}

/** What the other mode has promised is checked by other rules, and delivered when it runs again. */
export function isOfMode(mode: Mode) {
  return sql<SqlBool>`exists (select 1 from account
    where account.id = webhook_event.account_id and account.mode = ${mode})`
}

function isAmong(eb: Builder, lanes: readonly Lane[]) {
  const tuples = lanes.map(({ accountId, host }) => eb.tuple(accountId, host))
  return eb(eb.refTuple('account_id', 'host'), 'in', tuples)
}

/** An event in the hands of one node, until its claim runs out. */
export type ClaimedEvent = WaitingEvent & {
  readonly url: string
  /** The very bytes to be sent. */
  readonly payload: string
  /** Made already: since the task ended, or since it was last sent by hand. */
  readonly attempts: number
  readonly claim: Claim
}

export type Claim = { readonly owner: string; readonly until: number }

/**
 * Claims what is still free of these. A claim that has run out is nobody's: whoever comes next carries on, and nothing has
 * to be cleaned up behind a node that died.
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
      // What another node claims at this moment is not waited for. SQLite has one writer, and no word for it.
      .where('id', 'in', store.engine === 'postgres' ? free.forUpdate().skipLocked() : free)
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
  /** As answered; 0 where no answer came. */
  readonly status: number
  /** Why there was none. */
  readonly why: string | null
  /** How an answer that was not a yes begins. */
  readonly excerpt: string | null
}

/** What follows from an attempt: an end, or another one. */
export type Next =
  | { readonly state: 'delivered' | 'gone' | 'given-up' }
  | { readonly state: 'pending'; readonly nextAt: number }

/**
 * Keeps an attempt, always, and what follows from it. A failure counts only under its own claim, so that a late one does
 * not put off what another node is doing; an answer that ends the event counts from anybody.
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
        claim_owner: null,
        claim_until: null,
      }))
      .where('id', '=', event.id)
      .where('state', '=', 'pending')
    await (isFailure ? update.where((eb) => isMine(eb, event.claim)) : update).execute()
  })
}

/** A claim that came to nothing: the next one need not wait for its end. */
export async function releaseClaim(db: Queries, { id, claim }: Pick<ClaimedEvent, 'id' | 'claim'>): Promise<void> {
  await db
    .updateTable('webhook_event')
    .set({ claim_owner: null, claim_until: null })
    .where('id', '=', id)
    .where((eb) => isMine(eb, claim))
    .execute()
}

/**
 * At the start of a node: what its last process was delivering arrived or not, and is sent again. So is what nobody puts off for
 * so long: a clock that was far ahead did that, and was put right while nobody could notice.
 */
export async function releaseClaimsOf(
  db: Queries,
  { owner, now, putOffMsMax }: { readonly owner: string; readonly now: number; readonly putOffMsMax: number },
): Promise<void> {
  await db
    .updateTable('webhook_event')
    .set({ claim_owner: null, claim_until: null })
    .where('claim_owner', '=', owner)
    .where('next_at', 'is not', null)
    .execute()
  await db
    .updateTable('webhook_event')
    .set({ next_at: now })
    .where('next_at', '>', now + putOffMsMax)
    .execute()
}

/** Where the clock was set back: what nobody has on its way is to be sent by as much earlier. */
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

/** Gives up what is old and has long been waiting for its turn; what is on its way just now is not. Says how many. */
export async function giveUpOverdue(
  db: Queries,
  overdue: { readonly mode: Mode; readonly now: number; readonly madeBefore: number; readonly dueBefore: number },
): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('webhook_event')
    .set({ state: 'given-up', next_at: null, claim_owner: null, claim_until: null })
    .where((eb) => isFree(eb, overdue.now))
    .where(isOfMode(overdue.mode))
    .where('next_at', '<', overdue.dueBefore)
    .where('created_at', '<', overdue.madeBefore)
    .executeTakeFirst()
  return Number(numUpdatedRows)
}
