import { expect, test } from 'bun:test'
import { Share } from './share.ts'

test('a full share has room again once bytes expire or are given back', () => {
  const share = new Share(100)
  let accounts = 0
  const take = (bytes: number, expiresAt: number, now: number) =>
    share.take(bytes, `acc_${accounts++}`, expiresAt, now) !== undefined
  expect([take(60, 1_000, 0), take(60, 1_500, 500), take(40, 1_500, 500)]).toEqual([true, false, true])
  expect(take(1, 1_999, 999)).toBe(false)
  expect([take(60, 2_000, 1_000), take(1, 2_000, 1_000)]).toEqual([true, false])
  const taken = share.take(40, 'acc', 2_500, 1_500)
  if (taken === undefined) throw new Error('no room')
  share.giveBack(taken)
  share.giveBack(taken) // a second time has no effect
  expect([take(40, 2_500, 1_500), take(1, 2_500, 1_500)]).toEqual([true, false])
  // Room that was given back is not given back again when its entry would have expired.
  expect([take(100, 3_500, 2_500), take(1, 3_500, 2_500)]).toEqual([true, false])
})

test('bytes that were kept while the clock was days ahead do not keep the room of later ones', () => {
  const share = new Share(100)
  expect(share.take(10, 'acc_a', 9_000, 8_000)).toBeDefined()
  expect(share.take(90, 'acc_b', 1_000, 0)).toBeDefined()
  expect(share.take(90, 'acc_c', 1_999, 999)).toBeUndefined()
  expect(share.take(90, 'acc_c', 2_000, 1_000)).toBeDefined()
  expect(share.take(1, 'acc_d', 2_000, 1_000)).toBeUndefined()
})

test('a share remembers nothing of bytes that were given back', () => {
  const share = new Share(100)
  for (let times = 0; times < 1_000; times++) {
    const taken = share.take(60, 'acc', 1_000, 0)
    if (taken === undefined) throw new Error('no room')
    share.giveBack(taken)
  }
  expect(share.things).toBe(0)
})

test('an account that takes all it can leaves as much for everybody else', () => {
  const share = new Share(100)
  const takeAll = (accountId: string, now: number) => {
    let bytes = 0
    while (share.take(1, accountId, now + 1_000, now) !== undefined) bytes++
    return bytes
  }
  expect([takeAll('greedy', 0), takeAll('next', 0), takeAll('third', 0), takeAll('greedy', 0)]).toEqual([50, 25, 13, 0])
  expect(takeAll('greedy', 1_000)).toBe(50)
})
