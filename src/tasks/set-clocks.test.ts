import { expect, test } from 'bun:test'
import { until } from '../../test/support/gateway.ts'
import { putAccount, putEvent } from '../../test/support/outbox.ts'
import { startReceiver } from '../../test/support/receiver.ts'
import { put } from '../../test/support/stored-tasks.ts'
import { makeTaskWorld, requestsOf, taskSuite } from '../../test/support/tasks.ts'
import { systemClock } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { openStore } from '../store/open.ts'
import { openWebhooks } from './webhooks/webhooks.ts'

const minute = 60_000

taskSuite('video tasks and clocks that are changed', ({ within }) => {
  test('a clock that is set back delays neither a due poll nor one that waits for a claim to expire', () =>
    within(async ({ store, vendor, world }) => {
      const [task, lookedAt] = [await world.order(), await world.order()]
      await world.pass(minute)
      // The claim that a failed poll leaves behind.
      await put(store, lookedAt.id, { claim_owner: 'node_a', claim_until: world.clock.now() + minute })
      world.clock.setBack(60 * minute)
      vendor.become('done')
      await world.pass(minute / 2)
      expect(await world.task(task.id)).toMatchObject({ state: 'succeeded' })
      expect(await world.task(lookedAt.id)).toMatchObject({ state: 'submitted' })
      await world.pass(minute)
      expect(await world.task(lookedAt.id)).toMatchObject({ state: 'succeeded' })
      for (const { duration_ms: ms } of await requestsOf(store)) expect(ms).toBeGreaterThanOrEqual(0)
    }))

  test('a clock that was days ahead and is corrected between two starts delays no poll', () =>
    within(async ({ store, vendor, world }) => {
      world.clock.setBack(-30 * 24 * 60 * minute)
      const { id } = await world.order()
      await world.tasks.close()
      const next = makeTaskWorld(store, { first: vendor })
      vendor.become('done')
      await next.tasks.idle()
      await next.pass(0)
      expect(await next.task(id)).toMatchObject({ state: 'succeeded' })
      await next.close()
    }))
})

test('a start sends webhooks that the last process was sending, or that a clock far ahead had put off', async () => {
  const receiver = await startReceiver()
  const store = await openStore({ file: ':memory:' })
  const accountId = await putAccount(store)
  const change = async (values: { claim_owner?: string; claim_until?: number; next_at?: number }) => {
    const id = await putEvent(store, accountId, { url: receiver.url() })
    await store.db.updateTable('webhook_event').set(values).where('id', '=', id).execute()
  }
  await change({ claim_owner: 'node_a', claim_until: store.now() + minute })
  await change({ next_at: store.now() + 30 * 24 * 60 * minute })
  const parts = { mode: 'sandbox', node: 'node_a', secret: Buffer.alloc(32, 'x') } as const
  const settings = { allowPrivate: false }
  const webhooks = openWebhooks({ ...parts, settings, store, clock: systemClock, log: silentLog })
  await until(() => receiver.received.length === 2)
  await webhooks.close({ withinMs: 1_000 })
  await store.close()
  receiver.close()
})
