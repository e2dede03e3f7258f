import { expect, test } from 'bun:test'
import { Share } from './share.ts'

test('a full share has room again once bytes expire or are given back', () => {
  const share = new Share(100)
  const take = (bytes: number, expiresAt: number, now: number) => share.take(bytes, expiresAt, now) !== undefined
  expect([take(60, 1_000, 0), take(60, 1_500, 500), take(40, 1_500, 500)]).toEqual([true, false, true])
  expect(take(1, 1_999, 999)).toBe(false)
  expect([take(60, 2_000, 1_000), take(1, 2_000, 1_000)]).toEqual([true, false])
  const taken = share.take(40, 2_500, 1_500)
  if (taken === undefined) throw new Error('no room')
  share.giveBack(taken)
  share.giveBack(taken) // a second time has no effect
  expect([take(40, 2_500, 1_500), take(1, 2_500, 1_500)]).toEqual([true, false])
  // Room that was given back is not given back again when its entry would have expired.
  expect([take(100, 3_500, 2_500), take(1, 3_500, 2_500)]).toEqual([true, false])
})

test('a share remembers nothing of bytes that were given back', () => {
  const share = new Share(100)
  for (let times = 0; times < 1_000; times++) {
    const taken = share.take(60, 1_000, 0)
    if (taken === undefined) throw new Error('no room')
    share.giveBack(taken)
  }
  expect(share.things).toBe(0)
})
