import { describe, expect, test } from 'bun:test'
import { nano } from '../base/money.ts'
import { linkOf } from '../../test/support/video-vendor.ts'
import { balances } from '../../test/support/ledger.ts'
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
  usedOf,
} from '../../test/support/tasks.ts'
import type { TaskParts } from './parts.ts'
import { showTask } from './show.ts'

const minute = 60_000

taskSuite('video tasks', ({ begin, within }) => {
  test("a task is charged by the vendor's count at the pinned prices, and makes one event", () =>
    within(async ({ store, vendor, world }) => {
      const task = await world.order({ webhookUrl: 'https://customer.example/hook' })
      expect(task).toMatchObject({ state: 'submitted', upstreamId: expect.stringMatching(/^up-/), ask: null })
      expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n)), held })
      const [accepted] = await requestsOf(store)
      expect(accepted).toMatchObject({ id: task.requestId, status: 202, cost: nano(0n), hold_id: task.holdId })

      vendor.become('running')
      await world.pass(minute)
      expect(await world.task(task.id)).toMatchObject({ state: 'running', polls: 1 })
      vendor.become('done')
      await world.pass(minute)
      const done = await world.task(task.id)
      expect(done).toMatchObject({ state: 'succeeded', nextPollAt: null, result: { seed: 7 } })

      const charge = nano(5n * price.sold)
      const cost = nano(5n * price.bought)
      expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n) - charge), held: nano(0n) })
      expect(await balances(store)).toMatchObject({ 'cost:films': nano(0n - cost), 'payable:films': cost })
      const [request] = await requestsOf(store)
      expect(request).toMatchObject({ cost: charge, basis: 'vendor', usage: { video: { seconds: 5 } } })
      expect(await attemptsOf(store)).toMatchObject([{ id: task.attemptId, vendor_cost: cost, status: 200 }])
      expect(await usedOf(store)).toMatchObject([{ requests: 1, cost: charge, vendor_cost: cost, video_seconds: 5 }])

      const [event, ...more] = await eventsOf(store)
      expect(more).toEqual([])
      const told = JSON.parse(event?.payload ?? '') as { data: object }
      expect(told).toMatchObject({ type: 'video.generation.succeeded', data: { id: task.id, status: 'succeeded' } })
      expect(world.told()).toBe(1)
    }))

  // No timer fires in these tests, so that nothing but the poll can tell.
  test('a request that waits for a task is answered by the poll that sees its end', () =>
    within(async ({ vendor, world }) => {
      const task = await world.order()
      const waited = world.tasks.wait(task, minute, new AbortController().signal)
      vendor.become('done')
      await world.pass(minute)
      expect(await waited).toMatchObject({ id: task.id, state: 'succeeded' })
    }))

  test('a task is charged at the prices of its order even if they change meanwhile', () =>
    within(async ({ store, vendor, world }) => {
      const dear = { ...model, prices: { ...model.prices, perSecond: { '720p': model.prices.perSecond['720p'] } } }
      const task = await world.order({ model: dear as typeof model })
      Object.assign(dear.prices.perSecond, { '720p': 1n })
      vendor.become('done')
      await world.pass(minute)
      expect((await requestsOf(store))[0]).toMatchObject({ id: task.requestId, cost: nano(5n * price.sold) })
    }))

  test.each([
    [15, 'platform:loss'],
    [20, 'platform:loss'],
    // A count worth more than twice the hold is taken for a miscount, whose excess waits in suspense for an operator.
    [21, 'suspense'],
  ])('when a vendor counts %d seconds, the excess over the hold of ten goes to %s', (seconds, bearer) =>
    within(async ({ store, vendor, world }) => {
      vendor.seconds = seconds
      await world.order()
      vendor.become('done')
      await world.pass(minute)
      expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n) - held), held: nano(0n) })
      expect((await balances(store))[bearer]).toBe(nano(BigInt(10 - seconds) * price.sold))
    }),
  )

  test('a video without usage is charged by what was asked for, and marked as estimated', () =>
    within(async ({ store, vendor, world }) => {
      vendor.counts = false
      await world.order()
      vendor.become('done')
      await world.pass(minute)
      expect((await requestsOf(store))[0]).toMatchObject({ basis: 'estimated', cost: held })
      expect(await attemptsOf(store)).toMatchObject([{ vendor_cost: nano(10n * price.bought) }])
    }))

  // A count without a price must not keep a task from ending.
  test.each([Number.NaN, -3])('a count of %d seconds is ignored, and the charge marked as estimated', (seconds) =>
    within(async ({ store, vendor, world }) => {
      vendor.seconds = seconds
      await world.order()
      vendor.become('done')
      await world.pass(minute)
      expect((await requestsOf(store))[0]).toMatchObject({ basis: 'estimated', cost: held })
    }),
  )

  test('an estimated charge is for the seconds asked for, not for the whole hold', () =>
    within(async ({ store, vendor, world }) => {
      vendor.counts = false
      // The hold also covers the client's input video.
      await world.order({ ask: { ...orderOf().ask, seconds: 4 } })
      vendor.become('done')
      await world.pass(minute)
      const [request] = await requestsOf(store)
      expect(request).toMatchObject({
        basis: 'estimated',
        cost: nano(4n * price.sold),
        usage: { video: { seconds: 4 } },
      })
    }))

  test('a link expires a day after the vendor made the video, not a day after we saw it', () =>
    within(async ({ vendor, world }) => {
      const day = 24 * 60 * minute
      const expiryOf = async (madeAt: (now: number) => number) => {
        const task = await world.order()
        vendor.madeAt = madeAt(world.clock.now())
        vendor.become('done')
        await world.pass(60 * minute)
        const { result, finishedAt } = await world.task(task.id)
        return [result?.expiresAt, vendor.madeAt + day, (finishedAt ?? 0) + day] as const
      }
      const [expiresAt, afterMade] = await expiryOf((now) => now + minute)
      expect(expiresAt).toBe(afterMade)
      // A time before the task was created, or in the future, is not believed.
      for (const wrong of [-minute, 600 * minute]) {
        const [expires, , afterSeen] = await expiryOf((now) => now + wrong)
        expect(Math.abs((expires ?? 0) - afterSeen)).toBeLessThan(minute)
      }
    }))

  describe('a task that produces no video', () => {
    const endings = [
      { word: 'failed', state: 'failed', code: 'Unsuitable' },
      { word: 'expired', state: 'failed', code: 'timeout' },
      { word: 'cancelled', state: 'cancelled', code: undefined },
    ] as const
    test.each(endings)('a task that ends as $word costs nothing', ({ word, state, code }) =>
      within(async ({ store, vendor, world }) => {
        const task = await world.order({ webhookUrl: 'https://customer.example/hook' })
        vendor.become(word)
        await world.pass(minute)
        const over = await world.task(task.id)
        expect(over).toMatchObject({ state, nextPollAt: null })
        expect(over.failure?.code).toBe(code as string)
        expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n)), held: nano(0n) })
        expect(await eventsOf(store)).toHaveLength(1)
        expect(await usedOf(store)).toMatchObject([{ requests: 1, cost: nano(0n) }])
      }),
    )

    test('a success without a video costs nothing, and what the vendor charges is our loss', () =>
      within(async ({ store, vendor, world }) => {
        const task = await world.order()
        vendor.become('empty')
        await world.pass(minute)
        expect((await world.task(task.id)).failure?.code).toBe('upstream_no_output')
        expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n)), held: nano(0n) })
        expect((await balances(store))['platform:loss']).toBe(nano(-5n * price.bought))
      }))

    test('a task that the vendor has lost fails after four polls over a minute', () =>
      within(async ({ vendor, world }) => {
        const task = await world.order()
        vendor.tasks.clear()
        for (let looks = 0; looks < 3; looks++) {
          await world.pass(20_000)
          expect((await world.task(task.id)).state).toBe('submitted')
        }
        await world.pass(20_000)
        expect((await world.task(task.id)).failure?.code).toBe('upstream_task_lost')
      }))

    test('what the vendor charges for a lost task that it finds again is our loss', () =>
      within(async ({ store, vendor, world }) => {
        const task = await world.order()
        const made = [...vendor.tasks]
        vendor.tasks.clear()
        for (let looks = 0; looks < 4; looks++) await world.pass(20_000)
        expect((await world.task(task.id)).state).toBe('failed')
        for (const [id, one] of made) vendor.tasks.set(id, one)
        vendor.become('done')
        await world.pass(40 * minute)
        expect(await world.task(task.id)).toMatchObject({ state: 'failed', nextPollAt: null })
        expect((await balances(store))['platform:loss']).toBe(nano(-5n * price.bought))
      }))
  })

  test('unknown states and failed polls leave the state of a task unchanged', () =>
    within(async ({ store, vendor, world }) => {
      const task = await world.order()
      vendor.become('running')
      await world.pass(minute)
      vendor.become('pondering')
      await world.pass(minute)
      vendor.become('queued')
      await world.pass(minute)
      vendor.polls.push(500, 429, 0, 401)
      for (let looks = 0; looks < 4; looks++) await world.pass(minute)
      expect(await world.task(task.id)).toMatchObject({ state: 'running', failures: 4 })
      expect(world.logged.join('')).toContain('a vendor reported an unknown state')
      expect(world.tasks.unknownStates.of('first')).toEqual({ count: 1, last: 'pondering' })
      expect((await moneyOf(store)).held).toBe(held)
      vendor.become('done')
      await world.pass(minute)
      expect((await world.task(task.id)).state).toBe('succeeded')
    }))

  describe('a task past its deadline', () => {
    test('the task fails, and a video that is made too late is our loss, booked once', () =>
      within(async ({ store, vendor, world }) => {
        const task = await world.order()
        vendor.become('running')
        await world.pass(minute)
        world.clock.advance(deadlineSeconds * 1000)
        await world.tasks.turn()
        await world.tasks.idle()
        expect((await world.task(task.id)).failure?.code).toBe('timeout')
        expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n)), held: nano(0n) })

        // The next poll finds it still running: it may yet be made and charged, so it stays watched.
        await world.pass(40 * minute)
        expect((await world.task(task.id)).nextPollAt).not.toBeNull()
        vendor.become('done')
        await world.pass(40 * minute)
        await world.pass(60 * minute)
        const late = await world.task(task.id)
        expect(late).toMatchObject({ state: 'failed', nextPollAt: null })
        expect(late.failure?.code).toBe('timeout')
        expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n)), held: nano(0n) })
        expect((await balances(store))['platform:loss']).toBe(nano(-5n * price.bought))
        expect(await attemptsOf(store)).toMatchObject([{ vendor_cost: nano(5n * price.bought) }])
      }))

    test('the task is watched every half hour, and for two days at most', () =>
      within(async ({ vendor, world }) => {
        const task = await world.order()
        vendor.become('running')
        await world.pass(deadlineSeconds * 1000 + minute)
        const polls = async (ms: number) => {
          const before = vendor.calls.length
          await world.pass(ms)
          return vendor.calls.length - before
        }
        const firstHour = []
        for (let times = 0; times < 6; times++) firstHour.push(await polls(10 * minute))
        expect(firstHour).toEqual([0, 0, 1, 0, 0, 1])
        expect(await polls(46 * 60 * minute)).toBe(1)
        expect((await world.task(task.id)).nextPollAt).not.toBeNull()
        expect(await polls(60 * minute)).toBe(0)
        expect((await world.task(task.id)).nextPollAt).toBeNull()
      }))

    test('a late video that another node has claimed is neither booked nor logged', async () => {
      let isTaken = false
      const { store, vendor, world } = await begin({
        transport: {
          async send(...call) {
            if (isTaken) await store.db.updateTable('task').set({ claim_owner: 'node_b' }).execute()
            return vendor.transport.send(...call)
          },
        },
      })
      await world.order()
      vendor.become('running')
      await world.pass(deadlineSeconds * 1000 + minute)
      vendor.become('done')
      isTaken = true
      await world.pass(31 * minute)
      expect((await balances(store))['platform:loss']).toBeUndefined()
      expect(world.logged.join('')).not.toContain('a video came after it was given up')
      await world.close()
    })

    test('the task is polled once more, and a video that was made in time is delivered', () =>
      within(async ({ store, vendor, world }) => {
        await world.order()
        vendor.become('done')
        await world.pass(deadlineSeconds * 1000 + minute)
        expect((await requestsOf(store))[0]).toMatchObject({ cost: nano(5n * price.sold), basis: 'vendor' })
      }))

    test('the task is no longer polled once its vendor says that it failed', () =>
      within(async ({ vendor, world }) => {
        const task = await world.order()
        vendor.become('running')
        await world.pass(deadlineSeconds * 1000 + minute)
        vendor.become('failed')
        await world.pass(40 * minute)
        expect((await world.task(task.id)).nextPollAt).toBeNull()
      }))

    test('the task is no longer polled after two days', () =>
      within(async ({ vendor, world }) => {
        const task = await world.order()
        vendor.become('running')
        await world.pass(deadlineSeconds * 1000 + minute)
        expect((await world.task(task.id)).nextPollAt).not.toBeNull()
        await world.pass(49 * 60 * minute)
        expect((await world.task(task.id)).nextPollAt).toBeNull()
      }))
  })

  test('three nodes that see the end of a task at once end it only once', () =>
    within(async ({ store, vendor, world }) => {
      const nodes = [world.tasks, world.node('node_b'), world.node('node_c')]
      const tasks = await Promise.all(
        Array.from({ length: 6 }, () => world.order({ webhookUrl: 'https://c.example/' })),
      )
      vendor.become('failed')
      world.clock.advance(minute)
      // The claims run out, so that every node claims the tasks and hears the news.
      for (let rounds = 0; rounds < 3; rounds++) {
        await Promise.all(nodes.map((node) => node.turn()))
        world.clock.advance(2 * minute)
      }
      await Promise.all(nodes.map((node) => node.idle()))
      for (const { id } of tasks) expect((await world.task(id)).state).toBe('failed')
      expect(await eventsOf(store)).toHaveLength(6)
      expect(await usedOf(store)).toMatchObject([{ requests: 6 }])
    }))

  test('the tasks of a node that is gone are taken over by another node', () =>
    within(async ({ vendor, world }) => {
      const task = await world.order()
      await world.tasks.close()
      vendor.become('done')
      const other = world.node('node_b')
      world.clock.advance(10 * minute)
      await other.turn()
      await other.idle()
      expect((await world.task(task.id)).state).toBe('succeeded')
    }))

  test('a callback only triggers a poll, whose answer decides the state of the task', () =>
    within(async ({ vendor, world }) => {
      const task = await world.order()
      const [made] = [...vendor.tasks.values()]
      if (made === undefined) throw new Error('nothing was made')
      const { callbackUrl } = made.body as { callbackUrl: string }
      const token = callbackUrl.slice(callbackUrl.lastIndexOf('/') + 1)
      expect(await world.tasks.hint('vid_0.nonsense')).toBe('unknown')
      expect(await world.tasks.hint(`${task.id}.${'A'.repeat(43)}`)).toBe('unknown')
      vendor.become('done')
      expect(await world.tasks.hint(token)).toBe('heard')
      await world.tasks.turn()
      await world.tasks.idle()
      expect((await world.task(task.id)).state).toBe('succeeded')
      // A hint about a task that is over schedules no poll.
      expect(await world.tasks.hint(token)).toBe('heard')
      expect((await world.task(task.id)).nextPollAt).toBeNull()
    }))

  test('a video that only our credential opens is kept before its task succeeds', async () => {
    let isFull = true
    let film = ''
    const keepResult: TaskParts['keepResult'] = async (result) => {
      if (isFull) throw new Error('no room')
      film = await new Response(result as ReadableStream<Uint8Array>).text()
      return { url: 'https://gateway.example/artifacts/1', expiresAt: world.clock.now() + minute }
    }
    const { vendor, world } = await begin({ keepResult })
    vendor.onlyWithKey = true
    const task = await world.order()
    vendor.become('done')
    await world.pass(minute)
    const unkept = await world.task(task.id)
    expect(unkept.state).toBe('submitted')
    expect(JSON.stringify(showTask(unkept, world.clock.now()))).not.toContain(linkOf(unkept.upstreamId ?? ''))
    isFull = false
    await world.pass(minute)
    const done = await world.task(task.id)
    expect(done).toMatchObject({ state: 'succeeded', result: { vendorUrl: linkOf(done.upstreamId ?? '') } })
    expect(done.result?.videoUrl).toBe('https://gateway.example/artifacts/1')
    expect(film).toBe(`the film of /results/${done.upstreamId}.mp4`)
    await world.close()
  })
})
