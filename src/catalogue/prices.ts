import { hash } from 'node:crypto'
import { currencyPattern, type Decimal, multiply, parseDecimal, type Pico, picoPerUnit } from '../base/money.ts'
import { type PriceList, type Rated, type Rates, type Tier, units } from '../capabilities/usage.ts'
import { CatalogueError, type Path } from './error.ts'
import { type UnitKey, unitKeys, type WrittenPrices } from './schema.ts'

/** Dollars for one unit of a currency, unless the operator gives another rate. A round figure of that day. */
const defaultExchange = { date: '2026-11-15', rates: { CNY: '0.14' } } as const

export type Exchange = ReadonlyMap<string, Decimal>

/** Prices as one place wrote them: first the built-in list, then each of the operator's overrides. */
export type PriceLayer = { readonly written: WrittenPrices; readonly path: Path }

const one: Decimal = { digits: 1n, scale: 0 }
const million = 1_000_000n

/** The unit that a written key prices, and how many of it the amount is for. */
export const rateOfKey = {
  inputPerMillion: ['input', million],
  cachedInputPerMillion: ['cachedInput', million],
  cacheWritePerMillion: ['cacheWrite', million],
  cacheWriteHourPerMillion: ['cacheWriteHour', million],
  outputPerMillion: ['output', million],
  thinkingOutputPerMillion: ['thinkingOutput', million],
  imageInputPerMillion: ['imageInput', million],
  imageOutputPerMillion: ['imageOutput', million],
  audioInputPerMillion: ['audioInput', million],
  audioOutputPerMillion: ['audioOutput', million],
  perMillionCharacters: ['character', million],
  perRequest: ['request', 1n],
  webSearchPerThousand: ['webSearch', 1_000n],
} as const satisfies Record<UnitKey, readonly [Rated, bigint]>

/** The default rates, overridden by the operator's, and the dollar itself. */
export function readExchange(rates: Readonly<Record<string, string>> = {}): Exchange {
  const exchange = new Map<string, Decimal>()
  for (const [currency, text] of Object.entries({ ...defaultExchange.rates, ...rates })) {
    const at = ['exchange', currency]
    if (!currencyPattern.test(currency)) throw new CatalogueError(at, 'a currency is three capital letters')
    if (currency === 'USD') throw new CatalogueError(at, 'prices are turned into dollars, so the dollar has no rate')
    const rate = parseDecimal(text)
    if (rate === undefined || rate.digits <= 0n) throw new CatalogueError(at, 'a rate is a decimal above 0, in quotes')
    exchange.set(currency, rate)
  }
  return exchange.set('USD', one)
}

/** Both lists of one model: `costs` is what the vendor charges, `prices` the same times the last markup written. */
export function compilePrices(layers: readonly PriceLayer[], exchange: Exchange) {
  const marked = layers.findLast((layer) => layer.written.markup !== undefined)
  const markup = marked === undefined ? one : decimal(marked.written.markup ?? '', [...marked.path, 'markup'])
  const costs = compile(layers, exchange, one)
  return { costs, prices: markup.digits === 1n && markup.scale === 0 ? costs : compile(layers, exchange, markup) }
}

/** The list with what it lacks taken from another: single rates, and the prices of other images and resolutions. */
export function fillIn(list: PriceList, other: PriceList): PriceList {
  const { tiers, perVideo, perVideoToken } = list
  return versioned({
    rates: { ...other.rates, ...list.rates },
    tiers: tiers.map((tier) => ({ ...tier, rates: { ...other.rates, ...tier.rates } })),
    perImage: { ...other.perImage, ...list.perImage },
    perSecond: { ...other.perSecond, ...list.perSecond },
    perVideo,
    perVideoToken,
  })
}

function compile(layers: readonly PriceLayer[], exchange: Exchange, markup: Decimal): PriceList {
  let rates: Rates = {}
  let tiers: readonly Tier[] = []
  let perImage: Record<string, Pico> = {}
  let perSecond: Record<string, Pico> = {}
  let perVideo: Record<string, Pico> = {}
  let tokens: Record<string, Pico> = {}
  let tokensWithInput: Record<string, Pico> = {}
  for (const { written, path } of layers) {
    const factor = multiply(rateOf(written.currency ?? 'USD', exchange, path), markup)
    const price = (text: string, at: Path) => picoPerUnit(multiply(decimal(text, at), factor), 1n)
    rates = { ...rates, ...compileRates(written, factor, path) }
    if (written.tiers !== undefined) tiers = compileTiers(written.tiers, factor, [...path, 'tiers'])
    if (written.perImage !== undefined) perImage = flatten(written.perImage, [...path, 'perImage'], price)
    if (written.perSecond !== undefined && written.perVideo !== undefined) {
      throw new CatalogueError([...path, 'perVideo'], 'either perSecond or perVideo, not both')
    }
    // A layer that sets one of the two replaces the other.
    if (written.perSecond !== undefined) {
      perSecond = flatten(written.perSecond, [...path, 'perSecond'], price)
      perVideo = {}
    }
    if (written.perVideo !== undefined) {
      perVideo = flatten(written.perVideo, [...path, 'perVideo'], price)
      perSecond = {}
    }
    const { perMillionVideoTokens: plain, perMillionVideoTokensWithInput: special } = written
    const perToken = (text: string, at: Path) => picoPerUnit(multiply(decimal(text, at), factor), million)
    if (plain !== undefined) {
      tokens = flatten(plain, [...path, 'perMillionVideoTokens'], perToken)
      // Unless the layer has a price with input videos too, its plain price holds for these as well.
      tokensWithInput = {}
    }
    if (special !== undefined) {
      tokensWithInput = flatten(special, [...path, 'perMillionVideoTokensWithInput'], perToken)
    }
  }
  const base = fill(rates)
  const whole = tiers.map((tier) => ({ ...tier, rates: fill({ ...rates, ...tier.rates }) }))
  const withInput = Object.entries(tokensWithInput).map(([key, rate]) => [`${key}/input`, rate])
  const perVideoToken = { ...tokens, ...Object.fromEntries(withInput) }
  return versioned({ rates: base, tiers: whole, perImage, perSecond, perVideo, perVideoToken })
}

