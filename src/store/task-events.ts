import type { Tx } from './schema.ts'
import { unclaimed } from './task-schema.ts'

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
