import { afterEach, expect, setSystemTime, test } from 'bun:test'
import { standingClock } from '../../test/support/movable-clock.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import type { KeyLimits } from '../store/schema.ts'
import { makeLimiter } from './limiter.ts'

/** A limiter for one key's limits, and the headers that it last set. */
function keyWith(limits: KeyLimits) {
  const clock = standingClock()
  const limiter = makeLimiter(clock)
  const said: Record<string, string> = {}
  const enter = (keyId = 'key') => limiter.enter(keyId, limits, (header, value) => (said[header] = value))
  const pass = (ms: number) => {
    clock.advance(ms)
    setSystemTime(Date.now() + ms)
  }
  return { enter, pass, said }
}

afterEach(() => setSystemTime())

test('a place is free again once for each request that leaves, and every key has its own', async () => {
  const { enter } = keyWith({ concurrent: 3 })
  const [first, second] = [await enter(), await enter(), await enter()]
  expect(await thrownBy(enter())).toMatchObject({ kind: 'too-many' })
  await enter('another')
  first.leave(0)
  first.leave(0)
  await enter()
  expect(await thrownBy(enter())).toMatchObject({ kind: 'too-many' })
  second.leave(0)
  await enter()
  expect(await thrownBy(enter())).toMatchObject({ kind: 'too-many' })
})

test.each([
  { name: 'less', used: 10, left: '90' },
  { name: 'as much', used: 40, left: '60' },
  { name: 'more', used: 70, left: '30' },
])('an estimate gives way to what was used: $name', async ({ used, left }) => {
  const { enter, said } = keyWith({ tokensPerMinute: 100 })
  const pass = await enter()
  await pass.spend({ estimateInput: () => 40 })
  expect(said['x-ratelimit-remaining-tokens']).toBe('60')
  pass.leave(used)
  pass.leave(used)
  await enter()
  expect(said['x-ratelimit-remaining-tokens']).toBe(left)
})

test('a minute is used to its last token, and nothing that is asked is none', async () => {
  const { enter, said } = keyWith({ tokensPerMinute: 100 })
  const pass = await enter()
  await pass.spend({ estimateInput: () => 0 })
  expect(said['x-ratelimit-remaining-tokens']).toBe('99')
  await pass.spend({ estimateInput: () => 99 })
  expect(said['x-ratelimit-remaining-tokens']).toBe('0')
  expect(await thrownBy(pass.spend({ estimateInput: () => 0 }) ?? Promise.resolve())).toMatchObject({
    kind: 'too-many',
  })
})

test('what a minute has no room for is not counted, and the minute is told', async () => {
  const { enter, said } = keyWith({ tokensPerMinute: 100 })
  const pass = await enter()
  await pass.spend({ estimateInput: () => 90 })
  const other = await enter()
  expect(await thrownBy(other.spend({ estimateInput: () => 20 }) ?? Promise.resolve())).toMatchObject({
    kind: 'too-many',
  })
  expect(said['x-ratelimit-remaining-tokens']).toBe('10')
  expect(said['x-ratelimit-reset-tokens']).toMatch(/^(?:[1-5]?\ds|1m0s)$/)
})

test('a minute is no longer than one, whatever becomes of the time of day', async () => {
  const { enter, said } = keyWith({ requestsPerMinute: 1 })
  await enter()
  setSystemTime(Date.now() - 60 * 60_000)
  expect(await thrownBy(enter())).toMatchObject({ kind: 'too-many', details: { retryAfterSeconds: 60 } })
  expect(said['x-ratelimit-reset-requests']).toBe('1m0s')
})

test('an estimate that is given back in a later minute makes that one worth no more', async () => {
  const { enter, pass, said } = keyWith({ tokensPerMinute: 100 })
  const [failed, long] = [await enter(), await enter()]
  await failed.spend({ estimateInput: () => 80 })
  await long.spend({ estimateInput: () => 10 })
  pass(60_000)
  failed.leave(0)
  const next = await enter()
  await next.spend({ estimateInput: () => 50 })
  expect(said['x-ratelimit-remaining-tokens']).toBe('50')
  // Use beyond the estimate becomes known in this minute, and counts in it.
  long.leave(40)
  expect(await thrownBy(next.spend({ estimateInput: () => 21 }) ?? Promise.resolve())).toMatchObject({
    message: expect.stringContaining('this key has 20 of its 100 tokens per minute left'),
  })
})
