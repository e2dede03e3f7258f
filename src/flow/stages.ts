import type { Address, Connection } from '../base/listen.ts'
import type { GatewayError } from '../base/errors.ts'
import type { AttemptId, RequestId } from '../base/ids.ts'
import type { JsonObject } from '../base/json.ts'
import type { Nano } from '../base/money.ts'
import type { AskedFile, AskFacts } from '../capabilities/ask.ts'
import type { Hold } from '../billing/funds.ts'
import type { Model } from '../catalogue/model.ts'
import type { Pass, Say } from '../limits/limiter.ts'
import type { Principal } from '../keys/key-ring.ts'
import type { AttemptRecord } from '../store/requests.ts'
import type { Route } from '../upstream/channels.ts'
import type { Errand, Job } from './job.ts'
import type { Leg } from './legs.ts'
import type { Relay } from './relay.ts'

/** A request at the door: nothing about it is believed yet. */
export type Received = {
  readonly requestId: RequestId
  readonly job: Job
  readonly credential: string | undefined
  /** Where the request came from, as far as the configured proxies may be believed. */
  readonly address: Address
  /** The socket that the answer goes to. */
  readonly client: Pick<Connection, 'untaken' | 'letGo'>
  /** To be said before a vendor is asked: until then a stop may send the client away, since nothing was bought for it. */
  readonly inHands: () => void
  /** Aborts when the client hangs up. */
  readonly signal: AbortSignal
  /** Unix milliseconds. */
  readonly receivedAt: number
  /** Whole milliseconds since then, by a clock that never jumps. */
  elapsedMs(): number
  readonly path: string
  readonly idempotencyKey: string | undefined
  /** Says something in the head of the answer, whichever answer it becomes. */
  readonly say: Say
  /** Read once, and only when the key is known to be good; throws for a body that is too large or not an object. */
  readBody(): Promise<ReadBody>
  readonly header: (name: string) => string | null
}

/** A body read whole: a JSON object or a form, and what it says, to tell two requests apart. */
export type ReadBody = {
  readonly body: JsonObject
  readonly files: readonly AskedFile[]
  readonly said: Uint8Array
  readonly bytes: number
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

/** Proof that there is somewhere to send it. One per attempt. */
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
      /** Calls for parts of it that came to nothing and were made again. */
      readonly failed?: readonly AttemptRecord[]
    }
  | { readonly kind: 'streaming'; readonly relay: Relay; readonly contentType: string }
  | {
      readonly kind: 'failed'
      readonly error: GatewayError
      readonly attempts: readonly AttemptRecord[]
      readonly retry: Retry
      /** A vendor had begun on it. Others may be tried; where none of them serves the request, its failure is final. */
      readonly mayBeCharged?: boolean
    }

/** `elsewhere`: another channel may do better. `anew`: the same one may, over a new connection or asked otherwise. */
export type Retry = 'no' | 'elsewhere' | 'anew'

export type Delivered = Exclude<Outcome, { kind: 'failed' }>

/** What goes back to the edge. */
export type Answer =
  | {
      readonly kind: 'whole'
      readonly body: Uint8Array
      readonly contentType: string
      readonly cost: Nano
      /** 200 where nothing is said. */
      readonly status?: number
    }
  | {
      readonly kind: 'stream'
      readonly body: ReadableStream<Uint8Array>
      readonly contentType: string
      /** Resolves once its end is on record. */
      readonly ended: Promise<void>
    }
