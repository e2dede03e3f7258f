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
import { until } from '../../test/support/gateway.ts'
import { thrownBy } from '../../test/support/thrown.ts'

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
        expect(await store.db.selectFrom('task').select(['state', 'ask']).execute()).toEqual([
          { state: 'refused', ask: null },
        ])
        expect(await eventsOf(store)).toEqual([])
        await world.pass(60 * minute)
        expect(vendor.tasks.size).toBe(0)
      }))

    test.each([429, 503])('for want of room, under %i, has begun nothing: the next one may take it', async (status) => {
      const { vendor, world } = await begin({}, ['first', 'second'])
      vendor.tricks.push({ status })
      expect(await world.order({ model: { ...model, offers } })).toMatchObject({
        state: 'submitted',
        channel: 'second',
      })
      expect(vendor.tasks.size).toBe(1)
      await world.close()
    })

    test('may say so under a good status', async () => {
      const { store, vendor, world } = await begin({}, ['first', 'second'])
      vendor.tricks.push({ status: 200, errorStatus: 429 })
      expect(await world.order({ model: { ...model, offers } })).toMatchObject({ channel: 'second' })
      vendor.tricks.push({ status: 200, errorStatus: 400 })
      expect(await thrownBy(world.order())).toMatchObject({ kind: 'upstream-rejected' })
      vendor.tricks.push({ status: 200, errorStatus: 500 })
      expect(await world.order()).toMatchObject({ state: 'creating', inDoubt: true })
      expect((await attemptsOf(store)).map(({ status }) => status)).toEqual([429, 400])
      await world.close()
    })

    test.each([400, 429])('may say so under a bad one, in words that leave no doubt: %i', (errorStatus) =>
      within(async ({ store, vendor, world }) => {
        vendor.tricks.push({ status: 500, errorStatus })
        expect(await thrownBy(world.order())).toMatchObject({
          kind: expect.stringMatching(/^upstream-rejected|too-many$/),
        })
        expect(await store.db.selectFrom('task').select(['state', 'ask']).execute()).toEqual([
          { state: 'refused', ask: null },
        ])
        expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n)), held: nano(0n) })
      }),
    )

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

    test('that was called by the id of another task is looked for, and the other one goes on', () =>
      within(async ({ store, vendor, world }) => {
        const other = await world.order()
        vendor.tricks.push({ status: 200, makes: true, id: other.upstreamId ?? '' })
        const task = await world.order()
        expect(task).toMatchObject({ state: 'creating', inDoubt: true, upstreamId: null })
        expect((await moneyOf(store)).held).toBe(nano(2n * held))
        await world.pass(2 * minute)
        expect(await world.task(task.id)).toMatchObject({ state: 'submitted', inDoubt: false })
        vendor.become('done')
        await world.pass(minute)
        for (const { id } of [other, task]) expect((await world.task(id)).state).toBe('succeeded')
      }))

    test('is looked for as of when it was sent, by a clock that was set back since', () =>
      within(async ({ vendor, world }) => {
        vendor.tricks.push({ status: 500, makes: true })
        const { id, sentAt } = await world.order()
        world.clock.setBack(60 * minute)
        await world.pass(2 * minute)
        const found = await world.task(id)
        expect(found.state).toBe('submitted')
        // The distance is measured by two readings of the clock, between which a busy machine may pause.
        expect(Math.abs(sentAt - 60 * minute - found.sentAt)).toBeLessThan(1_000)
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

    test('is not sent once more while its key is over the rate of its model', () =>
      within(async ({ vendor, world }) => {
        vendor.tricks.push('drop')
        const task = await world.order()
        await world.pass(80_000)
        world.clock.advance(70_000)
        vendor.tricks.push({ status: 429 }, { status: 429 })
        expect(await thrownBy(world.order())).toMatchObject({ kind: 'too-many' })
        await world.pass(0)
        expect(await world.task(task.id)).toMatchObject({ state: 'creating', lost: 1, sends: 1 })
        vendor.tricks.pop()
        await world.pass(minute)
        expect(await world.task(task.id)).toMatchObject({ state: 'submitted', sends: 2 })
      }))

    test.each([429, 503])('that meets no room under %i when it is sent once more waits for some', (status) =>
      within(async ({ store, vendor, world }) => {
        // More refusals than sends are allowed: a send that the vendor surely did not take does not count.
        const refusals = Array.from({ length: 6 }, () => ({ status }))
        vendor.tricks.push('drop', ...refusals)
        const task = await world.order()
        for (let looks = 0; looks < 20 && vendor.tricks.length > 0; looks++) await world.pass(2 * minute)
        expect(vendor.tricks).toEqual([])
        expect(await world.task(task.id)).toMatchObject({ state: 'creating', inDoubt: true, sends: 1 })
        expect((await moneyOf(store)).held).toBe(held)
        await world.pass(2 * minute)
        expect(await world.task(task.id)).toMatchObject({ state: 'submitted', sends: 2 })
        vendor.become('done')
        await world.pass(minute)
        expect((await world.task(task.id)).state).toBe('succeeded')
        expect(vendor.tasks.size).toBe(1)
        expect(await attemptsOf(store)).toMatchObject([{ id: task.attemptId, status: 200 }])
        expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n) - 5n * price.sold), held: nano(0n) })
      }),
    )

    test('that meets no room until its deadline has failed then, and costs nothing', () =>
      within(async ({ store, vendor, world }) => {
        vendor.tricks.push('drop', ...Array.from({ length: 100 }, () => ({ status: 429 })))
        const task = await world.order()
        for (let looks = 0; looks < 10; looks++) await world.pass(2 * minute)
        await world.pass(deadlineSeconds * 1000)
        expect(await world.task(task.id)).toMatchObject({ state: 'failed', ask: null, failure: { code: 'timeout' } })
        expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n)), held: nano(0n) })
        expect(vendor.tasks.size).toBe(0)
      }))

    test('that its vendor refuses for what it asks when it is sent once more has failed', () =>
      within(async ({ store, vendor, world }) => {
        vendor.tricks.push('drop', { status: 400 })
        const task = await world.order()
        for (let looks = 0; looks < 4; looks++) await world.pass(2 * minute)
        expect(await world.task(task.id)).toMatchObject({ state: 'failed', failure: { code: 'upstream_refused' } })
        expect((await moneyOf(store)).held).toBe(nano(0n))
      }))

    test('that is dropped every time has failed after the fifth', () =>
      within(async ({ store, vendor, world }) => {
        vendor.tricks.push('drop', 'drop', 'drop', 'drop', 'drop', 'drop')
        const task = await world.order({ webhookUrl: 'https://customer.example/hook' })
        for (let looks = 0; looks < 20; looks++) await world.pass(2 * minute)
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

    test.each([500, 502, 504, 408, 200])('under %i, with nothing to be read, is one too', async (status) => {
      const { store, vendor, world } = await begin({}, ['first', 'second'])
      vendor.tricks.push({ status, makes: true })
      const task = await world.order({ model: { ...model, offers } })
      expect(task).toMatchObject({ state: 'creating', inDoubt: true, channel: 'first' })
      expect((await moneyOf(store)).held).toBe(held)
      await world.pass(2 * minute)
      expect(await world.task(task.id)).toMatchObject({ state: 'submitted', inDoubt: false, sends: 1 })
      expect(vendor.tasks.size).toBe(1)
      await world.close()
    })

    test('under 500, where the vendor has no list, is kept and never sent again', () =>
      within(async ({ vendor, world }) => {
        vendor.finds = false
        vendor.tricks.push({ status: 500 })
        const task = await world.order()
        for (let looks = 0; looks < 10; looks++) await world.pass(2 * minute)
        expect(await world.task(task.id)).toMatchObject({ state: 'creating', inDoubt: true, sends: 1 })
        await world.pass(deadlineSeconds * 1000)
        expect(await world.task(task.id)).toMatchObject({ state: 'failed', failure: { code: 'timeout' } })
        expect(vendor.tasks.size).toBe(0)
      }))

    test('that nobody looked for until its deadline is looked for then, and not sent', () =>
      within(async ({ vendor, world }) => {
        vendor.tricks.push('lose', 'drop')
        const [lost, dropped] = [await world.order(), await world.order()]
        vendor.become('done')
        await world.pass(deadlineSeconds * 1000 + minute)
        expect((await world.task(lost.id)).state).toBe('succeeded')
        expect(await world.task(dropped.id)).toMatchObject({ state: 'failed', failure: { code: 'timeout' }, sends: 1 })
        expect(vendor.tasks.size).toBe(1)
      }))

    test('is sent once more by one look alone, however long that look takes', async () => {
      const answer = Promise.withResolvers<void>()
      let isSlow = false
      const { vendor, world } = await begin({
        transport: {
          async send(...call) {
            const sent = await vendor.transport.send(...call)
            if (isSlow && call[0].url.includes('/find')) await answer.promise
            return sent
          },
        },
      })
      vendor.tricks.push('drop')
      const task = await world.order()
      await world.pass(80_000)
      expect(await world.task(task.id)).toMatchObject({ lost: 1, sends: 1 })
      isSlow = true
      // The process is suspended during a poll for longer than its claim lasts.
      for (const looks of [1, 0]) {
        world.clock.advance(80_000)
        expect(await world.tasks.turn()).toBe(looks)
      }
      // Meanwhile another process starts under the same node name.
      const second = world.node('node_a')
      await second.idle()
      world.clock.advance(80_000)
      expect(await second.turn()).toBe(1)
      answer.resolve()
      await Promise.all([world.tasks.idle(), second.idle()])
      expect(vendor.tasks.size).toBe(1)
      expect(await world.task(task.id)).toMatchObject({ state: 'submitted', sends: 2 })
      await world.close()
    })

    test('whose id comes after somebody else has claimed it is that task all the same', async () => {
      const answer = Promise.withResolvers<void>()
      const { store, vendor, world } = await begin({
        transport: {
          async send(...call) {
            await answer.promise
            return vendor.transport.send(...call)
          },
        },
      })
      const created = world.order()
      await until(async () => (await store.db.selectFrom('task').select('id').execute()).length === 1)
      await store.db.updateTable('task').set({ claim_owner: 'node_b' }).execute()
      answer.resolve()
      const task = await created
      expect([...vendor.tasks.keys()]).toEqual([task.upstreamId ?? ''])
      expect(task).toMatchObject({ state: 'submitted', claimOwner: null })
      await world.close()
    })
  })

  test('that is under way when the node stops comes to its end', async () => {
    const answer = Promise.withResolvers<void>()
    let cutOff = false
    const { vendor, world } = await begin({
      transport: {
        async send(call, timeouts, signal, connection) {
          const sent = await vendor.transport.send(call, timeouts, signal, connection)
          await answer.promise
          cutOff = signal.aborted
          return sent
        },
      },
    })
    const created = world.order()
    await until(() => vendor.tasks.size === 1)
    const closed = world.close()
    answer.resolve()
    expect(await created).toMatchObject({ state: 'submitted', inDoubt: false })
    expect(cutOff).toBe(false)
    await closed
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
