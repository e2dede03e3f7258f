import { expect, test } from 'bun:test'
import { Share } from './share.ts'

test('a share has an end, and what has expired is room again', () => {
  const share = new Share(100)
  expect([share.take(60, 1_000, 0), share.take(60, 1_500, 500), share.take(40, 1_500, 500)]).toEqual([
    true,
    false,
    true,
  ])
  expect(share.take(1, 1_999, 999)).toBe(false)
  expect([share.take(60, 2_000, 1_000), share.take(1, 2_000, 1_000)]).toEqual([true, false])
  expect(share.take(40, 2_500, 1_500)).toBe(true)
})
