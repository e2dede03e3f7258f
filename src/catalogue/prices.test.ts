import { describe, expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { pico } from '../base/money.ts'
import { CatalogueError } from './error.ts'
import { compilePrices, type PriceLayer, readExchange } from './prices.ts'
import { readOverrides, type WrittenPrices } from './schema.ts'

function layer(written: WrittenPrices, at = 0): PriceLayer {
  return { written, path: ['models', at, 'prices'] }
}

function compile(...written: WrittenPrices[]) {
  return compilePrices(written.map(layer), readExchange({ JPY: '0.0065' }))
}

function fault(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error instanceof CatalogueError ? error.path : error
  }
  return 'no fault'
}

describe('exchange and markup', () => {
  test('the markup raises the price and not the cost', () => {
    const { prices, costs } = compile({ inputPerMillion: '3', perImage: '0.04', markup: '1.1' })
    expect([costs.rates.input, prices.rates.input]).toEqual([pico(3_000_000n), pico(3_300_000n)])
    expect([costs.perImage['default'], prices.perImage['default']]).toEqual([
      pico(40_000_000_000n),
      pico(44_000_000_000n),
    ])
  })

  test('a price for thinking output is marked up and changes the version of the list', () => {
    const plain = { inputPerMillion: '0.05', outputPerMillion: '0.2' }
    const { prices } = compile({ ...plain, thinkingOutputPerMillion: '0.5', markup: '2' })
    expect(prices.rates).toMatchObject({ output: 400_000n, thinkingOutput: 1_000_000n })
    expect(prices.version).not.toBe(compile({ ...plain, markup: '2' }).prices.version)
  })

  test('price, exchange and markup are rounded once, half up', () => {
    // 0.000005 yuan a million at 0.14 and 1.5 is 1.05 pico-dollars a token.
    expect(compile({ inputPerMillion: '0.000005', currency: 'CNY', markup: '1.5' }).prices.rates.input).toBe(pico(1n))
    // Exactly a half goes up: 0.0000005 dollars a million is 0.5 pico-dollars.
    expect(compile({ inputPerMillion: '0.0000005' }).prices.rates.input).toBe(pico(1n))
    // Rounding the exchanged price first would give 1 x 3 = 3.
    expect(compile({ inputPerMillion: '0.0000005', markup: '3' }).prices.rates.input).toBe(pico(2n))
  })

  test('a later layer overrides amounts and markup, with each amount in the currency of its layer', () => {
    const { prices, costs } = compile(
      { inputPerMillion: '10', outputPerMillion: '20', currency: 'CNY', markup: '2' },
      { outputPerMillion: '3', markup: '1.5' },
    )
    expect(costs.rates).toMatchObject({ input: 1_400_000n, output: 3_000_000n })
    expect(prices.rates).toMatchObject({ input: 2_100_000n, output: 4_500_000n })
  })

  test('a markup below 1 sells below cost and leaves the cost unchanged', () => {
    // The digits of the second are those of 1, at which cost and price are the same list.
    for (const [markup, output] of [
      ['0.2', 3_000_000n],
      ['0.1', 1_500_000n],
    ] as const) {
      const { prices, costs } = compile({ inputPerMillion: '3', outputPerMillion: '15', markup })
      expect(prices.rates.output).toBe(pico(output))
      expect(costs.rates.output).toBe(pico(15_000_000n))
    }
  })

  // The independent computation turns the digits of all strings into one fraction, with one division at the end.
  test('price x exchange x markup equals an independent computation', () => {
    const decimal = fc
      .tuple(fc.bigInt(0n, 10n ** 9n - 1n), fc.stringMatching(/^\d{0,12}$/))
      .map(([whole, fraction]) => (fraction === '' ? `${whole}` : `${whole}.${fraction}`))
    const rate = decimal.filter((text) => /[1-9]/.test(text))
    fc.assert(
      fc.property(decimal, rate, decimal, (price, exchange, markup) => {
        const digits = [price, exchange, markup].map((text) => BigInt(text.replace('.', '')))
        const scale = [price, exchange, markup].reduce((sum, text) => sum + (text.split('.')[1]?.length ?? 0), 0)
        const numerator = digits.reduce((product, next) => product * next, 2n * 10n ** 12n)
        const denominator = 2n * 10n ** BigInt(scale) * 1_000_000n
        const expected = (numerator + denominator / 2n) / denominator
        const written = { inputPerMillion: price, currency: 'XXX', markup }
        const { prices } = compilePrices([layer(written)], readExchange({ XXX: exchange }))
        expect(prices.rates.input).toBe(pico(expected))
      }),
    )
  })
})

