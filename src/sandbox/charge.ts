import { answeredEntry, noUnits, type Units } from './bill.ts'
import type { SandboxModel } from './model.ts'
import type { Call, World } from './protocol.ts'
import type { Steering } from './steering.ts'

type Charged = { readonly model: SandboxModel; readonly steering: Steering }

/** Writes the line of a call that was answered, wholly or in part. */
export function charge(
  call: Pick<Call, 'ref'>,
  world: Pick<World, 'bill'>,
  { model, steering }: Charged,
  status: number,
  units: Units,
): void {
  // A call that was hung up on before its first token, or asked to be free, does not cost the price per request either.
  const isFree = units === noUnits || steering.has('zero')
  const entry = answeredEntry(call.ref, model, status, units)
  world.bill.add(isFree ? { ref: entry.ref, model: entry.model, status, units } : entry)
}
