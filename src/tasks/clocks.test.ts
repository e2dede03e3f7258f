import { afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { videoVendor, type VideoVendor } from '../../test/support/video-vendor.ts'
import { until } from '../../test/support/gateway.ts'
import { handTimers } from '../../test/support/hand-timers.ts'
import { fundedAccount } from '../../test/support/ledger.ts'
import { movableClock } from '../../test/support/movable-clock.ts'
import { putAccount, putEvent } from '../../test/support/outbox.ts'
import { coldStartMs, sharedPostgres } from '../../test/support/postgres.ts'
import { startReceiver } from '../../test/support/receiver.ts'
import { put } from '../../test/support/stored-tasks.ts'
import { accountId, dollars, makeTaskWorld, price, type TaskOverrides } from '../../test/support/tasks.ts'
import { silentLog } from '../base/log.ts'
import { nano } from '../base/money.ts'
import { startOf } from '../billing/caps.ts'
import { checkLedger } from '../store/check.ts'
import { followDatabaseTime } from '../store/database-time.ts'
import { openStore, type Store } from '../store/open.ts'
import { spentSince } from '../store/usage.ts'
import { eventById } from '../store/webhooks.ts'
import { openWebhooks } from './webhooks/webhooks.ts'

const minute = 60_000
const never = { after: () => () => {} }

let url: string
let stores: Store[]

beforeAll(async () => {
  await sharedPostgres()
}, coldStartMs)

beforeEach(async () => {
  url = await (await sharedPostgres()).freshDatabase()
  stores = []
})

afterEach(async () => {
  for (const store of stores) await store.close()
  await (await sharedPostgres()).dropDatabase(url)
})

/** A node on a machine whose clock is ahead of the database's by this much, or behind it. */
async function nodeAhead(name: string, ms: number, vendor: VideoVendor, more: TaskOverrides = {}) {
  const clock = movableClock()
  clock.setBack(-ms)
  const opened = await openStore({ url })
  stores.push(opened)
  const time = await followDatabaseTime(opened.db, clock, never)
  const store = { ...opened, now: () => time.now() }
  return { store, world: makeTaskWorld(opened, { first: vendor }, { store, node: name, clock, ...more }), clock }
}

test('a node whose clock is minutes ahead does not send an order that another node is sending', async () => {
  const vendor = videoVendor()
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const slow: TaskOverrides['transport'] = {
    async send(...sent) {
      asked.resolve()
      await answered.promise
      return vendor.transport.send(...sent)
    },
  }
  const one = await nodeAhead('node_a', 0, vendor, { transport: slow })
  await fundedAccount(one.store, { id: accountId, amount: dollars(100n) })
  const other = await nodeAhead('node_b', 5 * minute, vendor)
  const ordered = one.world.order()
  await asked.promise
  // Goes on for as long as a call may take by the other node's own clock.
  for (let looks = 0; looks < 4; looks++) {
    await other.world.tasks.turn()
    await other.world.tasks.idle()
    other.clock.setBack(-minute)
  }
  answered.resolve()
  const { id } = await ordered
  expect(await one.world.task(id)).toMatchObject({ state: 'submitted', sends: 1 })
  expect(vendor.tasks.size).toBe(1)
  for (const { world } of [one, other]) await world.close()
  expect(await checkLedger(one.store)).toEqual([])
})

test('an order from a node whose clock is hours behind is not too late for other nodes', async () => {
  const vendor = videoVendor()
  const one = await nodeAhead('node_a', -3 * 60 * minute, vendor)
  await fundedAccount(one.store, { id: accountId, amount: dollars(100n) })
  const other = await nodeAhead('node_b', 0, vendor)
  const { id } = await one.world.order()
  await put(one.store, id, { next_poll_at: other.store.now() })
  expect(await other.world.tasks.turn()).toBe(1)
  await other.world.tasks.idle()
  expect(await one.world.task(id)).toMatchObject({ state: 'submitted', polls: 1 })
  for (const { world } of [one, other]) await world.close()
})

test('an order from a node whose clock is days ahead counts in the day that its caps use', async () => {
  const vendor = videoVendor()
  const one = await nodeAhead('node_a', 2 * 24 * 60 * minute, vendor)
  await fundedAccount(one.store, { id: accountId, amount: dollars(100n) })
  const { id } = await one.world.order({ receivedAt: one.clock.now() })
  await put(one.store, id, { next_poll_at: one.store.now() })
  vendor.become('done')
  expect(await one.world.tasks.turn()).toBe(1)
  await one.world.tasks.idle()
  expect(await one.world.task(id)).toMatchObject({ state: 'succeeded' })
  expect(await spentSince(one.store.db, { accountId, since: startOf('day', one.clock.now()) })).toBe(
    nano(5n * price.sold),
  )
  await one.world.close()
  expect(await checkLedger(one.store)).toEqual([])
})

test('a node whose clock is minutes ahead does not claim a webhook that another node is sending', async () => {
  const receiver = await startReceiver('silence')
  const parts = {
    mode: 'sandbox',
    secret: Buffer.alloc(32, 'x'),
    settings: { allowPrivate: true },
    log: silentLog,
  } as const
  const one = await nodeAhead('node_a', 0, videoVendor())
  const eventId = await putEvent(one.store, await putAccount(one.store), { url: `http://127.0.0.1:${receiver.port}/` })
  const sending = openWebhooks({ ...parts, store: one.store, node: 'node_a', clock: one.clock })
  await until(() => receiver.received.length === 1)
  const other = await nodeAhead('node_b', 5 * minute, videoVendor())
  const timers = handTimers()
  const looking = openWebhooks({ ...parts, store: other.store, node: 'node_b', clock: other.clock, timers })
  looking.wake()
  await until(() => timers.waiting.length > 0)
  const [claimed] = await one.store.db.selectFrom('webhook_event').select('claim_owner').execute()
  expect(claimed).toEqual({ claim_owner: 'node_a' })
  receiver.release(204)
  await until(async () => (await eventById(one.store.db, eventId))?.state === 'delivered')
  expect(receiver.received).toHaveLength(1)
  for (const webhooks of [sending, looking]) await webhooks.close({ withinMs: 0 })
  for (const { world } of [one, other]) await world.close()
  receiver.close()
})
