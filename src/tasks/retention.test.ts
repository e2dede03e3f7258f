import { expect, test } from 'bun:test'
import { checkLedger } from '../store/check.ts'
import { claimEvents, endAttempt } from '../store/outbox.ts'
import type { Store } from '../store/open.ts'
import { dropOldTasks } from '../store/task-retention.ts'
import { attemptsOf, eventsOf, keepDays, requestsOf, taskSuite } from '../../test/support/tasks.ts'

const minute = 60_000
const day = 24 * 60 * minute
const webhookUrl = 'https://customer.example/hook'

const idsOf = async (store: Store) => {
  const rows = await store.db.selectFrom('task').select('id').orderBy('created_at').execute()
  return rows.map(({ id }) => id)
}
const countOf = async (store: Store, table: 'webhook_event' | 'webhook_attempt') =>
  (await store.db.selectFrom(table).select('id').execute()).length

/** Delivers the pending events. */
async function deliver(store: Store, now: number) {
  const ids = (await eventsOf(store)).filter(({ state }) => state === 'pending').map(({ id }) => id)
  const attempt = { at: now, durationMs: 1, status: 200, why: null, excerpt: null }
  for (const event of await claimEvents(store, { ids, now, owner: 'node_a', until: now + minute })) {
    await endAttempt(store, event, attempt, { state: 'delivered' })
  }
}

taskSuite('tasks that ended long ago', ({ within }) => {
  test('old tasks are dropped with their events and deliveries, and their requests stay', () =>
    within(async ({ store, vendor, world }) => {
      const old = await world.order({ webhookUrl })
      vendor.become('done')
      await world.pass(minute)
      await deliver(store, world.clock.now())
      await world.pass((keepDays - 1) * day)
      expect(await idsOf(store)).toEqual([old.id])
      const younger = await world.order({ webhookUrl })
      vendor.become('failed')
      await world.pass(minute)
      await deliver(store, world.clock.now())
      await world.pass(2 * day)
      expect(await idsOf(store)).toEqual([younger.id])
      expect([await countOf(store, 'webhook_event'), await countOf(store, 'webhook_attempt')]).toEqual([1, 1])
      expect([(await requestsOf(store)).length, (await attemptsOf(store)).length]).toEqual([2, 2])
      expect(await checkLedger(store)).toEqual([])
    }))

  test('old tasks stay while they are polled or have an undelivered event', () =>
    within(async ({ store, vendor, world }) => {
      const untold = await world.order({ webhookUrl })
      world.clock.advance(1)
      const watched = await world.order()
      vendor.become('failed')
      await world.pass(minute)
      await store.db.updateTable('task').set({ next_poll_at: 1 }).where('id', '=', watched.id).execute()
      const endedBefore = world.clock.now() + keepDays * day
      const drop = () => dropOldTasks(store, { endedBefore, mode: 'sandbox', limit: 100 })
      expect(await drop()).toBe(0)
      expect(await idsOf(store)).toEqual([untold.id, watched.id])
      await deliver(store, world.clock.now())
      await store.db.updateTable('task').set({ next_poll_at: null }).execute()
      expect(await dropOldTasks(store, { endedBefore, mode: 'real', limit: 100 })).toBe(0)
      expect(await dropOldTasks(store, { endedBefore, mode: 'sandbox', limit: 1 })).toBe(1)
      expect(await idsOf(store)).toEqual([watched.id])
      expect(await drop()).toBe(1)
      expect(await idsOf(store)).toEqual([])
    }))

  test('a task that is not over is never dropped', () =>
    within(async ({ store, world }) => {
      const { id } = await world.order()
      const endedBefore = world.clock.now() + 10 * keepDays * day
      expect(await dropOldTasks(store, { endedBefore, mode: 'sandbox', limit: 100 })).toBe(0)
      expect(await idsOf(store)).toEqual([id])
    }))
})
