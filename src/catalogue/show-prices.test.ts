import { expect, test } from 'bun:test'
import { buildCatalogue, loadFamilies } from './load.ts'
import { compilePrices, readExchange } from './prices.ts'
import type { WrittenPrices } from './schema.ts'
import { showOtherPrices, showPrices, showRate } from './show-prices.ts'

const compiled = (written: WrittenPrices) =>
  compilePrices([{ written, path: [] }], readExchange({ CNY: '0.14' })).prices

test.each<WrittenPrices>([
  { inputPerMillion: '0.15', cachedInputPerMillion: '0.075', imageInputPerMillion: '0.15', outputPerMillion: '0.6' },
  { outputPerMillion: '1', tiers: [{ aboveInputTokens: 200_000, outputPerMillion: '1.5' }] },
  { webSearchPerThousand: '10', perRequest: '0.01', perMillionCharacters: '15' },
  { perImage: { '1024x1024': '0.04', 'default/high': '0.000000001' } },
  { perSecond: { '720p': '0.1', '1080p': '0.15' } },
  { perVideo: { '768p/6s': '0.28', '768p/10s': '0.56' } },
  { perMillionVideoTokens: { '480p': '5.18', '720p': '5.2' } },
])('customers see prices as they may be written in the settings, and no others: %j', (written) => {
  expect(showPrices(compiled(written))).toEqual(written)
})

test('customers see the price in dollars with the markup, one price as the default, and pairs with and without audio', () => {
  const yuan = { currency: 'CNY', markup: '2', inputPerMillion: '10', perImage: '1' }
  expect(showPrices(compiled(yuan))).toMatchObject({ inputPerMillion: '2.8', perImage: { default: '0.28' } })
  const heard = compiled({ perSecond: { '720p': { sound: '0.4', silent: '0.2' } } })
  expect(showPrices(heard)).toEqual({ perSecond: { '720p/sound': '0.4', '720p/silent': '0.2' } })
})

test.each<[WrittenPrices, string]>([
  [{ inputPerMillion: '1' }, '-'],
  [{ perSecond: { '1080p': '0.15', '720p': '0.1', '480p': '0.12' } }, '0.1-0.15/s'],
  [{ perVideo: { '768p/6s': '0.28' } }, '0.28/video'],
  [{ perMillionVideoTokens: '5.18' }, '5.18/M video tokens'],
  [{ perImage: '0.04', imageOutputPerMillion: '40' }, '0.04/image, 40/M image tokens'],
  [{ perMillionCharacters: '15', perRequest: '0.01' }, '15/M characters, 0.01/request'],
])('tables show prices other than those of text in short: %j as %s', (written, short) => {
  expect(showOtherPrices(compiled(written))).toBe(short)
})

test('tables show a price of every model of the catalogue', () => {
  const { models } = buildCatalogue({ families: loadFamilies(), sandbox: true, at: Date.now() })
  const unpriced = [...models].filter(
    ([, { prices }]) => showRate(prices, 'inputPerMillion') === '-' && showOtherPrices(prices) === '-',
  )
  expect(unpriced.map(([id]) => id)).toEqual([])
})

test('tables show a dash for a rate that there is not', () => {
  const prices = compiled({ inputPerMillion: '0', outputPerMillion: '0.6' })
  expect(showRate(prices, 'inputPerMillion')).toBe('0')
  expect(showRate(prices, 'outputPerMillion')).toBe('0.6')
  expect(showRate(prices, 'perRequest')).toBe('-')
})
