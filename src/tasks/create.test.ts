import { describe, expect, test } from 'bun:test'
import { nano } from '../base/money.ts'
import {
  attemptsOf,
  deadlineSeconds,
  dollars,
  eventsOf,
  held,
  model,
  moneyOf,
  price,
  requestsOf,
  taskSuite,
} from '../../test/support/tasks.ts'
import { thrownBy } from '../../test/support/refused.ts'

const minute = 60_000
const offers = ['first', 'second'].map((channel) => ({ channel, upstreamModel: `film-${channel}` }))

taskSuite('the creation of video tasks', ({ begin, within }) => {
  describe('a vendor that will not have it', () => {
    test('is repeated to the client, and leaves nothing open', () =>
      within(async ({ store, vendor, world }) => {
        vendor.tricks.push({ status: 400 })
        const refused = await world.order({ webhookUrl: 'https://customer.example/hook' }).catch((e: unknown) => e)
        expect(refused).toMatchObject({ kind: 'upstream-rejected', details: { refusal: { status: 400 } } })
        expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n)), held: nano(0n) })
        expect(await requestsOf(store)).toMatchObject([{ status: 400, cost: nano(0n) }])
        expect(await store.db.selectFrom('task').select('state').execute()).toEqual([{ state: 'refused' }])
        expect(await eventsOf(store)).toEqual([])
        await world.pass(60 * minute)
        expect(vendor.tasks.size).toBe(0)
      }))

    test('that fails with a 500 is not tried elsewhere: it may have made it all the same', async () => {
      const { vendor, world } = await begin({}, ['first', 'second'])
      vendor.tricks.push({ status: 500, makes: true })
      expect(await thrownBy(world.order({ model: { ...model, offers } }))).toMatchObject({ kind: 'upstream-failed' })
      await world.pass(60 * minute)
      expect(vendor.tasks.size).toBe(1)
      // What is over its rate has made nothing.
      vendor.tricks.push({ status: 429 })
      expect(await world.order({ model: { ...model, offers } })).toMatchObject({ channel: 'second' })
      await world.close()
    })

    test('where it was never reached, another one is', async () => {
      const { store, vendor, world } = await begin({}, ['first', 'second'])
      vendor.tricks.push('unsent')
      const task = await world.order({ model: { ...model, offers } })
      expect(task).toMatchObject({ state: 'submitted', channel: 'second', upstreamModel: 'film-second' })
      vendor.become('done')
      await world.pass(minute)
      const attempts = await attemptsOf(store)
      expect(attempts.map(({ channel, status, vendor_cost: cost }) => [channel, status, cost])).toEqual([
        ['first', 0, nano(0n)],
        ['second', 200, nano(5n * price.bought)],
      ])
      vendor.tricks.push('unsent', 'unsent')
      expect(await thrownBy(world.order({ model: { ...model, offers } }))).toMatchObject({ kind: 'upstream-failed' })
      expect((await moneyOf(store)).held).toBe(nano(0n))
      expect(vendor.tasks.size).toBe(1)
      await world.close()
    })
  })

  describe('a creation of unknown fate', () => {
    test('that reached the vendor is found under our reference', () =>
      within(async ({ store, vendor, world }) => {
        vendor.tricks.push('lose')
        const task = await world.order()
        expect(task).toMatchObject({ state: 'creating', inDoubt: true, upstreamId: null })
        expect((await moneyOf(store)).held).toBe(held)
        await world.pass(30_000)
        expect((await world.task(task.id)).state).toBe('creating')
        await world.pass(2 * minute)
        expect(await world.task(task.id)).toMatchObject({ state: 'submitted', inDoubt: false, ask: null })
        vendor.become('done')
        await world.pass(minute)
        expect((await world.task(task.id)).state).toBe('succeeded')
        expect(vendor.tasks.size).toBe(1)
      }))

    test('that surely did not is sent once more, under the same reference', () =>
      within(async ({ vendor, world }) => {
        vendor.tricks.push('drop')
        const task = await world.order()
        for (let looks = 0; looks < 4; looks++) await world.pass(2 * minute)
        const [made] = [...vendor.tasks.values()]
        expect(made).toMatchObject({ ref: task.attemptId, body: { prompt: 'a secret prompt' } })
        expect(await world.task(task.id)).toMatchObject({ state: 'submitted', sends: 2 })
      }))

    test('that is dropped twice has failed', () =>
      within(async ({ store, vendor, world }) => {
        vendor.tricks.push('drop', 'drop', 'drop')
        const task = await world.order({ webhookUrl: 'https://customer.example/hook' })
        for (let looks = 0; looks < 10; looks++) await world.pass(2 * minute)
        expect(await world.task(task.id)).toMatchObject({ state: 'failed', failure: { code: 'upstream_failed' } })
        expect(vendor.tricks).toHaveLength(1)
        expect((await moneyOf(store)).held).toBe(nano(0n))
        expect(await eventsOf(store)).toHaveLength(1)
      }))

    test('that nobody can tell is kept, listed, never sent again, and failed at its deadline', () =>
      within(async ({ store, vendor, world }) => {
        vendor.finds = false
        vendor.tricks.push('lose')
        const task = await world.order()
        for (let looks = 0; looks < 20; looks++) await world.pass(2 * minute)
        expect(await world.task(task.id)).toMatchObject({ state: 'creating', inDoubt: true, sends: 1 })
        expect((await moneyOf(store)).held).toBe(held)
        await world.pass(deadlineSeconds * 1000)
        expect(await world.task(task.id)).toMatchObject({ state: 'failed', failure: { code: 'timeout' } })
        expect((await moneyOf(store)).held).toBe(nano(0n))
        expect(vendor.tasks.size).toBe(1)
      }))

    test('under 504 is one too, and under a broken answer', () =>
      within(async ({ vendor, world }) => {
        vendor.tricks.push({ status: 504, makes: true }, { status: 200, makes: true })
        expect(await world.order()).toMatchObject({ state: 'creating', inDoubt: true })
        expect(await world.order()).toMatchObject({ state: 'creating', inDoubt: true })
        await world.pass(2 * minute)
        expect(vendor.tasks.size).toBe(2)
      }))
  })

  test('what there is no money for is not sent', () =>
    within(async ({ vendor, world }) => {
      const placed = await Promise.all(
        Array.from({ length: 40 }, () => world.order().catch((thrown: Error) => thrown.message)),
      )
      // A hundred dollars cover thirty-three holds of three.
      expect(placed.filter((one) => one === 'no funds')).toHaveLength(7)
      expect(vendor.tasks.size).toBe(33)
    }))
})
