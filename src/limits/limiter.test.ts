import { expect, test } from 'bun:test'
import { thrownBy } from '../../test/support/thrown.ts'
import type { KeyLimits } from '../store/schema.ts'
import { makeLimiter } from './limiter.ts'

/** A key of its own, and what the head of its last answer says. */
function keyWith(limits: KeyLimits) {
  const limiter = makeLimiter()
  const said: Record<string, string> = {}
  const enter = (keyId = 'key') => limiter.enter(keyId, limits, (header, value) => (said[header] = value))
  return { enter, said }
}

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
