import { noUnits, type Units } from '../bill.ts'
import type { Steering } from '../steering.ts'

type MainUnit = 'input' | 'imageOutput' | 'audioOutput' | 'characters' | 'images'

/** The reported usage: nothing with `sandbox:zero`, N of the main unit with `sandbox:usage=N`, otherwise everything. */
export function reportedUnits(steering: Steering, main: MainUnit, counted: Partial<Units>): Units {
  if (steering.has('zero')) return noUnits
  const units = { ...noUnits, ...counted }
  const told = steering.number('usage')
  if (told === undefined) return units
  return main === 'images' ? { ...units, images: { ...units.images, count: told } } : { ...units, [main]: told }
}

/** An empty object if `sandbox:nousage` hides the usage. */
export function usageUnlessHidden(steering: Steering, usage: unknown): { usage?: unknown } {
  return steering.has('nousage') ? {} : { usage }
}
