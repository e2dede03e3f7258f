import { formatDollars, pico, toNano, type Pico } from '../base/money.ts'
import type { PriceList } from '../capabilities/usage.ts'
import { rateOfKey } from './prices.ts'
import { unitKeys, type UnitKey } from './schema.ts'

type ShownPrices = Readonly<Record<string, unknown>>

// Kept, because a price list never changes and every list of models that a customer gets shows nearly all of them.
const shownLists = new WeakMap<PriceList, ShownPrices>()

/** A price list under the keys of `turnpike.yaml`, markup and exchange applied. */
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
    ...(Object.keys(perVideoToken).length > 0 && { perMillionVideoTokens: showEach(perVideoToken, million) }),
  }
}

function showRates(rates: PriceList['rates']): Record<string, string> {
  const shown: Record<string, string> = {}
  for (const key of unitKeys) {
    const amount = amountOf(rates, key)
    if (amount !== undefined) shown[key] = amount
  }
  return shown
}

/** One rate, as the tables of the command line show it. */
export function showRate({ rates }: PriceList, key: UnitKey): string {
  return amountOf(rates, key) ?? '-'
}

/** The prices other than those of text tokens, in short: a range where they depend on size, length or audio. */
export function showOtherPrices({ rates, perImage, perSecond, perVideo, perVideoToken }: PriceList): string {
  const each = (key: UnitKey, what: string) => {
    const amount = amountOf(rates, key)
    return amount === undefined ? [] : [`${amount}/${what}`]
  }
  const parts = [
    ...range(perSecond, 's'),
    ...range(perVideo, 'video'),
    ...range(perVideoToken, 'M video tokens', million),
    ...range(perImage, 'image'),
    ...each('imageOutputPerMillion', 'M image tokens'),
    ...each('audioOutputPerMillion', 'M audio tokens'),
    ...each('perMillionCharacters', 'M characters'),
    ...each('perRequest', 'request'),
  ]
  return parts.length === 0 ? '-' : parts.join(', ')
}

const million = 1_000_000n

function range(amounts: Readonly<Record<string, Pico>>, what: string, per = 1n): string[] {
  const sorted = Object.values(amounts).toSorted((a, b) => (a < b ? -1 : 1))
  const [least, most] = [sorted[0], sorted.at(-1)]
  if (least === undefined || most === undefined) return []
  return [`${least === most ? '' : `${dollars(least, per)}-`}${dollars(most, per)}/${what}`]
}

function showEach(amounts: Readonly<Record<string, Pico>>, per = 1n): Record<string, string> {
  return Object.fromEntries(Object.entries(amounts).map(([key, amount]) => [key, dollars(amount, per)]))
}

function amountOf(rates: PriceList['rates'], key: UnitKey): string | undefined {
  const [unit, per] = rateOfKey[key]
  const amount = rates[unit]
  return amount === undefined ? undefined : dollars(amount, per)
}

function dollars(amount: Pico, per: bigint): string {
  return formatDollars(toNano(pico(amount * per)))
}