/**
 * The version is a hash of a canonical text (units in their order, keys sorted), so that equal lists have equal
 * versions. Prices of whole videos and of thinking were added later: they come last, and only where there are any, so
 * that older lists keep their versions.
 */
function versioned(list: Omit<PriceList, 'version'>): PriceList {
  const tiers = list.tiers.map((tier) => `${tier.aboveInputTokens}:${writeRates(tier.rates)}`).join('|')
  const records = [list.perImage, list.perSecond, list.perVideoToken].map(writeRecord)
  const videos = writeRecord(list.perVideo)
  const parts = [writeRates(list.rates), tiers, ...records, ...(videos === '' ? [] : [videos])]
  return { version: fingerprint(parts.join('\n')), ...list }
}

function writeRates(rates: Rates): string {
  const { thinkingOutput } = rates
  return units.map((unit) => rates[unit] ?? '').join() + (thinkingOutput === undefined ? '' : `,${thinkingOutput}`)
}

function writeRecord(amounts: Readonly<Record<string, Pico>>): string {
  const keys = Object.keys(amounts).toSorted()
  return keys.map((key) => `${key}=${amounts[key]}`).join()
}

function compileRates(written: Partial<Record<UnitKey, string | undefined>>, factor: Decimal, path: Path): Rates {
  const rates: { [R in Rated]?: Pico } = {}
  for (const key of unitKeys) {
    const text = written[key]
    if (text === undefined) continue
    const [unit, per] = rateOfKey[key]
    rates[unit] = picoPerUnit(multiply(decimal(text, [...path, key]), factor), per)
  }
  return rates
}

function compileTiers(written: NonNullable<WrittenPrices['tiers']>, factor: Decimal, path: Path): Tier[] {
  return written.map((tier, index) => {
    const before = written[index - 1]?.aboveInputTokens ?? 0
    if (tier.aboveInputTokens <= before) {
      throw new CatalogueError([...path, index, 'aboveInputTokens'], 'tiers ascend')
    }
    return { aboveInputTokens: tier.aboveInputTokens, rates: compileRates(tier, factor, [...path, index]) }
  })
}

/**
 * A list without a price for cached or image tokens means that they cost as much as plain input; a unit without a rate
 * could not be charged at all.
 */
function fill(rates: Rates): Rates {
  const { input } = rates
  return input === undefined ? rates : { cachedInput: input, imageInput: input, ...rates }
}

type Heard = { readonly sound: string; readonly silent: string }
type Written = string | Heard | Readonly<Record<string, string | Heard>>

/** One amount becomes `default`; a pair becomes `720p/sound` and `720p/silent`, or `default/…` without a resolution. */
function flatten(written: Written, path: Path, price: (text: string, at: Path) => Pico): Record<string, Pico> {
  if (typeof written === 'string') return { default: price(written, path) }
  const flat: Record<string, Pico> = {}
  for (const [key, value] of Object.entries<string | Heard>(isHeard(written) ? { default: written } : written)) {
    const at = [...path, key]
    if (typeof value === 'string') {
      flat[key] = price(value, at)
      continue
    }
    flat[`${key}/sound`] = price(value.sound, [...at, 'sound'])
    flat[`${key}/silent`] = price(value.silent, [...at, 'silent'])
  }
  return flat
}

function isHeard(written: Exclude<Written, string>): written is Heard {
  return typeof written['sound'] === 'string'
}

function rateOf(currency: string, exchange: Exchange, path: Path): Decimal {
  const rate = exchange.get(currency)
  if (rate !== undefined) return rate
  throw new CatalogueError(
    [...path, 'currency'],
    `no exchange rate for ${currency}: write exchange: { ${currency}: "…" }`,
  )
}

function decimal(text: string, path: Path): Decimal {
  const value = parseDecimal(text)
  if (value === undefined || value.digits < 0n) throw new CatalogueError(path, 'an amount is a decimal such as "0.15"')
  return value
}

/** 64 bits of SHA-256, so that equal content has the same version on every node. */
function fingerprint(text: string): string {
  return hash('sha256', text).slice(0, 16)
}
