import { formatDollars, pico, toNano, type Pico } from '../base/money.ts'
import { rated, type PriceList, type Rated, type Unit } from '../capabilities/usage.ts'
import type { Model } from '../catalogue/model.ts'

/** How each rate is written in `turnpike.yaml`, and for how many of it the amount stands. */
const written = {
  input: ['inputPerMillion', 1_000_000n],
  cachedInput: ['cachedInputPerMillion', 1_000_000n],
  cacheWrite: ['cacheWritePerMillion', 1_000_000n],
  cacheWriteHour: ['cacheWriteHourPerMillion', 1_000_000n],
  imageInput: ['imageInputPerMillion', 1_000_000n],
  audioInput: ['audioInputPerMillion', 1_000_000n],
  output: ['outputPerMillion', 1_000_000n],
  thinkingOutput: ['thinkingOutputPerMillion', 1_000_000n],
  imageOutput: ['imageOutputPerMillion', 1_000_000n],
  audioOutput: ['audioOutputPerMillion', 1_000_000n],
  character: ['perMillionCharacters', 1_000_000n],
  videoToken: ['perMillionVideoTokens', 1_000_000n],
  webSearch: ['webSearchPerThousand', 1_000n],
  request: ['perRequest', 1n],
} as const satisfies Record<Rated, readonly [key: string, per: bigint]>

/** A model as operators see it: prices in the words of the file, markup and exchange applied. */
export function showModel(model: Model) {
  const { id, capabilities, vendor, confidence, source, prices, contextTokens, outputTokensMax } = model
  const isChat = capabilities.includes('chat')
  return {
    id,
    capabilities,
    vendor,
    ...(model.aliasOf !== undefined && { alias_of: model.aliasOf }),
    ...(!model.contextAssumed && { context_tokens: contextTokens }),
    ...(isChat && { output_tokens_max: outputTokensMax }),
    prices: showPrices(prices),
    confidence,
    source,
  }
}

/** One rate, as the tables have it. */
export function showRate({ rates }: PriceList, unit: Unit): string {
  const amount = rates[unit]
  return amount === undefined ? '-' : dollars(amount, written[unit][1])
}

/** What is charged beside tokens, in short: a range where it depends on size, length or sound. */
export function showOtherPrices({ rates, perImage, perSecond, perVideo, perVideoToken }: PriceList): string {
  const each = (unit: Unit, what: string) =>
    rates[unit] === undefined ? [] : [`${dollars(rates[unit], written[unit][1])}/${what}`]
  const parts = [
    ...range(perSecond, 's'),
    ...range(perVideo, 'film'),
    ...range(perVideoToken, 'M video tokens', written.videoToken[1]),
    ...range(perImage, 'picture'),
    ...each('imageOutput', 'M picture tokens'),
    ...each('audioOutput', 'M sound tokens'),
    ...each('character', 'M characters'),
    ...each('request', 'request'),
  ]
  return parts.length === 0 ? '-' : parts.join(', ')
}

function range(amounts: Readonly<Record<string, Pico>>, what: string, per = 1n): string[] {
  const sorted = Object.values(amounts).toSorted((a, b) => (a < b ? -1 : 1))
  const [least, most] = [sorted[0], sorted.at(-1)]
  if (least === undefined || most === undefined) return []
  return [`${least === most ? '' : `${dollars(least, per)}-`}${dollars(most, per)}/${what}`]
}

type ShownPrices = Readonly<Record<string, unknown>>

// A list never changes, and every customer's list of models has nearly all of them.
const shownLists = new WeakMap<PriceList, ShownPrices>()

/** A price list in the words of `turnpike.yaml`. */
export function showPrices(list: PriceList): ShownPrices {
  const known = shownLists.get(list)
  if (known !== undefined) return known
  const shown = writeOut(list)
  shownLists.set(list, shown)
  return shown
}

function writeOut({ rates, tiers, perImage, perSecond, perVideo, perVideoToken }: PriceList): ShownPrices {
  return {
    ...showRates(rates),
    ...(tiers.length > 0 && {
      tiers: tiers.map((tier) => ({ aboveInputTokens: tier.aboveInputTokens, ...showRates(tier.rates) })),
    }),
    ...(Object.keys(perImage).length > 0 && { perImage: showEach(perImage) }),
    ...(Object.keys(perSecond).length > 0 && { perSecond: showEach(perSecond) }),
    ...(Object.keys(perVideo).length > 0 && { perVideo: showEach(perVideo) }),
    ...(Object.keys(perVideoToken).length > 0 && {
      perMillionVideoTokens: showEach(perVideoToken, written.videoToken[1]),
    }),
  }
}

function showEach(amounts: Readonly<Record<string, Pico>>, per = 1n): Record<string, string> {
  return Object.fromEntries(Object.entries(amounts).map(([key, amount]) => [key, dollars(amount, per)]))
}

function showRates(rates: PriceList['rates']): Record<string, string> {
  const shown: Record<string, string> = {}
  for (const each of rated) {
    const amount = rates[each]
    const [key, per] = written[each]
    if (amount !== undefined) shown[key] = dollars(amount, per)
  }
  return shown
}

function dollars(amount: Pico, per: bigint): string {
  return formatDollars(toNano(pico(amount * per)))
}
