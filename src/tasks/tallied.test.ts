import { expect, test } from 'bun:test'
import { attemptsOf, deadlineSeconds, model, price, requestsOf, taskSuite } from '../../test/support/tasks.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { countWatchedTasks } from '../store/task-claims.ts'
import { Tally } from '../telemetry/tally.ts'

const minute = 60_000
const offers = ['first', 'second'].map((channel) => ({ channel, upstreamModel: `film-${channel}` }))
const ofModel = (tally: Tally) => tally.capabilities.get('video')?.models.get(model.id)
const vendorCost = async (store: Parameters<typeof attemptsOf>[0]) =>
  (await attemptsOf(store)).reduce((sum, { vendor_cost: cost }) => sum + Number(cost), 0)

taskSuite('the counters of video tasks', ({ begin, within }) => {
  test('the request, the money and the end of a video are each counted once', async () => {
    const tally = new Tally()
    const { store, vendor, world } = await begin({ tally })
    await world.order()
    vendor.become('done')
    await world.pass(minute)
    await world.pass(minute)
    const [request] = await requestsOf(store)
    expect(request?.cost).toBeGreaterThan(0n)
    expect(ofModel(tally)).toMatchObject({
      byClass: [0, 1, 0, 0, 0],
      chargedNano: Number(request?.cost),
      costNano: await vendorCost(store),
      videoSeconds: 5,
    })
    expect(tally.tasksEnded.get(model.id)).toEqual(new Map([['succeeded', 1]]))
    await world.close()
  })

  test('a failed and a delivered attempt are counted for their own channels', async () => {
    const tally = new Tally()
    const { vendor, world } = await begin({ tally }, ['first', 'second'])
    vendor.tricks.push({ status: 503 })
    await world.order({ model: { ...model, offers } })
    vendor.become('done')
    await world.pass(minute)
    expect(tally.channels.get('first')?.outcomes).toMatchObject({ failed: 1, delivered: 0 })
    expect(tally.channels.get('second')?.outcomes).toMatchObject({ failed: 0, delivered: 1 })
    await world.close()
  })

  test('a refusal by the vendor is counted for the model and not as a refusal at the edge', async () => {
    const tally = new Tally()
    const { vendor, world } = await begin({ tally })
    vendor.tricks.push({ status: 400 })
    const thrown = await thrownBy(world.order())
    tally.refused(undefined, 400, thrown)
    tally.refused(undefined, 404, new Error('another'))
    expect([...(tally.refusals.get('unknown') ?? [])]).toEqual([[404, 1]])
    expect(ofModel(tally)?.byClass).toEqual([0, 0, 0, 1, 0])
    await world.close()
  })

  test('the cost of a video that came after it was given up is counted', async () => {
    const tally = new Tally()
    const { store, vendor, world } = await begin({ tally })
    await world.order()
    vendor.become('running')
    await world.pass(deadlineSeconds * 1000 + minute)
    expect(ofModel(tally)).toMatchObject({ costNano: 0, chargedNano: 0 })
    vendor.become('done')
    await world.pass(31 * minute)
    expect(ofModel(tally)).toMatchObject({ costNano: Number(5n * price.bought), chargedNano: 0 })
    expect(await vendorCost(store)).toBe(Number(5n * price.bought))
    await world.close()
  })

  test('open tasks are counted by state, with the time at which a poll was due', () =>
    within(async ({ store, vendor, world }) => {
      const counted = (mode: 'sandbox' | 'real' = 'sandbox') =>
        countWatchedTasks(store.db, { now: world.clock.now(), mode })
      expect(await counted()).toEqual([])
      const { nextPollAt } = await world.order()
      if (nextPollAt === null) throw new Error('nobody would look at it')
      expect(await counted()).toEqual([{ state: 'submitted', inDoubt: false, count: 1, dueAt: null }])
      vendor.tricks.push('lose')
      await world.order()
      world.clock.advance(10 * minute)
      const found = await counted()
      expect(found).toHaveLength(2)
      expect(found).toContainEqual({ state: 'submitted', inDoubt: false, count: 1, dueAt: nextPollAt })
      expect(found).toContainEqual({ state: 'creating', inDoubt: true, count: 1, dueAt: expect.any(Number) })
      expect(await counted('real')).toEqual([])
    }))
})