describe('faults', () => {
  test.each([
    [{ inputPerMillion: '-1' }, 'inputPerMillion'],
    [{ inputPerMillion: 'NaN' }, 'inputPerMillion'],
    [{ inputPerMillion: '1e3' }, 'inputPerMillion'],
    [{ inputPerMillion: '' }, 'inputPerMillion'],
    [{ inputPerMillion: '1'.repeat(19) }, 'inputPerMillion'],
    [{ markup: '-1' }, 'markup'],
    [{ markup: 'Infinity' }, 'markup'],
    [{ inputPerMillion: '1', currency: 'EUR' }, 'currency'],
  ])('a fault is reported with its field: %p', (written, key) => {
    expect(fault(() => compile(written))).toEqual(['models', 0, 'prices', key])
  })

  test('a nested fault is reported with its whole path', () => {
    const tiers = [{ aboveInputTokens: 10, inputPerMillion: 'x' }]
    expect(fault(() => compile({ tiers }))).toEqual(['models', 0, 'prices', 'tiers', 0, 'inputPerMillion'])
    const fallen = [{ aboveInputTokens: 10 }, { aboveInputTokens: 10 }]
    expect(fault(() => compile({ tiers: fallen }))).toEqual(['models', 0, 'prices', 'tiers', 1, 'aboveInputTokens'])
    const perSecond = { '720p': { sound: '1', silent: '' } }
    expect(fault(() => compile({ perSecond }))).toEqual(['models', 0, 'prices', 'perSecond', '720p', 'silent'])
  })

  test.each(['0', '-0.14', 'x', ''])('an exchange rate of %p is refused', (rate) => {
    expect(fault(() => readExchange({ CNY: rate }))).toEqual(['exchange', 'CNY'])
  })

  test('a rate for the dollar and a currency that is not three letters are refused', () => {
    expect(fault(() => readExchange({ USD: '1' }))).toEqual(['exchange', 'USD'])
    expect(fault(() => readExchange({ yuan: '1' }))).toEqual(['exchange', 'yuan'])
  })
})

const tokens = (...written: WrittenPrices[]) => compile(...written).costs.perVideoToken

describe('video tokens', () => {
  test('video tokens can be priced as one, by resolution, by audio, and with input video', () => {
    expect(tokens({ perMillionVideoTokens: '15', currency: 'CNY' })).toEqual({ default: pico(2_100_000n) })
    expect(tokens({ perMillionVideoTokens: { sound: '2', silent: '1' } })).toEqual({
      'default/sound': pico(2_000_000n),
      'default/silent': pico(1_000_000n),
    })
    const written = {
      perMillionVideoTokens: { '720p': '3', '1080p': { sound: '5', silent: '4' } },
      perMillionVideoTokensWithInput: { '720p': '2', default: '1' },
    }
    expect(tokens(written)).toEqual({
      '720p': pico(3_000_000n),
      '1080p/sound': pico(5_000_000n),
      '1080p/silent': pico(4_000_000n),
      '720p/input': pico(2_000_000n),
      'default/input': pico(1_000_000n),
    })
  })

  test('a single price of the operator replaces the prices that it covers', () => {
    const base = { perMillionVideoTokens: { '720p': '3' }, perMillionVideoTokensWithInput: '2' }
    expect(tokens(base, { perMillionVideoTokens: '9' })).toEqual({ default: pico(9_000_000n) })
    expect(tokens(base, { perMillionVideoTokensWithInput: '1' })).toEqual({
      '720p': pico(3_000_000n),
      'default/input': pico(1_000_000n),
    })
  })

  test('prices of video tokens are part of the version of a list', () => {
    const named = (price: string) => compile({ perMillionVideoTokens: price }).prices.version
    expect(named('1')).not.toBe(named('2'))
    expect(named('1')).not.toBe(compile({ perSecond: '0.000001' }).prices.version)
  })
})

describe('videos that are sold as a whole', () => {
  test('a price per video has a resolution and a length, with exchange rate and markup', () => {
    const { costs, prices } = compile({ perVideo: { '768p/6s': '0.28' } }, { markup: '2' })
    expect(costs.perVideo).toEqual({ '768p/6s': pico(280_000_000_000n) })
    expect(prices.perVideo).toEqual({ '768p/6s': pico(560_000_000_000n) })
    expect(compile({ perVideo: { '768p/6s': '2' }, currency: 'CNY' }).costs.perVideo).toEqual({
      '768p/6s': pico(280_000_000_000n),
    })
  })

  test('prices per video exclude prices per second, and are part of the version of a list', () => {
    const both = { perSecond: '1', perVideo: { '768p/6s': '6' } }
    expect(fault(() => compile(both))).toEqual(['models', 0, 'prices', 'perVideo'])
    const names = ['1', '2'].map((price) => compile({ perVideo: { '768p/6s': price } }).prices.version)
    expect(new Set(names).size).toBe(2)
  })

  test.each(['768p', '768p/6', 'default', '768p/6s/sound', '/6s'])('a price per video for %p is refused', (video) => {
    const written = [{ id: 'wan2.6-t2v', prices: { perVideo: { [video]: '1' } } }]
    expect(fault(() => readOverrides(written))).toEqual(['models', 0, 'prices', 'perVideo', video])
  })
})

test('equal lists have equal versions, whatever the order they were written in', () => {
  const there = compile({ inputPerMillion: '1', outputPerMillion: '2' }).prices.version
  expect(compile({ outputPerMillion: '2' }, { inputPerMillion: '1.0' }).prices.version).toBe(there)
  expect(compile({ inputPerMillion: '2', outputPerMillion: '1' }).prices.version).not.toBe(there)
})

// A charge names its list by the version and is judged by it for three days, so a new kind of price must not change it.
test('a list keeps its version for as long as its prices stay', () => {
  const { prices } = compile({
    inputPerMillion: '3',
    cachedInputPerMillion: '0.3',
    outputPerMillion: '15',
    webSearchPerThousand: '10',
    tiers: [{ aboveInputTokens: 200_000, inputPerMillion: '6', outputPerMillion: '22.5' }],
    perImage: { '1024x1024': '0.04' },
    perSecond: { '720p': { sound: '0.4', silent: '0.2' } },
    perMillionVideoTokens: '7',
  })
  expect(prices.version).toBe('4f3f8bf0b584f567')
})
