import { expect, test } from 'bun:test'
import { eachEngine } from '../../../test/support/engines.ts'
import { until } from '../../../test/support/gateway.ts'
import { handTimers } from '../../../test/support/hand-timers.ts'
import { standingClock } from '../../../test/support/movable-clock.ts'
import { putAccount, putEvent } from '../../../test/support/outbox.ts'
import type { GuardedFetch } from '../../base/guarded-fetch.ts'
import { silentLog } from '../../base/log.ts'
import type { Store } from '../../store/open.ts'
import { claimEvents } from '../../store/outbox.ts'
import { eventById } from '../../store/webhooks.ts'
import { Courier } from './courier.ts'
import { gateLimits, type GateLimits } from './gate.ts'
import { makeWebhookSecret } from './sign.ts'

const url = 'https://receiver.example/hook'
const secret = makeWebhookSecret()

type Told = { readonly status?: number; readonly limits?: Partial<GateLimits> }

const putOne = async (store: Store) => putEvent(store, await putAccount(store), { url })
const away = () => Promise.reject(new Error('the database is away'))

eachEngine('a courier', (open) => {
  const clock = standingClock()

  /** A courier whose receiver answers everything with this status. */
  function start(store: Store, node: string, { status = 204, limits = {} }: Told = {}) {
    const timers = handTimers()
    const answer = { status, mediaType: '', body: new Uint8Array() }
    const courier = new Courier({
      store,
      mode: 'sandbox',
      node,
      fetch: { post: () => Promise.resolve(answer) } as unknown as GuardedFetch,
      secrets: { valid: () => Promise.resolve([secret]), replace: () => Promise.resolve(undefined) },
      clock,
      timers,
      log: silentLog,
      gateLimits: { ...gateLimits, ...limits },
    })
    return { courier, timers }
  }

  test('a restarted node sends again what its last process had claimed, and not what another node has', async () => {
    const store = await open({ clock })
    const [own, others] = [await putOne(store), await putOne(store)]
    const claim = { now: clock.now(), until: clock.now() + 60_000 }
    await claimEvents(store, { ...claim, ids: [own], owner: 'node_a' })
    await claimEvents(store, { ...claim, ids: [others], owner: 'node_b' })
    const { courier, timers } = start(store, 'node_a')
    timers.fire()
    await until(async () => (await eventById(store.db, own))?.state === 'delivered')
    await courier.close({ withinMs: 0 })
    expect(await eventById(store.db, others)).toMatchObject({ state: 'pending', attempts: 0 })
  })

  test('a courier that is closed while it looks looks no more', async () => {
    const store = await open({ clock })
    const { courier, timers } = start(store, 'node_a')
    timers.fire()
    await courier.close({ withinMs: 0 })
    expect(timers.waiting).toEqual([])
    const late = await putOne(store)
    courier.wake()
    await courier.close({ withinMs: 0 })
    expect(await eventById(store.db, late)).toMatchObject({ state: 'pending', attempts: 0 })
  })

  test('the place of an event that could not be claimed is free for the next one', async () => {
    const store = await open({ clock })
    const id = await putOne(store)
    let tries = 0
    const flaky: Store = { ...store, transaction: (work) => (tries++ === 0 ? away() : store.transaction(work)) }
    const { courier, timers } = start(flaky, 'node_a', { limits: { inFlightMax: 1 } })
    timers.fire()
    await until(() => timers.waiting.length === 1)
    expect(await eventById(store.db, id)).toMatchObject({ state: 'pending', attempts: 0 })
    timers.fire()
    await until(async () => (await eventById(store.db, id))?.state === 'delivered')
    await until(() => timers.waiting.length === 1)
    await courier.close({ withinMs: 0 })
    expect(timers.waiting).toEqual([])
  })

  test('a delivery that ends makes room for the next one at once, without the pause between looks', async () => {
    const store = await open({ clock })
    const ids = [await putOne(store), await putOne(store), await putOne(store)]
    const { courier, timers } = start(store, 'node_a', { limits: { inFlightMax: 1 } })
    timers.fire()
    await until(async () => {
      if (timers.waiting.includes(0)) timers.fire()
      const events = await Promise.all(ids.map((id) => eventById(store.db, id)))
      return events.every((event) => event?.state === 'delivered')
    })
    await courier.close({ withinMs: 0 })
  })

  test('events behind a host that does not answer wait unsent, and are given up only when old and long due', async () => {
    const store = await open({ clock })
    const account = await putAccount(store)
    const hour = 3_600_000
    const putAt = (at: number) => putEvent(store, account, { url, at })
    const [tried, young] = [await putAt(clock.now() - 3 * hour), await putAt(clock.now() - 2 * hour)]
    const [old, overdue] = [await putAt(clock.now() - 30 * hour), await putAt(clock.now() - 31 * hour)]
    const dueAt = (id: string, next_at: number) =>
      store.db.updateTable('webhook_event').set({ next_at }).where('id', '=', id).execute()
    await dueAt(old, clock.now())
    await dueAt(overdue, clock.now() - 2 * hour)
    const limits = { perHostMax: 1, silentMax: 1, restMs: hour }
    const { courier, timers } = start(store, 'node_a', { status: 503, limits })
    timers.fire()
    await until(async () => (await eventById(store.db, tried))?.attempts === 1)
    // After this time the courier looks for events to give up.
    clock.advance(16 * 60_000)
    await until(() => timers.waiting.length === 1)
    timers.fire()
    await until(async () => (await eventById(store.db, overdue))?.state === 'given-up')
    await courier.close({ withinMs: 0 })
    for (const id of [young, old]) {
      expect(await eventById(store.db, id)).toMatchObject({ state: 'pending', attempts: 0 })
    }
  })
})
