import { answeredEntry, noUnits, type Units } from './bill.ts'
import type { SandboxModel } from './model.ts'
import type { Call, World } from './protocol.ts'
import type { Steering } from './steering.ts'

type Charged = { readonly model: SandboxModel; readonly steering: Steering }

/** Adds a bill line for a call that was answered completely or in part. */
export function charge(
  call: Pick<Call, 'ref'>,
  world: Pick<World, 'bill'>,
  { model, steering }: Charged,
  status: number,
  units: Units,
): void {
  // A call hung up on before its first token, or steered to be free, does not pay the price per request either.
  const isFree = units === noUnits || steering.has('zero')
  const entry = answeredEntry(call.ref, model, status, units)
  world.bill.add(isFree ? { ref: entry.ref, model: entry.model, status, units } : entry)
}
