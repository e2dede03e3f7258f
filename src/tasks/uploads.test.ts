import { expect, test } from 'bun:test'
import { GatewayError } from '../base/errors.ts'
import { nano } from '../base/money.ts'
import type { Transport } from '../upstream/transport.ts'
import {
  attemptsOf,
  dollars,
  held,
  model,
  moneyOf,
  orderOf,
  price,
  requestsOf,
  taskSuite,
  type TaskOverrides,
} from '../../test/support/tasks.ts'
import { until } from '../../test/support/gateway.ts'
import { thrownBy } from '../../test/support/thrown.ts'

const minute = 60_000
const links = ['https://customer.example/a.png', 'https://customer.example/b.png'] as const
const ask = {
  ...orderOf().ask,
  media: [
    { role: 'first-frame', url: links[0] },
    { role: 'last-frame', url: links[1] },
  ],
} as const
const names = links.map((link) => `the picture of ${link}`)
const offers = ['first', 'second'].map((channel) => ({ channel, upstreamModel: `film-${channel}` }))
const reason = new GatewayError('overloaded', 'The gateway is being stopped.')

/** A transport that does `work` before each call. */
const before = (vendors: () => Transport, work: (path: string) => unknown): Transport => ({
  async send(...call) {
    await work(new URL(call[0].url).pathname)
    return vendors().send(...call)
  },
})

taskSuite('images that are uploaded before the order', ({ begin }) => {
  async function beginWith(overrides: TaskOverrides = {}, channels: readonly string[] = ['first']) {
    const begun = await begin(overrides, channels)
    begun.vendor.wantsPictures = true
    return { ...begun, paths: () => begun.vendor.calls.map(({ path }) => path) }
  }

  test('images are uploaded once the money is held, and named in the order', async () => {
    const heldAt: unknown[] = []
    const begun = await beginWith({
      transport: before(
        () => begun.vendor.transport,
        async () => heldAt.push((await moneyOf(begun.store)).held),
      ),
    })
    const { store, vendor, world, paths } = begun
    const task = await world.order({ ask })
    expect(paths()).toEqual(['/pictures', '/pictures', '/tasks'])
    expect(heldAt).toEqual([held, held, held])
    expect([...vendor.tasks.values()]).toMatchObject([{ ref: task.attemptId, body: { uploaded: names } }])
    vendor.become('done')
    await world.pass(minute)
    expect(await world.task(task.id)).toMatchObject({ state: 'succeeded', sends: 1 })
    expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n) - 5n * price.sold), held: nano(0n) })
    await world.close()
  })

  test.each([
    ['breaks off', 0, false, 'upstream-failed', 0],
    ['cannot be read', 'unreadable', false, 'upstream-failed', 0],
    ['is answered with 504', 504, false, 'upstream-failed', 504],
    ['has a 500 inside a 200', 500, true, 'upstream-failed', 500],
    ['is refused', 400, false, 'upstream-rejected', 400],
    ['is refused inside a 200', 400, true, 'upstream-rejected', 400],
  ] as const)('when an upload %s, nothing is ordered and nothing is left open', async (...row) => {
    const [, trouble, hidesErrors, kind, status] = row
    const { store, vendor, world, paths } = await beginWith()
    vendor.hidesErrors = hidesErrors
    vendor.pictures.push(trouble)
    expect(await thrownBy(world.order({ ask }))).toMatchObject({ kind })
    expect(paths()).toEqual(['/pictures'])
    expect(await store.db.selectFrom('task').select('state').execute()).toEqual([{ state: 'refused' }])
    expect(await attemptsOf(store)).toMatchObject([{ status, vendor_cost: nano(0n) }])
    expect(await requestsOf(store)).toMatchObject([{ cost: nano(0n) }])
    expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n)), held: nano(0n) })
    await world.close()
  })

  test.each([0, 429, 500])('images are uploaded to the next channel when the first answers %p', async (trouble) => {
    const { vendor, world, paths } = await beginWith({}, ['first', 'second'])
    vendor.pictures.push(trouble)
    const task = await world.order({ ask, model: { ...model, offers } })
    expect(task).toMatchObject({ state: 'submitted', channel: 'second' })
    expect(paths()).toEqual(['/pictures', '/pictures', '/pictures', '/tasks'])
    await world.close()
  })

  test('slow uploads do not make it too late for the next channel', async () => {
    const begun = await beginWith(
      {
        transport: before(
          () => begun.vendor.transport,
          () => begun.world.clock.advance(50_000),
        ),
      },
      ['first', 'second'],
    )
    const { vendor, world } = begun
    vendor.tricks.push('unsent')
    expect(await world.order({ ask, model: { ...model, offers } })).toMatchObject({
      state: 'submitted',
      channel: 'second',
    })
    await world.close()
  })

  test('images are uploaded again with an order that is sent again', async () => {
    const { vendor, world, paths } = await beginWith()
    vendor.tricks.push('drop')
    const task = await world.order({ ask })
    vendor.pictures.push(0, 500)
    for (let looks = 0; looks < 6; looks++) await world.pass(2 * minute)
    expect(await world.task(task.id)).toMatchObject({ state: 'submitted', sends: 2 })
    expect(paths().filter((path) => path === '/pictures')).toHaveLength(6)
    expect([...vendor.tasks.values()]).toMatchObject([{ body: { uploaded: names } }])
    await world.close()
  })

  test('uploads and their order are completed when the node stops meanwhile', async () => {
    const silence = Promise.withResolvers<void>()
    let heard = 0
    const begun = await beginWith({
      transport: before(
        () => begun.vendor.transport,
        () => {
          heard++
          return silence.promise
        },
      ),
    })
    const { vendor, world } = begun
    const asked = world.order({ ask })
    await until(() => heard === 1)
    world.tasks.stop(reason)
    const { id } = await asked
    const closed = world.close()
    silence.resolve()
    await closed
    expect(await world.task(id)).toMatchObject({ state: 'submitted', upstreamId: expect.any(String) })
    expect(vendor.tasks.size).toBe(1)
  })
})
