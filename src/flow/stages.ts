import type { ClientSignal } from '../base/http/client-signal.ts'
import type { PushedBody } from '../base/http/pushed-body.ts'
import type { GatewayError } from '../base/errors.ts'
import type { Address, Connection } from '../base/http/connection.ts'
import type { AttemptId, RequestId } from '../base/ids.ts'
import type { Nano } from '../base/money.ts'
import type { AskFacts, ReadBody } from '../capabilities/ask.ts'
import type { Hold } from '../billing/billing.ts'
import type { Model } from '../catalogue/model.ts'
import type { Pass, SetHeader } from '../limits/limiter.ts'
import type { Principal } from '../keys/key-ring.ts'
import type { AttemptRecord } from '../store/requests.ts'
import type { Route } from '../upstream/channels.ts'
import type { Errand, Job } from './job.ts'
import type { Leg } from './legs.ts'
import type { Relay } from './relay.ts'

/** A request as it arrived: nothing about it has been checked yet. */
export type Received = {
  readonly requestId: RequestId
  readonly job: Job
  readonly credential: string | undefined
  /** The client's address; a forwarding header counts only behind a configured trusted proxy. */
  readonly address: Address
  /** The socket that the answer goes to. */
  readonly client: Pick<Connection, 'unreadBytes' | 'letGo'>
  /** Call before asking a vendor: until then a stopping node may refuse the request, since nothing was bought yet. */
  readonly markVendorCalled: () => void
  /** Aborts when the client hangs up. */
  readonly signal: ClientSignal
  /** Unix milliseconds. */
  readonly receivedAt: number
  /** Whole milliseconds since `receivedAt`, by a clock that never jumps. */
  elapsedMs(): number
  readonly path: string
  readonly idempotencyKey: string | undefined
  /** Sets a header of the response, whether that becomes an answer or an error. */
  readonly setHeader: SetHeader
  /** Called only after the key was accepted; reads once. Throws for a body that is too large or not an object. */
  readBody(): Promise<ReadBody>
  readonly header: (name: string) => string | null
}

/** Proof that the key is good. */
export type Authenticated = Received & { readonly principal: Principal }

/** Proof that the key has requests left. */
export type Limited = Authenticated & { readonly pass: Pass }

/** Proof that the request is valid, allowed, and paid for up to its hold. */
export type Admitted = Limited & {
  readonly ask: AskFacts
  readonly errand: Errand
  readonly model: Model
  readonly funds: Hold
}

/** Proof that there is a route to send the request over. One per attempt. */
export type Routed = Admitted & {
  readonly route: Route
  readonly attemptId: AttemptId
  readonly startedAt: number
  readonly connection: 'kept' | 'new'
}

export type Outcome =
  | {
      readonly kind: 'answered'
      readonly body: Uint8Array
      readonly contentType: string
      readonly legs: readonly Leg[]
      /** Calls for parts of the answer that failed and were repeated. */
      readonly failed?: readonly AttemptRecord[]
    }
  | {
      readonly kind: 'streaming'
      readonly relay: Relay
      readonly contentType: string
      /** What it will cost, where that is certain once its first byte is there. */
      readonly cost?: Nano
    }
  | {
      readonly kind: 'failed'
      readonly error: GatewayError
      readonly attempts: readonly AttemptRecord[]
      readonly retry: Retry
      /** A vendor had begun and may charge. Other routes may be tried; if none answers, the failure is final. */
      readonly mayBeCharged?: boolean
    }

/** `elsewhere`: on another channel. `anew`: on the same channel, over a new connection or with a changed request. */
export type Retry = 'no' | 'elsewhere' | 'anew'

/** What became of the last attempt. `unasked`: its vendor has no form for the request, and was not called. */
export type Tried = Retry | 'unasked'

export type Failed = Extract<Outcome, { kind: 'failed' }>

export type Delivered = Exclude<Outcome, Failed>

/** What the line hands back to the edge. */
export type Answer =
  | WholeAnswer
  | {
      readonly kind: 'stream'
      readonly body: PushedBody
      readonly contentType: string
      readonly cost?: Nano
      /** Resolves once the stream's hold has ended, or could not be ended. */
      readonly ended: Promise<void>
    }

export type WholeAnswer = {
  readonly kind: 'whole'
  readonly body: Uint8Array
  readonly contentType: string
  readonly cost: Nano
  /** 200 when absent. */
  readonly status?: number
}
