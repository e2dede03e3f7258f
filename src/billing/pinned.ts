import { pico, type Pico } from '../base/money.ts'
import type { PriceList, Rates } from '../capabilities/usage.ts'
import type { StoredPriceList, StoredRates } from '../store/task-schema.ts'

/** A price list as it is stored with the task it will settle, since the catalogue may drop the list meanwhile. */
export function writePriceList(list: PriceList): StoredPriceList {
  return {
    version: list.version,
    rates: write(list.rates),
    tiers: list.tiers.map(({ aboveInputTokens, rates }) => ({ aboveInputTokens, rates: write(rates) })),
    perImage: write(list.perImage),
    perSecond: write(list.perSecond),
    perVideo: write(list.perVideo),
    perVideoToken: write(list.perVideoToken),
  }
}

export function readPriceList(stored: StoredPriceList): PriceList {
  return {
    version: stored.version,
    rates: read(stored.rates) satisfies Rates,
    tiers: stored.tiers.map(({ aboveInputTokens, rates }) => ({ aboveInputTokens, rates: read(rates) })),
    perImage: read(stored.perImage),
    perSecond: read(stored.perSecond),
    perVideo: read(stored.perVideo ?? {}),
    perVideoToken: read(stored.perVideoToken),
  }
}

function write(rates: Readonly<Record<string, Pico>> | Rates): StoredRates {
  return Object.fromEntries(Object.entries(rates).map(([name, rate]) => [name, String(rate)]))
}

function read(rates: StoredRates): Record<string, Pico> {
  return Object.fromEntries(Object.entries(rates).map(([name, rate]) => [name, pico(BigInt(rate))]))
}
