import type { GatewayError } from '../base/errors.ts'
import type { Asked, AskFacts } from '../capabilities/ask.ts'
import type { Capability } from '../capabilities/capability.ts'
import type { Model } from '../catalogue/model.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { CallParts } from './attempt.ts'
import type { Outcome, Routed } from './stages.ts'

/** What a path is for. The line knows no more of a capability than this: how its requests are read and carried out. */
export type Job = {
  readonly capability: Capability
  /** Throws bad-request with the field at fault. `lookUp` throws for a model that the caller may not use, or not for this. */
  read(asked: Asked, lookUp: (id: string) => Model): Errand
}

/** One request that was read: its facts, and what can be done about it. */
export type Errand = {
  readonly ask: AskFacts
  /** A count of its tokens for the limits of its key, before any vendor has counted. */
  estimateInput(): number
  isServedBy(vendor: Vendor): boolean
  /** One attempt at one vendor. */
  call(parts: CallParts, routed: Routed): Promise<Outcome>
  /** An error in the middle of a stream; undefined where the protocol can only be cut off. */
  writeStreamError(error: GatewayError): Uint8Array | undefined
  /** What may stand between two events of a stream to say that it lives. */
  readonly keepAlive?: Uint8Array | undefined
}
