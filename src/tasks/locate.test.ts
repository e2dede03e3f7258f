import { describe, expect, test } from 'bun:test'
import { GatewayError } from '../base/errors.ts'
import { nano } from '../base/money.ts'
import { type VideoVendor, linkOf } from '../../test/support/video-vendor.ts'
import { balances } from '../../test/support/ledger.ts'
import { scriptedExchange } from '../../test/support/scripted-exchange.ts'
import {
  attemptsOf,
  deadlineSeconds,
  dollars,
  moneyOf,
  price,
  requestsOf,
  taskSuite,
} from '../../test/support/tasks.ts'
import { keepTriesMax } from './keep.ts'
import type { TaskParts } from './parts.ts'

const minute = 60_000

const times = (count: number, status: number) => Array.from({ length: count }, () => status)

/** Fails like our own store when it is away or full. */
const away = () => Promise.reject(new GatewayError('overloaded', 'Kept results cannot be reached at the moment.'))

/** How often the vendor was asked for the URL of a video. */
const questions = ({ calls }: VideoVendor) => calls.filter(({ path }) => path.startsWith('/files/')).length

taskSuite('a video whose record names a file', ({ begin, within }) => {
  test('the link of the video is asked for once it is made, and then given out', () =>
    within(async ({ store, vendor, world }) => {
      vendor.locates = true
      const task = await world.order()
      vendor.become('running')
      await world.pass(minute)
      expect(questions(vendor)).toBe(0)
      vendor.become('done')
      await world.pass(minute)
      const done = await world.task(task.id)
      expect(done).toMatchObject({ state: 'succeeded', result: { videoUrl: linkOf(done.upstreamId ?? '') } })
      expect(await requestsOf(store)).toMatchObject([{ cost: nano(5n * price.sold), basis: 'vendor' }])
    }))

  test('the link is asked for again after a refusal, an error under a 200 or a lost connection', () =>
    within(async ({ vendor, world }) => {
      vendor.locates = true
      const task = await world.order()
      vendor.become('done')
      for (const [trouble, hidesErrors] of [
        [503, false],
        [429, true],
        [404, false],
        [0, false],
      ] as const) {
        vendor.files.push(trouble)
        vendor.hidesErrors = hidesErrors
        await world.pass(10 * minute)
        expect((await world.task(task.id)).state).toBe('submitted')
      }
      await world.pass(10 * minute)
      expect((await world.task(task.id)).state).toBe('succeeded')
    }))

  test('a file without a link costs nothing, and what the vendor charges is our loss', () =>
    within(async ({ store, vendor, world }) => {
      vendor.locates = true
      vendor.files.push('nowhere')
      const task = await world.order()
      vendor.become('done')
      await world.pass(minute)
      expect(await world.task(task.id)).toMatchObject({ state: 'failed', failure: { code: 'upstream_no_output' } })
      expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n)), held: nano(0n) })
      const cost = nano(5n * price.bought)
      expect(await attemptsOf(store)).toMatchObject([{ vendor_cost: cost }])
      expect(await balances(store)).toMatchObject({ 'payable:films': cost })
    }))

  test('a video whose link the vendor never gives fails after a dozen questions', () =>
    within(async ({ vendor, world }) => {
      vendor.locates = true
      vendor.files.push(...times(2 * keepTriesMax, 404))
      const task = await world.order()
      vendor.become('done')
      for (let round = 0; round < 2 * keepTriesMax; round++) await world.pass(2 * minute)
      expect(await world.task(task.id)).toMatchObject({ state: 'failed', failure: { code: 'upstream_no_output' } })
      expect(questions(vendor)).toBe(keepTriesMax)
    }))

  test('the link is asked for a dozen times, however many polls failed before the video was made', () =>
    within(async ({ vendor, world }) => {
      vendor.locates = true
      const task = await world.order()
      vendor.polls.push(...times(keepTriesMax - 1, 503))
      for (let round = 1; round < keepTriesMax; round++) await world.pass(minute)
      expect(await world.task(task.id)).toMatchObject({ state: 'submitted', failures: keepTriesMax - 1 })
      vendor.become('done')
      vendor.files.push(...times(keepTriesMax - 1, 503))
      for (let round = 1; round < keepTriesMax; round++) await world.pass(minute)
      expect(await world.task(task.id)).toMatchObject({ state: 'submitted', failures: keepTriesMax - 1 })
      await world.pass(minute)
      expect((await world.task(task.id)).state).toBe('succeeded')
      expect(questions(vendor)).toBe(keepTriesMax)
    }))

  test('polls that fail or tell another state between the questions leave their number unchanged', () =>
    within(async ({ store, vendor, world }) => {
      vendor.locates = true
      const task = await world.order()
      vendor.become('done')
      vendor.files.push(...times(keepTriesMax - 1, 503))
      await world.pass(minute)
      vendor.polls.push(...times(keepTriesMax, 503))
      for (let round = 0; round < keepTriesMax; round++) await world.pass(minute)
      vendor.become('running')
      await world.pass(minute)
      expect(await world.task(task.id)).toMatchObject({ state: 'running', failures: 1 })
      vendor.become('done')
      for (let round = 1; round < keepTriesMax; round++) await world.pass(minute)
      expect((await world.task(task.id)).state).toBe('succeeded')
      expect(questions(vendor)).toBe(keepTriesMax)
      expect(await requestsOf(store)).toMatchObject([{ cost: nano(5n * price.sold), basis: 'vendor' }])
    }))

  describe('at the deadline of the task', () => {
    test('the link is asked for again, whether the vendor counts or not', async () => {
      for (const counts of [true, false]) {
        await within(async ({ store, vendor, world }) => {
          Object.assign(vendor, { locates: true, counts })
          const task = await world.order()
          vendor.become('done')
          vendor.files.push(503)
          await world.pass(deadlineSeconds * 1000)
          expect(await world.task(task.id)).toMatchObject({ state: 'submitted', failures: 1 })
          // The video is known to be made, so a poll that fails after the deadline is not the last.
          vendor.polls.push(503, 0)
          for (let round = 0; round < 2; round++) await world.pass(minute)
          expect(await world.task(task.id)).toMatchObject({ state: 'submitted', failures: 3 })
          await world.pass(minute)
          expect((await world.task(task.id)).state).toBe('succeeded')
          const charged = counts ? { cost: nano(5n * price.sold), basis: 'vendor' } : { basis: 'estimated' }
          expect(await requestsOf(store)).toMatchObject([charged])
        })
      }
    })

    test('the link is not asked for forever, and what the vendor counted is our loss, booked once', () =>
      within(async ({ store, vendor, world }) => {
        vendor.locates = true
        const task = await world.order()
        vendor.become('done')
        vendor.files.push(503)
        await world.pass(deadlineSeconds * 1000)
        vendor.polls.push(...times(keepTriesMax, 503))
        for (let round = 2; round < keepTriesMax; round++) await world.pass(minute)
        expect((await world.task(task.id)).state).toBe('submitted')
        await world.pass(minute)
        expect(await world.task(task.id)).toMatchObject({
          state: 'failed',
          failure: { code: 'upstream_no_output' },
          nextPollAt: null,
        })
        expect(await moneyOf(store)).toEqual({ posted: nano(dollars(100n)), held: nano(0n) })
        expect(await balances(store)).toMatchObject({ 'payable:films': nano(5n * price.bought) })
      }))
  })

  test('a video is fetched a dozen times, however many polls failed before it was made', async () => {
    let fetches = 0
    const keepResult: TaskParts['keepResult'] = () =>
      ++fetches < keepTriesMax
        ? Promise.reject(new Error('no room'))
        : Promise.resolve({ url: 'https://gateway.example/artifacts/1', expiresAt: world.clock.now() + minute })
    const { vendor, world } = await begin({ keepResult })
    vendor.onlyWithKey = true
    const task = await world.order()
    vendor.polls.push(...times(keepTriesMax - 1, 503))
    for (let round = 1; round < keepTriesMax; round++) await world.pass(minute)
    vendor.become('done')
    for (let round = 0; round < keepTriesMax; round++) await world.pass(minute)
    expect(await world.task(task.id)).toMatchObject({
      state: 'succeeded',
      result: { videoUrl: 'https://gateway.example/artifacts/1' },
    })
    expect(fetches).toBe(keepTriesMax)
    await world.close()
  })

  test('a video is fetched until the deadline while our store is away, and a dozen times after it', async () => {
    for (const comesBack of [true, false]) {
      let isAway = true
      const keepResult: TaskParts['keepResult'] = () =>
        isAway
          ? away()
          : Promise.resolve({ url: 'https://gateway.example/artifacts/1', expiresAt: world.clock.now() + minute })
      const { store, vendor, world } = await begin({ keepResult })
      vendor.onlyWithKey = true
      const task = await world.order()
      vendor.become('done')
      for (let round = 0; round < 2 * keepTriesMax; round++) await world.pass(minute)
      expect(await world.task(task.id)).toMatchObject({ state: 'submitted', failures: 0 })
      if (comesBack) isAway = false
      else await world.pass(deadlineSeconds * 1000)
      for (let round = 0; round < keepTriesMax; round++) await world.pass(minute)
      const ended = await world.task(task.id)
      expect(ended.state).toBe(comesBack ? 'succeeded' : 'failed')
      if (!comesBack) expect(JSON.stringify(ended.record)).not.toContain(linkOf(ended.upstreamId ?? ''))
      expect(await requestsOf(store)).toMatchObject([{ cost: nano(comesBack ? 5n * price.sold : 0n) }])
      expect((await moneyOf(store)).held).toBe(nano(0n))
      await world.close()
    }
  })

  test('few videos are fetched while our store is away, and all once it is back', async () => {
    let isAway = true
    let fetches = 0
    const keepResult: TaskParts['keepResult'] = () => {
      fetches++
      if (isAway) return away()
      return Promise.resolve({ url: 'https://gateway.example/artifacts/1', expiresAt: world.clock.now() + minute })
    }
    const { vendor, world } = await begin({ keepResult })
    vendor.onlyWithKey = true
    const tasks = []
    for (let videos = 0; videos < 10; videos++) tasks.push(await world.order())
    vendor.become('done')
    for (let seconds = 0; seconds < 120; seconds += 5) await world.pass(5_000)
    expect(fetches).toBeGreaterThanOrEqual(4)
    // Two are fetched at a time, every half a minute.
    expect(fetches).toBeLessThanOrEqual(10)
    // Our trouble uses up none of the tries to fetch a video.
    for (const { id } of tasks) expect((await world.task(id)).failures).toBe(0)
    isAway = false
    for (let seconds = 0; seconds < 60; seconds += 5) await world.pass(5_000)
    for (const { id } of tasks) expect((await world.task(id)).state).toBe('succeeded')
    await world.close()
  })

  test('a video with a public link is given out under that link while our store is away', async () => {
    const video = { body: new Uint8Array(10), mediaType: 'video/mp4', header: () => null }
    const { vendor, world } = await begin({ keepsAll: true, keepResult: away, fetchLink: () => Promise.resolve(video) })
    const task = await world.order()
    vendor.become('done')
    for (let round = 0; round < keepTriesMax; round++) await world.pass(minute)
    const done = await world.task(task.id)
    expect(done).toMatchObject({ state: 'succeeded', result: { videoUrl: linkOf(done.upstreamId ?? '') } })
    await world.close()
  })

  test('a store that hangs does not delay a stop, and the next node fetches the video', async () => {
    let hangs = true
    const keepResult: TaskParts['keepResult'] = (_, { signal }) =>
      new Promise((resolve, reject) => {
        if (!hangs) resolve({ url: 'https://gateway.example/artifacts/1', expiresAt: world.clock.now() + minute })
        signal.addEventListener('abort', () => reject(new Error('nobody waits')), { once: true })
      })
    const { vendor, world } = await begin({ keepResult })
    vendor.onlyWithKey = true
    const task = await world.order()
    vendor.become('done')
    world.clock.advance(minute)
    await world.tasks.turn()
    await world.tasks.close()
    expect(await world.task(task.id)).toMatchObject({ state: 'submitted', failures: 0, claimOwner: null })
    hangs = false
    const next = world.node('node_b')
    world.clock.advance(minute)
    await next.turn()
    await next.idle()
    expect((await world.task(task.id)).state).toBe('succeeded')
    await world.close()
  })

  test('a video that only our credential opens is kept in our store, and no error in its place', async () => {
    let kept = 0
    const keepResult: TaskParts['keepResult'] = () =>
      Promise.resolve({ url: `https://gateway.example/artifacts/${++kept}`, expiresAt: world.clock.now() + minute })
    const { vendor, world } = await begin({ keepResult })
    Object.assign(vendor, { locates: true, onlyWithKey: true })
    vendor.films.push(404, 503)
    const task = await world.order()
    vendor.become('done')
    for (let rounds = 0; rounds < 3; rounds++) await world.pass(minute)
    expect((await world.task(task.id)).result).toMatchObject({ videoUrl: 'https://gateway.example/artifacts/1' })
    expect(vendor.films).toEqual([])
    await world.close()
  })

  test('our credential is sent to no origin but that of the channel, wherever redirects lead', async () => {
    const places = ['/results/moved.mp4', 'https://films.example:8443/film.mp4']
    const keyed: string[] = []
    const plain: string[] = []
    const { vendor, world } = await begin({
      transport: {
        send(...call) {
          const [{ url }] = call
          if (!url.includes('/results/')) return vendor.transport.send(...call)
          keyed.push(url)
          const location = places.shift() ?? null
          const header = (name: string) => (name === 'location' ? location : null)
          return Promise.resolve({ kind: 'response', exchange: { ...scriptedExchange(302, []), header } })
        },
      },
      fetchLink({ url }) {
        plain.push(url)
        return Promise.resolve({ body: new Uint8Array(10), mediaType: 'video/mp4', header: () => null })
      },
      keepResult: () => Promise.resolve({ url: 'https://gateway.example/artifacts/1', expiresAt: 0 }),
    })
    vendor.onlyWithKey = true
    const task = await world.order()
    vendor.become('done')
    await world.pass(minute)
    const { state, upstreamId } = await world.task(task.id)
    expect(state).toBe('succeeded')
    expect(keyed).toEqual([linkOf(upstreamId ?? ''), 'https://films.example/results/moved.mp4'])
    expect(plain).toEqual(['https://films.example:8443/film.mp4'])
    await world.close()
  })

  test('the download of a public video has the time limit of downloads', async () => {
    const asked: unknown[] = []
    const call = { connectMs: 1_000, firstByteMs: 1_000, idleMs: 1_000, totalMs: minute }
    const film = { body: new Uint8Array(10), mediaType: 'video/mp4', header: () => null }
    const { vendor, world } = await begin({
      keepsAll: true,
      timeouts: { create: call, ask: call, fetch: { ...call, totalMs: 10 * minute } },
      keepResult: () => Promise.resolve({ url: 'https://gateway.example/artifacts/1', expiresAt: 0 }),
      fetchLink: (link) => {
        asked.push(link)
        return Promise.resolve(film)
      },
    })
    await world.order()
    vendor.become('done')
    await world.pass(minute)
    expect(asked).toMatchObject([{ transport: 'linked', totalMs: 10 * minute }])
    await world.close()
  })

  test.each(['gone', 'expired'])(
    'a made video that its vendor gives up before it could be kept (%s) is recorded with its cost',
    async (word) => {
      const { store, vendor, world } = await begin({ keepResult: away })
      vendor.onlyWithKey = true
      const task = await world.order()
      vendor.become('done')
      await world.pass(minute)
      expect((await world.task(task.id)).usage).toMatchObject({ video: { seconds: 5 } })
      vendor.become(word)
      for (let polls = 0; polls < 4; polls++) await world.pass(minute)
      expect((await world.task(task.id)).state).toBe('failed')
      expect(await requestsOf(store)).toMatchObject([{ cost: nano(0n) }])
      expect(await attemptsOf(store)).toMatchObject([{ vendor_cost: nano(5n * price.bought), delivered: false }])
      await world.close()
    },
  )

  test('the cost of a made video stays booked if its vendor finds it again without a usage', async () => {
    const { store, vendor, world } = await begin({ keepResult: away })
    vendor.onlyWithKey = true
    const task = await world.order()
    vendor.become('done')
    await world.pass(minute)
    vendor.become('gone')
    for (let polls = 0; polls < 4; polls++) await world.pass(minute)
    vendor.become('done')
    vendor.counts = false
    await world.pass(60 * minute)
    expect(await world.task(task.id)).toMatchObject({ state: 'failed', nextPollAt: null })
    expect(await attemptsOf(store)).toMatchObject([{ vendor_cost: nano(5n * price.bought), delivered: false }])
    await world.close()
  })
})

taskSuite('a poll that is refused inside a 200', ({ within }) => {
  test('the poll is judged by the status in its body, and its task stays unchanged', () =>
    within(async ({ vendor, world }) => {
      vendor.hidesErrors = true
      const task = await world.order()
      vendor.become('done')
      vendor.polls.push(429)
      await world.pass(minute)
      expect((await world.task(task.id)).state).toBe('submitted')
      const refused = world.logged.map((line) => JSON.parse(line) as { msg?: string; status?: number; kind?: string })
      expect(refused.find(({ msg }) => msg === 'a poll was refused')).toMatchObject({ status: 429, kind: 'too-many' })
      await world.pass(minute)
      expect((await world.task(task.id)).state).toBe('succeeded')
    }))
})
