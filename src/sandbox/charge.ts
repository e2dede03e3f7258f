import { noUnits, type Units } from './bill.ts'
import type { SandboxModel } from './model.ts'
import type { Call, World } from './protocol.ts'

type Charged = { readonly model: SandboxModel }

/** Adds a bill line for a call that was answered completely or in part. */
export function charge(
  { ref }: Pick<Call, 'ref'>,
  { bill }: Pick<World, 'bill'>,
  { model: { model, prices } }: Charged,
  status: number,
  units: Units,
): void {
  // A call hung up on before its first token does not pay the price per request either.
  if (units === noUnits) bill.add({ ref, model, status, units })
  else bill.add({ ref, model, status, units: billed(units), prices })
}

/** Usage reported as negative is billed as zero. */
function billed(units: Units): Units {
  const { images } = units
  const counts = Object.entries(units).filter((entry): entry is [string, number] => typeof entry[1] === 'number')
  return {
    ...units,
    ...Object.fromEntries(counts.map(([unit, count]) => [unit, Math.max(0, count)])),
    ...(images && { images: { ...images, count: Math.max(0, images.count) } }),
  }
}
