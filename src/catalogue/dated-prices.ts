import type { Path } from './error.ts'
import type { FamilyFile, FamilyModel, WrittenPrices } from './schema.ts'

type Dated = Pick<FamilyModel, 'prices' | 'laterPrices'>

/** The prices of a model at a moment (Unix milliseconds), where they are written, and who says so if that is told. */
export function pricesAt(
  { prices, laterPrices = [] }: Dated,
  at: number,
): { readonly written: WrittenPrices; readonly path: Path; readonly source?: string } | undefined {
  const index = laterPrices.findLastIndex(({ from }) => Date.parse(from) <= at)
  const later = laterPrices[index]
  if (later !== undefined) {
    return { written: later.prices, path: ['laterPrices', index, 'prices'], source: later.source }
  }
  return prices === undefined ? undefined : { written: prices, path: ['prices'] }
}

/** Between two moments at which prices of any model change (Unix milliseconds); without one, an end is infinite. */
export type PriceSpan = { readonly from: number; readonly until: number }

/** How long around a moment the prices are those of the moment. */
export function priceSpanAt(families: readonly FamilyFile[], at: number): PriceSpan {
  const begins = families
    .flatMap(({ models }) => models)
    .flatMap(({ laterPrices = [] }) => laterPrices.map(({ from }) => Date.parse(from)))
  const from = Math.max(...begins.filter((begin) => begin <= at)) // of no numbers: minus infinity
  return { from, until: Math.min(...begins.filter((begin) => begin > at)) }
}
