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

test('each request that leaves frees one place, and every key has its own places', async () => {
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
  { name: 'less than estimated', used: 10, left: '90' },
  { name: 'as much as estimated', used: 40, left: '60' },
  { name: 'more than estimated', used: 70, left: '30' },
])('the tokens used replace the estimate: $name', async ({ used, left }) => {
  const { enter, said } = keyWith({ tokensPerMinute: 100 })
  const pass = await enter()
  await pass.spend({ estimateInput: () => 40 })
  expect(said['x-ratelimit-remaining-tokens']).toBe('60')
  pass.leave(used)
  pass.leave(used)
  await enter()
  expect(said['x-ratelimit-remaining-tokens']).toBe(left)
})

test('a minute can be used to its last token, and a request without input counts as one token', async () => {
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

test('a request beyond the tokens of a minute is refused and not counted, and headers say what is left', async () => {
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

test('a limit resets within a minute, even when the system clock is set back', async () => {
  const { enter, said } = keyWith({ requestsPerMinute: 1 })
  await enter()
  setSystemTime(Date.now() - 60 * 60_000)
  expect(await thrownBy(enter())).toMatchObject({ kind: 'too-many', details: { retryAfterSeconds: 60 } })
  expect(said['x-ratelimit-reset-requests']).toBe('1m0s')
})

test('an estimate given back in a later minute does not raise the limit of that minute', async () => {
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

test('a request that finds no free place does not count towards the requests of the minute', async () => {
  const { enter, said } = keyWith({ requestsPerMinute: 2, concurrent: 1 })
  const first = await enter()
  delete said['x-ratelimit-remaining-requests']
  expect(await thrownBy(enter())).toMatchObject({
    kind: 'too-many',
    message: expect.stringContaining('concurrent requests'),
  })
  expect(said['x-ratelimit-remaining-requests']).toBe('1')
  first.leave(0)
  const second = await enter()
  expect(said['x-ratelimit-remaining-requests']).toBe('0')
  second.leave(0)
  // A request beyond the minute's gives its place back.
  for (let tries = 0; tries < 2; tries++) {
    expect(await thrownBy(enter())).toMatchObject({ message: 'The requests of this key are limited to 2 a minute.' })
  }
})
