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

/** When the next prices of any model begin; undefined if none are announced. */
export function nextPricesFrom(families: readonly FamilyFile[], at: number): number | undefined {
  const begins = families
    .flatMap(({ models }) => models)
    .flatMap(({ laterPrices = [] }) => laterPrices.map(({ from }) => Date.parse(from)))
    .filter((begin) => begin > at)
  return begins.length === 0 ? undefined : Math.min(...begins)
}
