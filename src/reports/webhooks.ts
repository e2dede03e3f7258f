import { unixSeconds, unixSecondsOrNull } from '../base/moment.ts'
import type { WebhookAttempt } from '../store/outbox.ts'
import type { Queries } from '../store/schema.ts'
import type { WebhookEventState } from '../store/task-schema.ts'
import { attemptsOfEvents, eventById, listEvents, type EventFilter, type WebhookEvent } from '../store/webhooks.ts'
import { checkPeriod, type Page, type PageAsked, pageOf, rowsFor } from './query.ts'

/** The states as the API writes them. */
export const eventStates = ['pending', 'delivered', 'gone', 'given_up'] as const
export type ShownState = (typeof eventStates)[number]

export function storedState(state: ShownState): WebhookEventState {
  return state === 'given_up' ? 'given-up' : state
}

/** Events of tasks with all delivery attempts, newest first. `after` is the id of the last one of the previous page. */
export async function reportWebhooks(db: Queries, filter: EventFilter, page: PageAsked): Promise<Page<ShownEvent>> {
  checkPeriod(filter)
  const events = await listEvents(db, filter, await rowsFor(page, 'event', (id) => eventById(db, id)))
  const attempts = await attemptsOfEvents(
    db,
    events.map(({ id }) => id),
  )
  return pageOf(
    events,
    page.limit,
    (event) => showEvent(event, attempts.get(event.id) ?? []),
    ({ id }) => id,
  )
}

export async function reportWebhook(db: Queries, event: WebhookEvent): Promise<ShownEvent> {
  return showEvent(event, (await attemptsOfEvents(db, [event.id])).get(event.id) ?? [])
}

export type ShownEvent = ReturnType<typeof showEvent>

function showEvent(event: WebhookEvent, attempts: readonly WebhookAttempt[]) {
  return {
    id: event.id,
    type: typeOf(event.payload),
    account: event.accountId,
    task: event.taskId,
    url: withoutQuery(event.url),
    state: event.state === 'given-up' ? 'given_up' : event.state,
    next_attempt_at: unixSecondsOrNull(event.nextAt),
    created_at: unixSeconds(event.createdAt),
    attempts: attempts.map(({ at, status, why, excerpt, durationMs }) => ({
      created_at: unixSeconds(at),
      status: status === 0 ? null : status,
      error: why,
      excerpt,
      duration_ms: durationMs,
    })),
  }
}

function typeOf(payload: string): string {
  const { type } = JSON.parse(payload) as { type?: unknown }
  return typeof type === 'string' ? type : ''
}

/** Some receivers take a token in the query of their address: it is the customer's, so operators do not see it. */
function withoutQuery(url: string): string {
  const { origin, pathname, search } = new URL(url)
  return `${origin}${pathname}${search === '' ? '' : '?…'}`
}
