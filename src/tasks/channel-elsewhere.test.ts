import { expect, test } from 'bun:test'
import { movableClock } from '../../test/support/movable-clock.ts'
import { deadlineSeconds, held, moneyOf, taskSuite } from '../../test/support/tasks.ts'
import { videoVendor } from '../../test/support/video-vendor.ts'
import { nano } from '../base/money.ts'
import { makeChannels } from '../upstream/channels.ts'

const minute = 60_000

taskSuite('a task whose channel only other nodes have at its deadline', ({ begin }) => {
  /** A node that loses the channel of its task before the task's deadline. */
  async function beginWithout(order: 'taken' | 'in doubt') {
    const vendor = videoVendor()
    const there = { id: 'first', vendor: vendor.vendor, baseUrl: 'https://films.example', credentials: ['k'] }
    const all = makeChannels([{ ...there, weight: 1, priority: 0 }], movableClock(), () => 0)
    const none = makeChannels([], movableClock(), () => 0)
    let configured = all
    const { store, world } = await begin({ channels: () => configured, transport: vendor.transport })
    if (order === 'in doubt') vendor.tricks.push('lose')
    const { id } = await world.order()
    configured = none
    await world.pass(deadlineSeconds * 1000)
    return { store, world, id, vendor, putBack: () => (configured = all) }
  }

  test.each(['taken', 'in doubt'] as const)('is left to them, and goes on where the channel is: %s', async (order) => {
    const { store, world, id, vendor, putBack } = await beginWithout(order)
    await world.pass(5 * minute)
    expect((await world.task(id)).failure).toBeNull()
    expect((await moneyOf(store)).held).toBe(held)
    vendor.become('done')
    putBack()
    for (let polls = 0; polls < 3; polls++) await world.pass(minute)
    expect(await world.task(id)).toMatchObject({ state: 'succeeded', sends: 1 })
    await world.close()
  })

  test.each(['taken', 'in doubt'] as const)(
    'is not polled in a loop, and fails if nobody has it: %s',
    async (order) => {
      const { store, world, id } = await beginWithout(order)
      const before = await world.task(id)
      expect(before.nextPollAt).toBeGreaterThan(world.clock.now())
      for (let minutes = 0; minutes < 10; minutes++) await world.pass(minute)
      expect(await world.task(id)).toMatchObject({ state: 'failed', failure: { code: 'timeout' } })
      expect((await moneyOf(store)).held).toBe(nano(0n))
      await world.close()
    },
  )
})
