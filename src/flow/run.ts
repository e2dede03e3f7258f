import { asGatewayError, forbidRetry, GatewayError } from '../base/errors.ts'
import type { Principal } from '../keys/key-ring.ts'
import type { Pass } from '../limits/limiter.ts'
import type { AttemptRecord } from '../store/requests.ts'
import type { PassedOver } from '../upstream/nobody-serves.ts'
import type { Walk } from './once.ts'
import type {
  Admitted,
  Answer,
  Authenticated,
  Delivered,
  Failed,
  Limited,
  Outcome,
  Received,
  Routed,
  Tried,
  WholeAnswer,
} from './stages.ts'

/** The stages, each bound to its dependencies: the composition root builds the line, tests replace stages of it. */
export type Line = {
  /** These two take only the fields they need: a request that buys nothing, like a balance, passes no other stage. */
  authenticate(received: Pick<Received, 'credential' | 'address'>): Promise<Principal>
  limit(authenticated: Pick<Authenticated, 'principal' | 'setHeader'>): Promise<Pass>
  /** Calls `walk`, unless the same request with the same Idempotency-Key has run before. */
  once<A extends Answer>(limited: Omit<Limited, 'job'>, walk: Walk<A>): Promise<A | WholeAnswer>
  admit(limited: Limited): Promise<Admitted>
  /** Yields the next route on demand; `next` is told what became of the attempt before. */
  route(admitted: Admitted): Iterator<Routed, void, Tried | undefined>
  /** The error for a request for which `route` yielded no route but those that were passed over. */
  noRoute(admitted: Admitted, passedOver: readonly PassedOver[]): GatewayError
  call(routed: Routed): Promise<Outcome>
  /** Adds the calls of an answer that could not be billed to `failed`, so that `release` records them. */
  meter(routed: Routed, delivered: Delivered, failed: AttemptRecord[]): Promise<Answer> | Answer
  /** Never throws: the client must get the error that led here, not a second one. */
  release(admitted: Admitted, failed: readonly AttemptRecord[], error: unknown): Promise<void>
}

/** One request walks the line once. Each stage takes the proof that the stage before it gave. */
export async function run(line: Line, received: Received): Promise<Answer> {
  const authenticated = { ...received, principal: await line.authenticate(received) }
  const limited = { ...authenticated, pass: await line.limit(authenticated) }
  try {
    return await line.once(limited, () => answer(line, limited))
  } catch (error) {
    limited.pass.leave(0)
    throw error
  }
}

async function answer(line: Line, limited: Limited): Promise<Answer> {
  const admitted = await line.admit(limited) // checks the model's rules and takes a hold on the money

  const failed: AttemptRecord[] = []
  let mayBeCharged = false
  try {
    let error: GatewayError | undefined
    const passedOver: PassedOver[] = []
    const routes = line.route(admitted)
    for (let next = routes.next(); !next.done;) {
      const routed = next.value
      const outcome = await line.call(routed).catch(asRefused)
      // The answer may stream for minutes: metering follows it to its end and settles there, once.
      if (outcome.kind !== 'failed') return await line.meter(routed, outcome, failed)

      failed.push(...outcome.attempts) // a failed attempt is our cost, never the customer's
      if (outcome.mayBeCharged) mayBeCharged = true
      if (isInexpressible(outcome)) {
        passedOver.push({ route: routed.route, refusal: outcome.error })
        next = routes.next('unasked')
        continue
      }
      error = outcome.error
      if (outcome.retry === 'no') break
      next = routes.next(outcome.retry)
    }
    // A channel that could express the request but failed may recover, so its failure is the better answer.
    throw error ?? line.noRoute(admitted, passedOver)
  } catch (thrown) {
    const error = mayBeCharged ? forbidRetry(asGatewayError(thrown)) : thrown
    await line.release(admitted, failed, error)
    throw error
  }
}

/** The request itself is at fault, or cannot be written for this vendor, which was not called. */
function asRefused(thrown: unknown): Outcome {
  if (!(thrown instanceof GatewayError) || thrown.kind !== 'bad-request') throw thrown
  return { kind: 'failed', error: thrown, attempts: [], retry: 'no' }
}

/** Whether the channel could not be called, because the request cannot be written for its vendor. */
function isInexpressible({ error, attempts }: Failed): boolean {
  return error.kind === 'bad-request' && attempts.length === 0
}
