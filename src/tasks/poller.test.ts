import { expect, test } from 'bun:test'
import { sql } from 'kysely'
import { nano } from '../base/money.ts'
import { openStore } from '../store/open.ts'
import type { Task } from '../store/tasks.ts'
import { videoVendor } from '../../test/support/video-vendor.ts'
import { until } from '../../test/support/gateway.ts'
import { handTimers } from '../../test/support/hand-timers.ts'
import { fundedAccount } from '../../test/support/ledger.ts'
import { standingClock } from '../../test/support/movable-clock.ts'
import { makeTaskWorld, model } from '../../test/support/tasks.ts'
import { explain } from '../vendors/dashscope/explain.ts'
import { makeChannels } from '../upstream/channels.ts'
import { Allowances, paceOf, pollWait, retryWait } from './pace.ts'
import type { TaskParts } from './parts.ts'

const count = 10_000
const minute = 60_000

/** Ten thousand open tasks that are all due at once, as after a night without a gateway. */
async function crowd() {
  const store = await openStore({ file: ':memory:' })
  await fundedAccount(store, { amount: 10n ** 15n })
  const vendor = videoVendor()
  const world = makeTaskWorld(store, { first: vendor })
  const first = await world.order()
  // Copies of the first task, each with its own ids and its own task at the vendor.
  const numbers = sql`(with recursive n(i) as (select 1 union all select i + 1 from n where i < ${count - 1}) select i from n)`
  const hold = store.db.selectFrom('hold').selectAll().where('id', '=', first.holdId)
  const { amount } = await hold.executeTakeFirstOrThrow()
  await sql`insert into hold select id || i, account_id, key_id, kind, amount, price_version, deadline, state, node,
    created_at, ended_at from hold, ${numbers} as many where id = ${first.holdId}`.execute(store.db)
  await sql`update account set held = ${nano(amount * BigInt(count))} where id = ${first.accountId}`.execute(store.db)
  const columns = Object.keys(await store.db.selectFrom('task').selectAll().executeTakeFirstOrThrow())
  const own = new Set(['id', 'hold_id', 'attempt_id', 'upstream_id'])
  const select = columns.map((name) => (own.has(name) ? sql`${sql.ref(name)} || i` : sql.ref(name)))
  await sql`insert into task (${sql.join(columns.map((name) => sql.ref(name)))})
    select ${sql.join(select)} from task, ${numbers} as many where id = ${first.id}`.execute(store.db)
  const made = vendor.tasks.get(first.upstreamId ?? '')
  if (made === undefined) throw new Error('the vendor made nothing')
  for (let i = 1; i < count; i++) vendor.tasks.set(`${made.id}${i}`, { ...made, id: `${made.id}${i}` })
  return { store, vendor, world, upstreamId: made.id }
}

test('ten thousand due tasks are polled at the vendor’s pace, none twice while others wait', async () => {
  const { store, vendor, world } = await crowd()
  const { perSecond } = paceOf({ vendor: vendor.vendor })
  const stepMs = 200
  const steps: { readonly from: number; readonly until: number; readonly polls: number }[] = []
  world.clock.advance(10 * 60_000)
  const startedAt = world.clock.monotonic()
  // The allowance starts with one second's worth, and then grows at the pace for ninety seconds.
  const seconds = 90
  for (let step = 0; step < (seconds * 1000) / stepMs; step++) {
    const before = vendor.calls.length
    const from = world.clock.monotonic()
    await world.tasks.turn()
    await world.tasks.idle()
    steps.push({ from, until: world.clock.monotonic(), polls: vendor.calls.length - before })
    world.clock.advance(stepMs)
  }
  const pollsIn = (some: typeof steps) => some.reduce((sum, { polls }) => sum + polls, 0)
  for (const [index, { from }] of steps.entries()) {
    const window = steps.slice(index, index + 5)
    // By the clock and not by the number of steps, which take longer on a busy machine.
    const windowSeconds = ((window.at(-1)?.until ?? from) - from) / 1000
    expect(pollsIn(window)).toBeLessThanOrEqual((windowSeconds + 1) * perSecond)
  }
  const total = pollsIn(steps)
  const passed = (world.clock.monotonic() - startedAt) / 1000
  expect(total).toBeGreaterThan(passed * perSecond * 0.9)
  expect(total).toBeLessThanOrEqual((passed + 1) * perSecond)
  // The longest due come first: no task is polled twice while others still wait.
  expect(Math.max(...[...vendor.tasks.values()].map((task) => task.polls))).toBeLessThanOrEqual(1)
  await world.close()
  await store.close()
}, 120_000)

