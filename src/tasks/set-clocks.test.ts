import { expect, test } from 'bun:test'
import { put } from '../../test/support/stored-tasks.ts'
import { makeTaskWorld, requestsOf, taskSuite } from '../../test/support/tasks.ts'

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
