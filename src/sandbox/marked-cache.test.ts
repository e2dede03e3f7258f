import { describe, expect, test } from 'bun:test'
import { createMarkedCache, type Lifetime, type Mark } from './marked-cache.ts'

/** Blocks of a thousand tokens each; the letters tell prompts apart. */
function blocks(text: string, lifetimes: Readonly<Record<number, Lifetime>> = {}): Mark[] {
  return Array.from(text, (_, index) => {
    const lifetime = lifetimes[index]
    const fingerprint = Number.parseInt(text.slice(0, index + 1), 36)
    return { tokens: (index + 1) * 1_000, fingerprint, ...(lifetime && { lifetime }) }
  })
}

describe('the cache of marked prompts', () => {
  test('a prompt is written up to its mark and read back under the same key only', () => {
    const cache = createMarkedCache(() => 0)
    expect(cache.use('a', blocks('abc', { 1: '5m' }))).toEqual({ read: 0, write5m: 2_000, write1h: 0 })
    expect(cache.use('a', blocks('abx', { 1: '5m' }))).toEqual({ read: 2_000, write5m: 0, write1h: 0 })
    expect(cache.use('b', blocks('abx', { 1: '5m' }))).toEqual({ read: 0, write5m: 2_000, write1h: 0 })
    expect(cache.use('a', blocks('abx'))).toEqual({ read: 0, write5m: 0, write1h: 0 })
  })

  test('an older mark is found at most some twenty blocks before the new one', () => {
    const cache = createMarkedCache(() => 0)
    cache.use('a', blocks('ab', { 1: '5m' }))
    expect(cache.use('a', blocks('abcd', { 3: '5m' }))).toEqual({ read: 2_000, write5m: 2_000, write1h: 0 })
    const far = `abcd${'e'.repeat(25)}`
    expect(cache.use('a', blocks(far, { 28: '5m' }))).toEqual({ read: 0, write5m: 29_000, write1h: 0 })
  })

  test('a part marked 1h is kept for an hour and one marked 5m for five minutes since its last use', () => {
    let now = 0
    const cache = createMarkedCache(() => now)
    const marks = blocks('abcde', { 1: '1h', 3: '5m' })
    expect(cache.use('a', marks)).toEqual({ read: 0, write5m: 2_000, write1h: 2_000 })
    now = 299_000
    expect(cache.use('a', marks)).toEqual({ read: 4_000, write5m: 0, write1h: 0 })
    // The previous use restarted the five minutes.
    now += 299_000
    expect(cache.use('a', marks)).toEqual({ read: 4_000, write5m: 0, write1h: 0 })
    now += 301_000
    expect(cache.use('a', marks)).toEqual({ read: 2_000, write5m: 2_000, write1h: 0 })
    now += 3_601_000
    expect(cache.use('a', marks)).toEqual({ read: 0, write5m: 2_000, write1h: 2_000 })
  })

  test('a short prompt is not cached', () => {
    const cache = createMarkedCache(() => 0)
    expect(cache.use('a', blocks('a', { 0: '5m' }))).toEqual({ read: 0, write5m: 0, write1h: 0 })
  })
})