/** Two channels of one vendor, and a gate that a test may shut. */
async function twoChannels(overrides: (gate: Promise<void>) => Partial<TaskParts>, vendor = videoVendor()) {
  const store = await openStore({ file: ':memory:' })
  await fundedAccount(store, { amount: 10n ** 15n })
  const gate = Promise.withResolvers<void>()
  const world = makeTaskWorld(store, { first: vendor, second: vendor }, overrides(gate.promise))
  const at = (channel: string) => world.order({ model: { ...model, offers: [{ channel, upstreamModel: 'film' }] } })
  const close = async () => {
    gate.resolve()
    await world.tasks.idle()
    await world.close()
    await store.close()
  }
  return { store, vendor, world, at, open: () => gate.resolve(), close }
}

test('a channel that hangs does not delay the tasks of another channel', async () => {
  let hanging = 0
  const vendor = videoVendor()
  const hung = new Set<string>()
  const { world, at, close } = await twoChannels(
    (gate) => ({
      transport: {
        async send(...sent) {
          const [{ url }] = sent
          if (hung.has(url.slice(url.lastIndexOf('/') + 1))) {
            hanging++
            await gate
          }
          return vendor.transport.send(...sent)
        },
      },
    }),
    vendor,
  )
  for (let i = 0; i < 300; i++) hung.add((await at('first')).upstreamId ?? '')
  const other = await at('second')
  world.clock.advance(minute)
  // Ten polls a second start, for less than a claim lasts.
  for (let second = 0; second < 40; second++) {
    await world.tasks.turn()
    world.clock.advance(1_000)
  }
  await until(() => hanging >= 64)
  expect(hanging).toBe(64)
  const polled = (await world.task(other.id)).polls
  expect(polled).toBeGreaterThan(1)
  await close()
})

/** A channel with one key, whose vendor is explained as DashScope. */
async function oneKey() {
  const video = videoVendor()
  const vendor = { ...video.vendor, id: 'dashscope', explain }
  const channel = { id: 'first', vendor, baseUrl: vendor.baseUrl, credentials: ['a-key'], weight: 1, priority: 0 }
  const clock = standingClock()
  const channels = makeChannels([channel], clock, () => 0)
  const store = await openStore({ file: ':memory:' })
  await fundedAccount(store, { amount: 10n ** 15n })
  const world = makeTaskWorld(store, { first: video }, { clock, channels: () => channels })
  const pollsIn = async (ms: number) => {
    const before = video.calls.length
    clock.advance(ms)
    while ((await world.tasks.turn()) > 0) await world.tasks.idle()
    return video.calls.length - before
  }
  const close = async () => {
    await world.close()
    await store.close()
  }
  return { video, channels, world, pollsIn, close, resting: { channel, credential: 'a-key' } }
}

test('polls refused with 429 slow down polling but leave the credential in use for chat', async () => {
  const { video, channels, world, pollsIn, close } = await oneKey()
  for (let i = 0; i < 30; i++) await world.order()
  const chatRoutes = () => [...channels.routes([{ channel: 'first', upstreamModel: 'qwen-plus' }])].length
  video.polls.push(...Array.from({ length: 8 }, () => 429))
  expect(await pollsIn(6_000)).toBe(8)
  expect(chatRoutes()).toBe(1)
  // The vendor names no time, so polls wait for one second, and then the allowance grows from zero.
  expect(await pollsIn(500)).toBe(0)
  expect(await pollsIn(1_000)).toBeGreaterThan(0)
  video.polls.push(401)
  await pollsIn(1_000)
  expect(chatRoutes()).toBe(0)
  await close()
})

