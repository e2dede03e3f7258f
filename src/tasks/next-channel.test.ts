import { expect, test } from 'bun:test'
import { until } from '../../test/support/gateway.ts'
import { movableClock, type MovableClock } from '../../test/support/movable-clock.ts'
import { held, model, moneyOf, orderOf, taskSuite, type Begun } from '../../test/support/tasks.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import type { VideoVendor } from '../../test/support/video-vendor.ts'
import { badRequest } from '../base/errors.ts'
import type { Transport } from '../upstream/transport.ts'
import { usualPace } from './pace.ts'

const minute = 60_000
const offers = ['first', 'second'].map((channel) => ({ channel, upstreamModel: `film-${channel}` }))
const mustNotRetry = { kind: 'overloaded', details: { shouldRetry: false } }

/** A machine that was suspended: its own clock stood still while the claim on an order ran out. */
const suspended = (time: MovableClock) => ({ ...time, monotonic: () => 0 })

/** A vendor whose first order goes wrong when the test says so, and whose second order and search are answered then. */
function heldBack(vendorOf: () => VideoVendor, wrong: VideoVendor['tricks'][number]) {
  const refusal = Promise.withResolvers<void>()
  const search = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<void>()
  const calls = { orders: 0, searches: 0 }
  const transport: Transport = {
    async send(...call) {
      const vendor = vendorOf()
      const isOrder = call[0].method === undefined
      const nth = isOrder ? ++calls.orders : ++calls.searches
      if (isOrder && nth === 1) {
        await refusal.promise
        vendor.tricks.push(wrong)
      }
      const sent = await vendor.transport.send(...call)
      if (nth === 2) await (isOrder ? answer : search).promise
      return sent
    },
  }
  return { refusal, search, answer, calls, transport }
}

/** Lets the poller find an order absent, and begins its second look. */
async function lookTwice({ store, world }: Begun, time: MovableClock): Promise<void> {
  const lost = async () => (await store.db.selectFrom('task').select('lost').executeTakeFirst())?.lost
  time.advance(5 * minute)
  await world.tasks.turn()
  await until(async () => (await lost()) === 1)
  time.advance(2 * usualPace.doubtMs)
  await world.tasks.turn()
}

