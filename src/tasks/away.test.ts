import { expect, test } from 'bun:test'
import { systemTimers } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import { newRequestId } from '../base/ids.ts'
import { nano } from '../base/money.ts'
import { beginAnswer, freeAnswer, keepAnswer } from '../store/idempotency.ts'
import { eachEngine } from '../../test/support/engines.ts'
import { videoVendor } from '../../test/support/video-vendor.ts'
import { flakyStore } from '../../test/support/flaky-store.ts'
import { until } from '../../test/support/gateway.ts'
import { fundedAccount } from '../../test/support/ledger.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import {
  accountId,
  attemptsOf,
  dollars,
  held,
  makeTaskWorld,
  model,
  moneyOf,
  orderOf,
  type TaskOverrides,
} from '../../test/support/tasks.ts'

const minute = 60_000
const offers = ['first', 'second'].map((channel) => ({ channel, upstreamModel: `film-${channel}` }))
const errorLevel = 50
const notAgain = { kind: 'overloaded', details: { shouldRetry: false } }

eachEngine('video tasks while the database is away', (open) => {
  const begin = async (overrides: TaskOverrides = {}) => {
    const store = await open()
    await fundedAccount(store, { id: accountId, amount: dollars(100n) })
    const database = flakyStore(store)
    const vendor = videoVendor()
    const world = makeTaskWorld(database.store, { first: vendor, second: vendor }, overrides)
    const states = async () => (await store.db.selectFrom('task').select('state').execute()).map(({ state }) => state)
    return { store, database, vendor, world, states }
  }
  type World = Awaited<ReturnType<typeof begin>>['world']

  const passHours = async (world: World) => {
    for (let looks = 0; looks < 12; looks++) await world.pass(2 * minute)
  }

  test('an order is refused at once as overloaded and may be retried', async () => {
    const { database, vendor, world, states } = await begin()
    database.isAway = true
    expect(await thrownBy(world.order())).toMatchObject({ kind: 'overloaded', details: { retryAfterSeconds: 1 } })
    expect(world.logged.join('')).not.toContain('is not recorded')
    database.isAway = false
    expect([await states(), vendor.tasks.size]).toEqual([[], 0])
    await world.close()
  })

  test('a commit whose answer was lost is undone, and a retry buys only one video', async () => {
    const { store, database, vendor, world, states } = await begin()
    database.answersToLose = 1
    const told = await thrownBy(world.order())
    expect(told).toMatchObject({ kind: 'overloaded', details: { retryAfterSeconds: 1 } })
    expect(await states()).toEqual(['refused'])
    await world.order()
    await passHours(world)
    expect(vendor.tasks.size).toBe(1)
    expect((await moneyOf(store)).held).toBe(held)
    await world.close()
  })

  test('a commit that cannot be undone at once is undone later, and the client is told not to retry', async () => {
    const { store, database, vendor, world, states } = await begin()
    Object.assign(database, { answersToLose: 1, staysAway: true })
    expect(await thrownBy(world.order())).toMatchObject(notAgain)
    expect(await states()).toEqual(['creating'])
    database.isAway = false
    await until(async () => (await states())[0] === 'refused')
    await passHours(world)
    expect(vendor.tasks.size).toBe(0)
    expect((await moneyOf(store)).held).toBe(nano(0n))
    await world.close()
  })

  test.each(['as it is recorded', 'as its vendor refuses it'] as const)(
    'an order that fails %s leaves no answer under its Idempotency-Key once it is undone',
    async (when) => {
      const vendor = videoVendor()
      const { store, database, world, states } = await begin({
        transport: {
          async send(...call) {
            database.isAway = true
            return vendor.transport.send(...call)
          },
        },
      })
      const requestId = newRequestId()
      const id = { accountId, path: '/v1/videos/generations', keyDigest: 'once' }
      await beginAnswer(store, id, { fingerprint: '', requestId, node: 'node_a', keepMs: minute }, () => {})
      const answers = () => store.db.selectFrom('idempotency').select('status').execute()
      if (when === 'as it is recorded') Object.assign(database, { answersToLose: 1, staysAway: true })
      else vendor.tricks.push({ status: 400 })
      const ordered = world.order({
        requestId,
        remember: (tx) => keepAnswer(tx, id, { requestId, status: 202, sealedBody: 'the task' }),
        forget: (tx) => freeAnswer(tx, id, requestId),
      })
      expect(await thrownBy(ordered)).toMatchObject(notAgain)
      expect(await answers()).toEqual([{ status: 202 }])
      database.isAway = false
      await until(async () => (await states())[0] === 'refused')
      expect(await answers()).toEqual([])
      expect((await moneyOf(store)).held).toBe(nano(0n))
      await world.close()
    },
  )

  test('a commit is not undone after another node has sent the order', async () => {
    const { store, database, vendor, world, states } = await begin()
    Object.assign(database, { answersToLose: 1, staysAway: true })
    await thrownBy(world.order())
    await store.db.updateTable('task').set({ sends: 2 }).execute()
    database.isAway = false
    await until(() => world.logged.some((line) => line.includes('recorded after all')))
    expect(await states()).toEqual(['creating'])
    expect(vendor.tasks.size).toBe(0)
    await world.close()
  })

  test('the upstream id of a task is recorded once the database is back', async () => {
    const vendor = videoVendor()
    vendor.finds = false
    const { database, world, states } = await begin({
      transport: {
        async send(...call) {
          database.isAway = true
          return vendor.transport.send(...call)
        },
      },
    })
    const task = await world.order()
    const [upstreamId = ''] = [...vendor.tasks.keys()]
    expect(task).toMatchObject({ state: 'submitted', upstreamId })
    const complaint = world.logged.find((line) => line.includes('is not recorded yet'))
    expect(JSON.parse(complaint ?? '')).toMatchObject({ level: errorLevel, task: task.id, upstream: upstreamId })
    database.isAway = false
    await until(async () => (await states())[0] === 'submitted')
    expect(await world.task(task.id)).toMatchObject({ upstreamId, inDoubt: false })
    await world.close()
  })

  test.each(['has', 'may have'] as const)(
    'a video that its vendor %s is not ordered again when the database fails while it is recorded',
    async (what) => {
      const vendor = videoVendor()
      const { store, database, world } = await begin({
        transport: {
          async send(...call) {
            const answer = await vendor.transport.send(...call)
            // Acts as if our own commit had taken place and its answer had been lost.
            await store.db.updateTable('task').set({ state: 'submitted', upstream_id: 'film_1' }).execute()
            database.queriesLeft = 1
            if (what === 'has') return answer
            return { kind: 'failed', error: new GatewayError('upstream-failed', 'cut'), delivery: 'unknown' }
          },
        },
      })
      const task = await world.order()
      expect([vendor.tasks.size, task.inDoubt]).toEqual([1, what === 'may have'])
      Object.assign(database, { isAway: false, queriesLeft: Infinity })
      expect(await world.task(task.id)).toMatchObject({ state: 'submitted', upstreamId: 'film_1' })
      await world.close()
    },
  )

  test('a bug after the order was sent is an error that must not be retried', async () => {
    const vendor = videoVendor()
    const { store, database, world } = await begin({
      transport: {
        async send(...call) {
          const answer = await vendor.transport.send(...call)
          Object.defineProperty(database.store, 'db', { value: null, configurable: true })
          return answer
        },
      },
    })
    expect(await thrownBy(world.order())).toMatchObject({
      kind: 'bug',
      details: { shouldRetry: false, cause: expect.any(TypeError) },
    })
    Object.defineProperty(database.store, 'db', { value: store.db })
    await world.close()
  })

  test('a stop ends the retries and logs the upstream id that was not recorded', async () => {
    const vendor = videoVendor()
    const { database, world } = await begin({
      transport: {
        async send(...call) {
          database.isAway = true
          return vendor.transport.send(...call)
        },
      },
    })
    await world.order()
    await world.close()
    const [upstreamId = ''] = [...vendor.tasks.keys()]
    expect(world.logged.find((line) => line.includes('the node stops before'))).toContain(upstreamId)
    database.isAway = false
  })

  test('an order in doubt is found by a later poll and not sent again', async () => {
    const { database, vendor, world } = await begin({
      transport: {
        async send(...call) {
          if (call[0].method === undefined) database.isAway = true
          return vendor.transport.send(...call)
        },
      },
    })
    vendor.tricks.push('lose')
    const task = await world.order()
    expect(task).toMatchObject({ state: 'creating', inDoubt: true })
    database.isAway = false
    world.clock.advance(10 * minute)
    await passHours(world)
    expect(await world.task(task.id)).toMatchObject({ state: 'submitted' })
    expect(vendor.tasks.size).toBe(1)
    await world.close()
  })

  test('an order to be sent again waits for the database to name the draft that it finishes', async () => {
    const losses = [1]
    const { database, vendor, world } = await begin({
      callbacks: {
        urlOf() {
          // The draft is looked up next.
          if (vendor.calls.some(({ path }) => path.startsWith('/find'))) database.queriesToLose = losses.pop() ?? 0
          return 'https://gateway.example/callbacks/video/1'
        },
        taskOf: () => undefined,
      },
    })
    const draft = await world.order()
    vendor.tricks.push('drop')
    const { id } = await world.order({ ask: { ...orderOf().ask, draftOf: draft.id } })
    for (let looks = 0; looks < 4; looks++) await world.pass(2 * minute)
    expect(losses).toEqual([])
    expect(await world.task(id)).toMatchObject({ state: 'submitted', sends: 2 })
    await world.close()
  })

  test('a link of the client that cannot be reached is not taken for the database: the order fails', async () => {
    const picture = { body: new Uint8Array(), mediaType: 'image/png', header: () => null }
    const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    const unreachable = new GatewayError('bad-request', 'The URL cannot be reached.', { code: 'invalid_url', cause })
    const answers = [picture]
    const { store, vendor, world } = await begin({
      fetchLink: () => Promise.resolve(answers.pop() ?? Promise.reject(unreachable)),
    })
    vendor.tricks.push('drop')
    const media = [{ role: 'first-frame', url: 'https://customer.example/' }] as const
    const { id } = await world.order({ ask: { ...orderOf().ask, media } })
    for (let looks = 0; looks < 4; looks++) await world.pass(2 * minute)
    expect(await world.task(id)).toMatchObject({ state: 'failed', failure: { code: 'invalid_url' } })
    expect((await moneyOf(store)).held).toBe(nano(0n))
    await world.close()
  })

  test('a move to the next channel is made once when the answer of its commit is lost', async () => {
    const { store, database, vendor, world } = await begin({
      transport: {
        send(...call) {
          // The next commit is the move to the next vendor.
          if (vendor.tricks.length > 0) database.answersToLose = 1
          return vendor.transport.send(...call)
        },
      },
    })
    vendor.tricks.push('unsent')
    const task = await world.order({ model: { ...model, offers } })
    expect(task).toMatchObject({ state: 'submitted', channel: 'second' })
    expect(vendor.tasks.size).toBe(1)
    expect(await attemptsOf(store)).toMatchObject([{ channel: 'first', status: 0 }])
    await world.close()
  })

  test('a clock that is set back meanwhile delays no poll', async () => {
    const { database, vendor, world } = await begin()
    const task = await world.order()
    await world.pass(minute)
    database.isAway = true
    world.clock.setBack(60 * minute)
    for (let looks = 0; looks < 2; looks++) await thrownBy(world.pass(minute / 4))
    database.isAway = false
    vendor.become('done')
    await world.pass(minute / 2)
    expect((await world.task(task.id)).state).toBe('succeeded')
    expect(world.logged.filter((line) => line.includes('the clock was set back'))).toHaveLength(1)
    await world.close()
  })

  test('a client that waits for a task gets the task instead of an error', async () => {
    const { database, world } = await begin({ timers: systemTimers })
    const task = await world.order()
    database.isAway = true
    const waited = await world.tasks.wait(task, 20, new AbortController().signal)
    expect(waited).toEqual(task)
    database.isAway = false
    await world.close()
  })

  test('a task whose end could not be recorded is polled again as soon as the database answers', async () => {
    let isFailing = false
    const { store, database, vendor, world } = await begin({
      transport: {
        send(...call) {
          if (isFailing) database.commitsToLose = 1
          isFailing = false
          return vendor.transport.send(...call)
        },
      },
    })
    const task = await world.order()
    await world.pass(minute)
    vendor.become('done')
    isFailing = true
    await world.pass(minute / 2)
    expect(world.logged.join('')).toContain('polling a task failed')
    expect((await world.task(task.id)).state).toBe('succeeded')
    expect((await moneyOf(store)).held).toBe(nano(0n))
    expect(await attemptsOf(store)).toHaveLength(1)
    await world.close()
  })
})