test('a key that may not order now still polls, until a poll is refused with it', async () => {
  const { video, channels, world, pollsIn, close, resting } = await oneKey()
  const task = await world.order()
  // As after an order that was refused because the account has no credit left.
  const refuseOrder = () => channels.rest(resting, 60)
  refuseOrder()
  expect(await pollsIn(minute / 2)).toBe(1)
  video.polls.push(401)
  expect(await pollsIn(minute / 2)).toBe(1)
  expect(await pollsIn(minute / 2)).toBe(0)
  refuseOrder()
  expect(await pollsIn(minute)).toBe(1)
  video.become('done')
  refuseOrder()
  expect(await pollsIn(minute / 2)).toBe(1)
  expect((await world.task(task.id)).state).toBe('succeeded')
  await close()
})

test('videos that are slow to fetch delay no polls, stay with their node and are polled once', async () => {
  const vendor = videoVendor()
  vendor.onlyWithKey = true
  let fetching = 0
  const { world, at, open, close } = await twoChannels(
    (gate) => ({
      async keepResult() {
        fetching++
        await gate
        return { url: 'https://gateway.example/artifacts/1', expiresAt: world.clock.now() + minute }
      },
    }),
    vendor,
  )
  const videos: Task[] = []
  for (let i = 0; i < 100; i++) videos.push(await at('first'))
  vendor.become('done')
  const [running, quick] = [await at('first'), await at('second')]
  const quickly = vendor.tasks.get(quick.upstreamId ?? '')
  if (quickly !== undefined) quickly.word = 'done'
  const others = world.node('node_b')
  world.clock.advance(minute)
  const pollsOf = (upstreamId: string | null) => vendor.tasks.get(upstreamId ?? '')?.polls ?? 0
  const allPolled = () => [...videos, quick].every(({ upstreamId }) => pollsOf(upstreamId) > 0)
  for (let second = 0; second < 15; second++) {
    await world.tasks.turn()
    world.clock.advance(1_000)
  }
  await until(allPolled)
  for (let seconds = 0; seconds < 240; seconds += 5) {
    await world.tasks.turn()
    await others.turn()
    world.clock.advance(5_000)
  }
  expect(videos.map(({ upstreamId }) => pollsOf(upstreamId))).toEqual(videos.map(() => 1))
  expect(pollsOf(running.upstreamId)).toBeGreaterThan(5)
  // At most two of each channel are fetched at a time.
  expect(fetching).toBe(3)
  open()
  await Promise.all([world.tasks.idle(), others.idle()])
  for (const { id } of [...videos, quick]) expect((await world.task(id)).state).toBe('succeeded')
  await close()
}, 120_000)

test('a channel that is removed, or leads to another vendor, while it has open tasks is logged once per change', async () => {
  const store = await openStore({ file: ':memory:' })
  await fundedAccount(store, { amount: 10n ** 15n })
  const { vendor, transport, calls } = videoVendor()
  const there = { id: 'first', vendor, baseUrl: 'https://films.example', credentials: ['k'], weight: 1, priority: 0 }
  let configured = [there]
  const channels = () => makeChannels(configured, standingClock(), () => 0)
  const world = makeTaskWorld(store, { first: videoVendor() }, { channels, transport })
  const told = () => world.logged.filter((line) => line.includes('no longer configured')).map(levelOf)
  const { id } = await world.order()
  await world.pass(minute)
  expect(told()).toEqual([])
  configured = []
  await world.pass(minute)
  await world.pass(minute)
  expect(told()).toEqual([{ level: 50, channel: 'first' }])
  configured = [there]
  await world.pass(minute)
  configured = []
  await world.pass(minute)
  expect(told()).toHaveLength(2)
  configured = [there]
  await world.pass(minute)
  const { length } = calls
  configured = [{ ...there, vendor: videoVendor('others').vendor }]
  await world.pass(minute)
  expect(told()).toHaveLength(3)
  expect(calls).toHaveLength(length)
  expect((await world.task(id)).state).toBe('submitted')
  await world.close()
  await store.close()
})

