import { describe, expect, test } from 'bun:test'
import { GatewayError } from '../base/errors.ts'
import { nano } from '../base/money.ts'
import { listTasks } from '../store/task-lists.ts'
import { makeChannels } from '../upstream/channels.ts'
import {
  attemptsOf,
  deadlineSeconds,
  dollars,
  eventsOf,
  held,
  model,
  moneyOf,
  orderOf,
  price,
  requestsOf,
  taskSuite,
} from '../../test/support/tasks.ts'
import { until } from '../../test/support/gateway.ts'
import { standingClock } from '../../test/support/movable-clock.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { videoVendor } from '../../test/support/video-vendor.ts'

const minute = 60_000
const offers = ['first', 'second'].map((channel) => ({ channel, upstreamModel: `film-${channel}` }))

taskSuite('the creation of video tasks', ({ begin, within }) => {
  describe('a vendor that does not take an order', () => {
    test('a refusal is passed on to the client, and leaves neither a hold nor an event', () =>
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

    test.each([429, 503])('an order refused with %i for lack of room goes to the next channel', async (status) => {
      const { vendor, world } = await begin({}, ['first', 'second'])
      vendor.tricks.push({ status })
      const task = await world.order({ model: { ...model, offers } })
      expect(task).toMatchObject({ state: 'submitted', channel: 'second' })
      // It carries the reference of its own attempt, by which it would be searched for.
      expect([...vendor.tasks.values()]).toMatchObject([{ ref: task.attemptId }])
      await world.close()
    })

    test('a refusal inside a 200 counts as the status that it names', async () => {
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

    test.each([
      [400, 'upstream-rejected'],
      [429, 'too-many'],
    ])('a refusal inside a 500 counts as the status that it names: %i is %s', (errorStatus, kind) =>
      within(async ({ store, vendor, world }) => {
        vendor.tricks.push({ status: 500, errorStatus })
        expect(await thrownBy(world.order())).toMatchObject({ kind })
        expect(await store.db.selectFrom('task').select(['state', 'ask']).execute()).toEqual([
          { state: 'refused', ask: null },
        ])
        expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n)), held: nano(0n) })
      }),
    )

    test('an order that never reached its vendor goes to the next channel', async () => {
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

  describe('a creation in doubt', () => {
    test.each(['lose', 'cut'] as const)('an order that reached the vendor is found by our reference (%s)', (trick) =>
      within(async ({ store, vendor, world }) => {
        vendor.tricks.push(trick)
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
      }),
    )

    test('an order answered with the id of another task is searched for, and the other task goes on', () =>
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

    test('the time at which an order was sent moves with a clock that is set back', () =>
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

    test('an order that surely did not reach the vendor is sent again under the same reference', () =>
      within(async ({ vendor, world }) => {
        vendor.tricks.push('drop')
        const task = await world.order()
        for (let looks = 0; looks < 4; looks++) await world.pass(2 * minute)
        const [made] = [...vendor.tasks.values()]
        expect(made).toMatchObject({ ref: task.attemptId, body: { prompt: 'a secret prompt' } })
        expect(await world.task(task.id)).toMatchObject({ state: 'submitted', sends: 2 })
      }))

    test('a search that fails, in whatever way, tells nothing: the order is neither adopted nor sent again', () =>
      within(async ({ vendor, world }) => {
        vendor.tricks.push('drop')
        const task = await world.order()
        vendor.searches.push(0, 500, 429, 'unreadable', 401)
        while (vendor.searches.length > 0) {
          await world.pass(2 * minute)
          expect(await world.task(task.id)).toMatchObject({ state: 'creating', lost: 0, sends: 1 })
        }
        for (let looks = 0; looks < 4; looks++) await world.pass(2 * minute)
        expect(await world.task(task.id)).toMatchObject({ state: 'submitted', sends: 2 })
      }))

    test('an order is not sent again while its credential is over the rate of its model', () =>
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

    test.each([429, 503])('an order refused with %i when it is sent again waits for room', (status) =>
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

    test('an order that finds no room until its deadline fails and costs nothing', () =>
      within(async ({ store, vendor, world }) => {
        vendor.tricks.push('drop', ...Array.from({ length: 100 }, () => ({ status: 429 })))
        const task = await world.order()
        for (let looks = 0; looks < 10; looks++) await world.pass(2 * minute)
        await world.pass(deadlineSeconds * 1000)
        expect(await world.task(task.id)).toMatchObject({ state: 'failed', ask: null, failure: { code: 'timeout' } })
        expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n)), held: nano(0n) })
        expect(vendor.tasks.size).toBe(0)
      }))

    test('an order that is refused with 400 when it is sent again fails', () =>
      within(async ({ store, vendor, world }) => {
        vendor.tricks.push('drop', { status: 400 })
        const task = await world.order()
        for (let looks = 0; looks < 4; looks++) await world.pass(2 * minute)
        expect(await world.task(task.id)).toMatchObject({ state: 'failed', failure: { code: 'upstream_refused' } })
        expect((await moneyOf(store)).held).toBe(nano(0n))
      }))

    test('an order that is dropped every time fails after the fifth send', () =>
      within(async ({ store, vendor, world }) => {
        vendor.tricks.push('drop', 'drop', 'drop', 'drop', 'drop', 'drop')
        const task = await world.order({ webhookUrl: 'https://customer.example/hook' })
        for (let looks = 0; looks < 20; looks++) await world.pass(2 * minute)
        expect(await world.task(task.id)).toMatchObject({ state: 'failed', failure: { code: 'upstream_failed' } })
        expect(vendor.tricks).toHaveLength(1)
        expect((await moneyOf(store)).held).toBe(nano(0n))
        expect(await eventsOf(store)).toHaveLength(1)
      }))

    test('an order that cannot be searched for is listed, never sent again, and fails at its deadline', () =>
      within(async ({ store, vendor, world }) => {
        const inDoubt = async () =>
          (await listTasks(store.db, { scope: 'every-account', inDoubt: true }, { limit: 9 })).map(({ id }) => id)
        await world.order()
        vendor.finds = false
        vendor.tricks.push('lose')
        const task = await world.order()
        for (let looks = 0; looks < 20; looks++) await world.pass(2 * minute)
        expect(await world.task(task.id)).toMatchObject({ state: 'creating', inDoubt: true, sends: 1 })
        expect(await inDoubt()).toEqual([task.id])
        expect((await moneyOf(store)).held).toBe(nano(2n * held))
        await world.pass(deadlineSeconds * 1000)
        expect(await world.task(task.id)).toMatchObject({ state: 'failed', failure: { code: 'timeout' } })
        expect(await inDoubt()).toEqual([])
        expect((await moneyOf(store)).held).toBe(nano(0n))
        expect(vendor.tasks.size).toBe(2)
      }))

    test.each([500, 502, 504, 408, 200])('a %i without a readable body leaves the order in doubt', async (status) => {
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

    test('a 500 from a vendor that cannot be searched leaves an order that is never sent again', () =>
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

    test('an order not searched for until its deadline is searched for then, and not sent again', () =>
      within(async ({ vendor, world }) => {
        vendor.tricks.push('lose', 'drop')
        const [lost, dropped] = [await world.order(), await world.order()]
        vendor.become('done')
        await world.pass(deadlineSeconds * 1000 + minute)
        expect((await world.task(lost.id)).state).toBe('succeeded')
        expect(await world.task(dropped.id)).toMatchObject({ state: 'failed', failure: { code: 'timeout' }, sends: 1 })
        expect(vendor.tasks.size).toBe(1)
      }))

    test('an order is sent again by a single poll, however long that poll takes', async () => {
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

    test('an upstream id that comes after another node has claimed the task is recorded all the same', async () => {
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

  test('a draft is not finished at another vendor that its channel leads to since', async () => {
    const channel = { id: 'first', baseUrl: 'https://films.example', credentials: ['k'], weight: 1, priority: 0 }
    let vendorNow = videoVendor().vendor
    const { vendor, world } = await begin({
      channels: () => makeChannels([{ ...channel, vendor: vendorNow }], standingClock(), () => 0),
    })
    const draft = await world.order()
    const finish = () => world.order({ ask: { ...orderOf().ask, draftOf: draft.id } })
    expect(await finish()).toMatchObject({ state: 'submitted' })
    vendorNow = videoVendor('others').vendor
    expect(await thrownBy(finish())).toBeInstanceOf(GatewayError)
    expect(vendor.tasks.size).toBe(2)
    await world.close()
  })

  test('an order under way when the node stops is completed', async () => {
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
})
