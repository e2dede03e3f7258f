import { expect, test } from 'bun:test'
import { GatewayError } from '../base/errors.ts'
import { nano } from '../base/money.ts'
import { usualPace } from './pace.ts'
import type { Transport } from '../upstream/transport.ts'
import {
  dollars,
  eventsOf,
  held,
  moneyOf,
  orderOf,
  requestsOf,
  taskSuite,
  type TaskOverrides,
} from '../../test/support/tasks.ts'
import { until } from '../../test/support/gateway.ts'
import { thrownBy } from '../../test/support/thrown.ts'

const reason = new GatewayError('overloaded', 'The gateway is being stopped.')

const usualMs = { connectMs: 1_000, firstByteMs: 1_000, idleMs: 1_000, totalMs: 60_000 }

taskSuite('orders under way when the node stops', ({ begin }) => {
  /** A vendor that receives everything and answers nothing until it is released. */
  async function beginSilent(overrides: TaskOverrides = {}) {
    const silence = Promise.withResolvers<void>()
    let heard = 0
    let vendors: Transport | undefined
    const transport: Transport = {
      async send(...call) {
        heard++
        await silence.promise
        if (vendors === undefined) throw new Error('a vendor is called before there is one')
        return vendors.send(...call)
      },
    }
    const begun = await begin({ transport, ...overrides })
    vendors = begun.vendor.transport
    return { ...begun, speak: silence.resolve, heard: () => heard }
  }

  test("an order is answered with its task at once, and the vendor's answer is recorded later", async () => {
    const { world, speak, heard } = await beginSilent()
    const asked = world.order()
    await until(() => heard() === 1)
    world.tasks.stop(reason)
    const task = await asked
    expect(task).toMatchObject({ state: 'creating', upstreamId: null })
    const closed = world.close()
    speak()
    await closed
    expect(await world.task(task.id)).toMatchObject({ state: 'submitted', upstreamId: expect.any(String) })
  })

  test('an order that its vendor refuses afterwards fails with an event and costs nothing', async () => {
    const { store, vendor, world, speak, heard } = await beginSilent()
    vendor.tricks.push({ status: 400 })
    const asked = world.order({ webhookUrl: 'https://customer.example/hook' })
    await until(() => heard() === 1)
    expect((await moneyOf(store)).held).toBe(held)
    world.tasks.stop(reason)
    const { id } = await asked
    speak()
    await world.close()
    expect(await world.task(id)).toMatchObject({ state: 'failed', failure: { message: 'The vendor says 400.' } })
    expect(await eventsOf(store)).toMatchObject([{ task_id: id }])
    expect(await requestsOf(store)).toMatchObject([{ status: 202, cost: nano(0n) }])
    expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n)), held: nano(0n) })
  })

  test('an order that was found at its vendor before the refusal goes on', async () => {
    const { store, vendor, world, speak, heard } = await beginSilent()
    vendor.tricks.push({ status: 400 })
    const asked = world.order()
    await until(() => heard() === 1)
    world.tasks.stop(reason)
    const { id } = await asked
    const found = { state: 'submitted', upstream_id: 'up-found' } as const
    await store.db.updateTable('task').set(found).where('id', '=', id).execute()
    speak()
    await world.close()
    expect(await world.task(id)).toMatchObject({ state: 'submitted', upstreamId: 'up-found' })
    expect((await moneyOf(store)).held).toBe(held)
  })

  test('an order that is not on record is refused and never recorded', async () => {
    const { store, world, heard } = await beginSilent()
    const asked = world.order()
    world.tasks.stop(reason)
    expect(await thrownBy(asked)).toBe(reason)
    expect(await thrownBy(world.order())).toBe(reason)
    await world.close()
    expect(await store.db.selectFrom('task').select('id').execute()).toEqual([])
    expect(heard()).toBe(0)
  })

  /** An order with a link of the client, at a server that answers this many times and then no more. */
  async function beginLinked(answers: number, ms = usualMs) {
    let heard = 0
    const begun = await begin({
      timeouts: { create: ms, ask: ms, fetch: ms },
      fetchLink: (_link, _channel, signal) => {
        if (heard++ < answers)
          return Promise.resolve({ body: new Uint8Array(), mediaType: 'image/png', header: () => null })
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
      },
    })
    const ask = { ...orderOf().ask, media: [{ role: 'first-frame', url: 'https://customer.example/' }] } as const
    return { ...begun, ask, heard: () => heard }
  }

  test('an order that waits for a link of its client is refused and does not delay the stop', async () => {
    const { store, world, ask, heard } = await beginLinked(0)
    const asked = world.order({ ask })
    await until(() => heard() === 1)
    world.tasks.stop(reason)
    expect(await thrownBy(asked)).toBe(reason)
    await world.close()
    expect(await store.db.selectFrom('task').select('id').execute()).toEqual([])
  })

  test('an order whose link is not fetched in time is refused for that link, and nobody is said to have left', async () => {
    const { store, world, ask } = await beginLinked(0, { connectMs: 20, firstByteMs: 20, idleMs: 20, totalMs: 20 })
    expect(await thrownBy(world.order({ ask }))).toMatchObject({
      kind: 'bad-request',
      details: { code: 'invalid_url' },
    })
    await world.close()
    expect(await store.db.selectFrom('task').select('id').execute()).toEqual([])
  })

  test('an order to be sent again that waits for a link is left to the next node', async () => {
    const { vendor, world, ask, heard } = await beginLinked(1)
    vendor.tricks.push('drop')
    const { id } = await world.order({ ask })
    // A vendor is believed once it has said twice that it never got the task.
    await world.pass(usualPace.doubtMs)
    world.clock.advance(2 * usualPace.doubtMs)
    await world.tasks.turn()
    await until(() => heard() === 2)
    await world.close()
    expect(await world.task(id)).toMatchObject({ state: 'creating', inDoubt: true, sends: 1 })
  })

  test('an order that is just being recorded is answered once it is on record', async () => {
    const recording = Promise.withResolvers<void>()
    let isRecording = false
    const { store, world, speak } = await beginSilent({
      async reserve() {
        isRecording = true
        await recording.promise
        return { kind: 'reserved', giveBack() {}, heldByTask() {} }
      },
    })
    const asked = world.order()
    await until(() => isRecording)
    world.tasks.stop(reason)
    recording.resolve()
    const { id } = await asked
    expect(await store.db.selectFrom('task').select('id').execute()).toEqual([{ id }])
    speak()
    await world.close()
  })
})