taskSuite('an order that goes to the next channel', ({ begin }) => {
  test('a channel that cannot express the order is passed over', async () => {
    const { store, vendor, world } = await begin({}, ['first', 'second', 'third'])
    vendor.cannotExpress = 'film-second'
    vendor.tricks.push({ status: 503 })
    const third = { channel: 'third', upstreamModel: 'film-third' }
    expect(await world.order({ model: { ...model, offers: [...offers, third] } })).toMatchObject({ channel: 'third' })
    world.clock.advance(minute)
    vendor.tricks.push({ status: 503 })
    expect(await thrownBy(world.order({ model: { ...model, offers } }))).toMatchObject({ kind: 'too-many' })
    expect((await moneyOf(store)).held).toBe(held)
    await world.close()
  })

  test('an order is refused as the best channel refuses it only if no channel can express it', async () => {
    const { store, vendor, world } = await begin({}, ['first', 'second'])
    vendor.cannotExpress = 'film-first'
    expect(await world.order({ model: { ...model, offers } })).toMatchObject({ channel: 'second', sends: 1 })
    const [first] = offers
    expect(await thrownBy(world.order({ model: { ...model, offers: first ? [first] : [] } }))).toMatchObject({
      kind: 'bad-request',
    })
    expect((await moneyOf(store)).held).toBe(held)
    await world.close()
  })

  test('an order that only a channel over its rate can express is told to wait', async () => {
    const { vendor, world } = await begin({}, ['first', 'second'])
    vendor.cannotExpress = 'film-second'
    vendor.tricks.push({ status: 429 })
    for (let order = 1; order <= 2; order++) {
      expect(await thrownBy(world.order({ model: { ...model, offers } }))).toMatchObject({ kind: 'too-many' })
    }
    expect(vendor.calls).toHaveLength(1)
    await world.close()
  })

  test('the links of an order have one time limit at all its channels together', async () => {
    const time = movableClock()
    const refusals: boolean[] = []
    const { world } = await begin(
      {
        clock: time,
        fetchLink: (_link, _channel, { aborted }) => {
          refusals.push(aborted)
          time.advance(2 * minute)
          return Promise.reject(badRequest('The URL could not be reached.', 'input.media'))
        },
      },
      ['first', 'second'],
    )
    const ask = { ...orderOf().ask, media: [{ role: 'first-frame', url: 'https://customer.example/' }] } as const
    expect(await thrownBy(world.order({ ask, model: { ...model, offers } }))).toMatchObject({ kind: 'bad-request' })
    expect(refusals).toEqual([false, true])
    await world.close()
  })

  test('an order that another node has claimed meanwhile is left to that node', async () => {
    const { store, vendor, world } = await begin(
      {
        transport: {
          async send(...call) {
            await store.db.updateTable('task').set({ claim_owner: 'node_b' }).execute()
            return vendor.transport.send(...call)
          },
        },
      },
      ['first', 'second'],
    )
    vendor.tricks.push({ status: 503 })
    expect(await thrownBy(world.order({ model: { ...model, offers } }))).toMatchObject(mustNotRetry)
    expect(vendor.calls).toHaveLength(1)
    expect((await moneyOf(store)).held).toBe(held)
    await world.close()
  })

  test('an order that this node is sending again meanwhile is not bought twice', async () => {
    const time = movableClock()
    const { refusal, search, answer, calls, transport } = heldBack(() => begun.vendor, { status: 503 })
    const begun = await begin({ clock: suspended(time), transport }, ['first', 'second'])
    search.resolve()
    const { store, vendor, world } = begun
    const ordered = thrownBy(world.order({ model: { ...model, offers } }))
    await until(() => calls.orders === 1)
    await lookTwice(begun, time)
    await until(() => vendor.tasks.size === 1)
    refusal.resolve()
    expect(await ordered).toMatchObject(mustNotRetry)
    expect(vendor.tasks.size).toBe(1)
    answer.resolve()
    await world.tasks.idle()
    expect(await store.db.selectFrom('task').select(['state', 'channel']).execute()).toEqual([
      { state: 'submitted', channel: 'first' },
    ])
    await world.close()
  })

  for (const [outcome, deadAfter] of [
    ['sent again to the one before', Number.POSITIVE_INFINITY],
    ['failed by a link that the one before cannot have', 2],
  ] as const) {
    test(`an order that has gone to the next channel meanwhile is not ${outcome}`, async () => {
      const time = movableClock()
      const { refusal, search, answer, calls, transport } = heldBack(() => begun.vendor, 'unsent')
      let fetches = 0
      const begun = await begin(
        {
          clock: suspended(time),
          transport,
          fetchLink: () =>
            ++fetches > deadAfter
              ? Promise.reject(badRequest('The link cannot be fetched.', 'input.media'))
              : Promise.resolve({ status: 200, body: new Uint8Array(1), mediaType: 'image/png', header: () => null }),
        },
        ['first', 'second'],
      )
      const { world } = begun
      const media = [{ role: 'first-frame', url: 'https://customer.example/a.png' }] as const
      const ordered = world.order({ model: { ...model, offers }, ask: { ...orderOf().ask, media } })
      await until(() => calls.orders === 1)
      await lookTwice(begun, time)
      await until(() => calls.searches === 2)
      refusal.resolve()
      await until(() => calls.orders === 2)
      search.resolve()
      await until(() => fetches === 3)
      // Long enough for an order that is sent again or failed. Nothing tells of one that is not.
      await Bun.sleep(100)
      answer.resolve()
      expect(await ordered).toMatchObject({ state: 'submitted', channel: 'second' })
      expect(begun.vendor.tasks.size).toBe(1)
      await world.close()
    })
  }
})