function levelOf(line: string): unknown {
  const { level, channel } = JSON.parse(line) as { level: number; channel: string }
  return { level, channel }
}

test('jitter spreads the polls of tasks that begin together', () => {
  const pace = paceOf(undefined)
  const waits = Array.from({ length: count }, () => pollWait(pace, 0, Math.random))
  const buckets = Map.groupBy(waits, (wait) => Math.floor(wait / 100))
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(pace.firstMs * 0.8)
  expect(Math.max(...waits)).toBeLessThanOrEqual(pace.firstMs * 1.2)
  // Two seconds of jitter in buckets of a tenth: none holds much more than its share.
  expect(Math.max(...[...buckets.values()].map(({ length }) => length))).toBeLessThan((count / 20) * 1.3)
})

test('waits before polls and retries grow up to a limit', () => {
  const pace = paceOf(undefined)
  const plain = (wait: typeof pollWait) => [0, 1, 2, 3, 10, 1_000].map((times) => wait(pace, times, () => 0.5))
  expect(plain(pollWait)).toEqual([5_000, 7_500, 11_250, 15_000, 15_000, 15_000])
  expect(plain(retryWait)).toEqual([5_000, 7_500, 11_250, 16_875, 30_000, 30_000])
})

test('the allowance of a channel grows at its pace, and unused polls can be given back', () => {
  let at = 1_000 // a whole number, unlike a running clock, so that no rounding of fractions decides the test
  const allowances = new Allowances({ monotonic: () => at })
  expect(allowances.take('a', 10, 4)).toBe(4)
  expect(allowances.take('a', 10, 100)).toBe(6)
  expect(allowances.take('a', 10, 100)).toBe(0)
  expect(allowances.take('b', 10, 100)).toBe(10)
  at += 300
  expect(allowances.take('a', 10, 100)).toBe(3)
  allowances.giveBack('a', 2)
  expect(allowances.take('a', 10, 100)).toBe(2)
  at += 60_000
  expect(allowances.take('a', 10, 100)).toBe(10)
  allowances.rest('a', 2_000)
  allowances.rest('a', 500)
  at += 2_000
  expect(allowances.take('a', 10, 100)).toBe(0)
  at += 500
  expect(allowances.take('a', 10, 100)).toBe(5)
})

test('the poller looks for tasks less often while there are none', async () => {
  const store = await openStore({ file: ':memory:' })
  await fundedAccount(store, { amount: 10n ** 12n })
  const timers = handTimers()
  const world = makeTaskWorld(store, { first: videoVendor() }, { timers })
  expect(timers.waiting).toEqual([200])
  timers.fire()
  await until(() => timers.waiting.length === 1)
  expect(timers.waiting).toEqual([5_000])
  await world.order()
  expect(timers.waiting).toEqual([200])
  timers.fire()
  await until(() => timers.waiting.length === 1)
  expect(timers.waiting).toEqual([200])
  await world.close()
  await store.close()
})

test('open tasks of the other mode do not make the poller look more often', async () => {
  const store = await openStore({ file: ':memory:' })
  await fundedAccount(store, { amount: 10n ** 12n })
  const sandbox = makeTaskWorld(store, { first: videoVendor() })
  await sandbox.order()
  await sandbox.close()
  const timers = handTimers()
  const real = makeTaskWorld(store, { first: videoVendor() }, { timers, mode: 'real' })
  timers.fire()
  await until(() => timers.waiting.length === 1)
  expect(timers.waiting).toEqual([5_000])
  await real.close()
  await store.close()
})
