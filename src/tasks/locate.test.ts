import { expect, test } from 'bun:test'
import { nano } from '../base/money.ts'
import { linkOf } from '../../test/support/film-vendor.ts'
import { balances } from '../../test/support/ledger.ts'
import { attemptsOf, dollars, moneyOf, price, requestsOf, taskSuite } from '../../test/support/tasks.ts'
import { keepTriesMax } from './keep.ts'
import type { TaskParts } from './parts.ts'

const minute = 60_000

taskSuite('a film whose record names a file', ({ begin, within }) => {
  test('is asked for once it is made, and then given out', () =>
    within(async ({ store, vendor, world }) => {
      vendor.locates = true
      const task = await world.order()
      vendor.become('running')
      await world.pass(minute)
      expect(vendor.calls.filter(({ path }) => path.startsWith('/files/'))).toEqual([])
      vendor.become('done')
      await world.pass(minute)
      const done = await world.task(task.id)
      expect(done).toMatchObject({ state: 'succeeded', result: { videoUrl: linkOf(done.upstreamId ?? '') } })
      expect(await requestsOf(store)).toMatchObject([{ cost: nano(5n * price.sold), basis: 'vendor' }])
    }))

  test('is asked for again where the vendor did not say: a refusal, an error under a good status, silence', () =>
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

  test('that is nowhere is no film: it costs nothing, and what the vendor charges is our loss', () =>
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

  test('of which the vendor never says where it is has failed after a dozen questions', () =>
    within(async ({ vendor, world }) => {
      vendor.locates = true
      vendor.files.push(...Array.from({ length: 2 * keepTriesMax }, () => 404))
      const task = await world.order()
      vendor.become('done')
      for (let round = 0; round < 2 * keepTriesMax; round++) await world.pass(2 * minute)
      expect(await world.task(task.id)).toMatchObject({ state: 'failed', failure: { code: 'upstream_no_output' } })
      expect(vendor.calls.filter(({ path }) => path.startsWith('/files/'))).toHaveLength(keepTriesMax)
    }))

  test('is kept like any other', async () => {
    const keepResult: TaskParts['keepResult'] = () =>
      Promise.resolve({ url: 'https://gateway.example/artifacts/1', expiresAt: world.clock.now() + minute })
    const { vendor, world } = await begin({ keepResult })
    Object.assign(vendor, { locates: true, onlyWithKey: true })
    const task = await world.order()
    vendor.become('done')
    await world.pass(minute)
    expect((await world.task(task.id)).result).toMatchObject({ videoUrl: 'https://gateway.example/artifacts/1' })
    await world.close()
  })
})

taskSuite('a poll that is refused under a good status', ({ within }) => {
  test('is judged as what it is, and changes nothing about its task', () =>
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
