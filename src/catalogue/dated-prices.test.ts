import { describe, expect, test } from 'bun:test'
import { pico } from '../base/money.ts'
import { priceSpanAt, pricesAt } from './dated-prices.ts'
import { buildCatalogue, loadFamilies } from './load.ts'
import { familySchema, readOverrides, type FamilyFile } from './schema.ts'

const families = loadFamilies()
const first = { inputPerMillion: '1', outputPerMillion: '2' }
const second = { inputPerMillion: '2', outputPerMillion: '3' }
const third = { inputPerMillion: '4', outputPerMillion: '5' }
const announced = {
  prices: first,
  laterPrices: [
    { from: '2026-08-16T16:00:00Z', source: 'a page', prices: second },
    { from: '2027-01-01', source: 'another page', prices: third },
  ],
}

function family(model: object): FamilyFile {
  const models = [{ id: 'a-model', capabilities: ['chat'], ...model }]
  const file = { vendor: 'deepseek', date: '2026-08-05', source: 'a list', confidence: 'listed', models }
  return { ...familySchema.parse(file), name: 'a-family.yaml' }
}

const at = (moment: string) => Date.parse(moment)
const justBefore = (moment: string) => at(moment) - 1

function seenAt(moment: string) {
  const catalogue = buildCatalogue({ families: [family(announced)], sandbox: false, at: at(moment) })
  const model = catalogue.models.get('a-model')
  return [model?.prices.rates.input, model?.source, catalogue.priceSpan]
}

describe('prices that a vendor has announced', () => {
  test.each([
    [justBefore('2026-08-16T16:00:00Z'), first],
    [at('2026-08-16T16:00:00Z'), second],
    [justBefore('2027-01-01T00:00:00Z'), second],
    [at('2027-01-01T00:00:00Z'), third],
    [at('2040-01-01'), third],
  ])('at %d', (moment, prices) => {
    expect(pricesAt(announced, moment)?.written).toEqual(prices)
  })

  test('a model may have only later ones', () => {
    const { laterPrices } = announced
    expect(pricesAt({ laterPrices }, at('2026-01-01'))).toBeUndefined()
    expect(pricesAt({ laterPrices }, at('2026-12-01'))).toEqual({
      written: second,
      path: ['laterPrices', 0, 'prices'],
      source: 'a page',
    })
  })

  test('a snapshot has the prices and the source of its moment, and says until when it holds, and since when', () => {
    expect(seenAt('2026-08-16')).toEqual([
      pico(1_000_000n),
      'a list',
      { from: -Infinity, until: at('2026-08-16T16:00:00Z') },
    ])
    expect(seenAt('2026-08-17')).toEqual([
      pico(2_000_000n),
      'a page',
      { from: at('2026-08-16T16:00:00Z'), until: at('2027-01-01') },
    ])
    expect(seenAt('2027-01-01')).toEqual([
      pico(4_000_000n),
      'another page',
      { from: at('2027-01-01'), until: Infinity },
    ])
  })

  test('the nearest of all models count, before and after', () => {
    const sooner = family({ prices: first, laterPrices: [{ from: '2026-09-10', source: 'a page', prices: second }] })
    const [begun, next, last] = [at('2026-08-16T16:00:00Z'), at('2026-09-10'), at('2027-01-01')]
    expect(priceSpanAt([family(announced), sooner], at('2026-09-01'))).toEqual({ from: begun, until: next })
    expect(priceSpanAt([family(announced), sooner], next)).toEqual({ from: next, until: last })
    expect(priceSpanAt([family({ prices: first })], next)).toEqual({ from: -Infinity, until: Infinity })
  })

  test("an operator's markup and prices hold for later ones too", () => {
    const overrides = readOverrides([{ id: 'a-model', prices: { outputPerMillion: '9', markup: '1.5' } }])
    const catalogue = buildCatalogue({ families: [family(announced)], overrides, sandbox: false, at: at('2027-01-01') })
    const model = catalogue.models.get('a-model')
    expect(model?.costs.rates).toMatchObject({ input: pico(4_000_000n), output: pico(9_000_000n) })
    expect(model?.prices.rates).toMatchObject({ input: pico(6_000_000n), output: pico(13_500_000n) })
  })

  test('they are written in the order of their moments', () => {
    const laterPrices = announced.laterPrices.toReversed()
    expect(() => family({ prices: first, laterPrices })).toThrow('in the order of their moments')
  })
})

const dated = families.flatMap(({ models }) => models).filter(({ laterPrices }) => laterPrices !== undefined)

function builtInAt(moment: number) {
  return buildCatalogue({ families, sandbox: false, at: moment }).models
}

/** The keys of prices and of their tiers; amounts are left out. */
function keysOf(prices: object | undefined): string {
  return JSON.stringify(prices, (_, value: unknown) => (typeof value === 'string' ? '' : value))
}

describe('those of the built-in files', () => {
  // An operator's override that fits today's prices must not keep a gateway from starting next year.
  test.each(dated.map((model) => [model.id, model] as const))('%s has the same keys throughout', (_, model) => {
    for (const { prices } of model.laterPrices ?? []) expect(keysOf(prices)).toBe(keysOf(model.prices))
  })

  test('the same models are sold when they begin', () => {
    const moments = dated.flatMap(({ laterPrices = [] }) => laterPrices.map(({ from }) => at(from)))
    for (const moment of moments) expect([...builtInAt(moment).keys()]).toEqual([...builtInAt(moment - 1).keys()])
  })

  test("DeepSeek's of August 2026 are in force", () => {
    const moment = at('2026-08-16T16:00:00Z')
    const [before, after] = [moment - 1, moment].map((time) => builtInAt(time).get('deepseek-v4-pro')?.costs.rates)
    expect(before).toMatchObject({ input: pico(435_000n), output: pico(870_000n) })
    expect(after).toMatchObject({ input: pico(1_320_000n), output: pico(3_960_000n) })
  })
})
