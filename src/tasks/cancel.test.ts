import { expect, test } from 'bun:test'
import { dollars, eventsOf, held, moneyOf, taskSuite } from '../../test/support/tasks.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { nano } from '../base/money.ts'

taskSuite('cancelling a video task', ({ begin, within }) => {
  test('a waiting task is cancelled once, costs nothing and makes one event', () =>
    within(async ({ store, vendor, world }) => {
      const task = await world.order({ webhookUrl: 'https://customer.example/hook' })
      await world.pass(60_000)
      expect(await world.tasks.cancel(task)).toMatchObject({ state: 'cancelled' })
      expect(vendor.calls.map(({ method }) => method)).toEqual(['POST', 'GET', 'DELETE', 'GET'])
      expect(vendor.refs).toEqual(new Set([task.attemptId]))
      expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n)), held: nano(0n) })
      expect(await eventsOf(store)).toHaveLength(1)
      expect(await thrownBy(world.tasks.cancel(await world.task(task.id)))).toMatchObject({
        details: { code: 'not_cancellable', shouldRetry: false },
      })
    }))

  test('a running task cannot be cancelled, and nothing changes', () =>
    within(async ({ store, vendor, world }) => {
      const task = await world.order()
      vendor.become('running')
      expect(await thrownBy(world.tasks.cancel(task))).toMatchObject({ details: { code: 'not_cancellable' } })
      expect((await moneyOf(store)).held).toBe(held)
      expect((await world.task(task.id)).state).toBe('submitted')
    }))

  test('a task whose channel is not configured at the moment can be cancelled later', () =>
    within(async ({ store, world }) => {
      const task = await world.order()
      expect(await thrownBy(world.tasks.cancel({ ...task, channel: 'removed' }))).toMatchObject({
        kind: 'overloaded',
        details: { retryAfterSeconds: 5 },
      })
      expect((await moneyOf(store)).held).toBe(held)
      expect(await world.tasks.cancel(task)).toMatchObject({ state: 'cancelled' })
    }))

  test.each([
    ['cancelled', { state: 'cancelled' }],
    ['failed', { kind: 'conflict', details: { code: 'not_cancellable' } }],
  ])('a cancellation after which another node is first to see the task %s tells that end', async (word, told) => {
    const { store, vendor, world } = await begin({
      transport: {
        async send(...call) {
          const sent = await vendor.transport.send(...call)
          if (call[0].method === 'DELETE') await seenElsewhere()
          return sent
        },
      },
    })
    const seenElsewhere = async () => {
      vendor.become(word)
      world.clock.advance(60_000)
      const other = world.node('node_b')
      await other.turn()
      await other.idle()
    }
    const task = await world.order({ webhookUrl: 'https://customer.example/hook' })
    expect(await world.tasks.cancel(task).catch((thrown: unknown) => thrown)).toMatchObject(told)
    expect(await world.task(task.id)).toMatchObject({ state: word })
    expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n)), held: nano(0n) })
    expect(await eventsOf(store)).toHaveLength(1)
    await world.close()
  })

  test.each([
    [0, { kind: 'upstream-failed' }],
    [401, { kind: 'upstream-failed' }],
    [429, { kind: 'too-many' }],
    [500, { kind: 'upstream-failed' }],
    [403, { kind: 'conflict', details: { code: 'not_cancellable' } }],
  ])('a vendor that answers a cancellation with %d changes nothing, and a later one is sent', (status, error) =>
    within(async ({ store, vendor, world }) => {
      const task = await world.order()
      vendor.cancellations.push(status)
      expect(await thrownBy(world.tasks.cancel(task))).toMatchObject(error)
      expect((await moneyOf(store)).held).toBe(held)
      expect((await world.task(task.id)).state).toBe('submitted')
      // Until then a credential that was refused rests.
      world.clock.advance(30_000)
      expect(await world.tasks.cancel(task)).toMatchObject({ state: 'cancelled' })
    }),
  )
})
