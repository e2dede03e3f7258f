import type { GatewayError } from '../base/errors.ts'
import type { ReceivedRequest, AskFacts } from '../capabilities/ask.ts'
import type { Capability } from '../capabilities/capability.ts'
import type { ModelTraits } from '../capabilities/limits.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { CallParts } from './attempt.ts'
import type { Outcome, Routed } from './stages.ts'

/** What a path does. This is all that the line knows of a capability: how its requests are read and carried out. */
export type Job = {
  readonly capability: Capability
  /** Throws bad-request with the field at fault. `lookUp` throws for a model that is forbidden or cannot do this. */
  read(asked: ReceivedRequest, lookUp: (id: string) => ModelTraits): Errand
}

/** One request of a job, once read: its facts, and how it is carried out. */
export type Errand = {
  readonly ask: AskFacts
  /** An estimate of the input tokens for the key's token limit, before any vendor has counted them. */
  estimateInput(): number
  isServedBy(vendor: Vendor): boolean
  /** One attempt at one vendor. */
  call(parts: CallParts, routed: Routed): Promise<Outcome>
  /** Writes an error into a stream that has begun; undefined where the protocol has no error event. */
  writeStreamError(error: GatewayError): Uint8Array | undefined
}
