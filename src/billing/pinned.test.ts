import { expect, test } from 'bun:test'
import { pico } from '../base/money.ts'
import type { PriceList } from '../capabilities/usage.ts'
import { readPriceList, writePriceList } from './pinned.ts'

// More than a double holds: a price must not pass through one on its way to the database and back.
const rate = (more: bigint) => pico(2n ** 60n + more)

const list: PriceList = {
  version: 'v1',
  rates: { input: rate(1n), thinkingOutput: rate(2n) },
  tiers: [{ aboveInputTokens: 200_000, rates: { input: rate(3n) } }],
  perImage: { '1024x1024/high': rate(4n) },
  perSecond: { '720p/sound': rate(5n) },
  perVideo: { '768p/6s': rate(6n) },
  perVideoToken: { '720p/input': rate(7n) },
}

test('a price list stored with a task reads back unchanged', () => {
  const stored = JSON.parse(JSON.stringify(writePriceList(list))) as ReturnType<typeof writePriceList>
  expect(readPriceList(stored)).toEqual(list)
})

test('a price list stored before prices per video existed reads back with none', () => {
  const { perVideo: _, ...older } = writePriceList(list)
  expect(readPriceList(older)).toEqual({ ...list, perVideo: {} })
})
