import { asGatewayError, final, type GatewayError } from '../base/errors.ts'
import type { RememberedAttempt } from '../idempotency/idempotency.ts'
import type { Principal } from '../keys/key-ring.ts'
import type { Pass } from '../limits/limiter.ts'
import type { AttemptRecord } from '../store/requests.ts'
import type { Admitted, Answer, Authenticated, Delivered, Limited, Outcome, Received, Retry, Routed } from './stages.ts'

/** The stages, each with what it needs already inside: the composition root builds them, tests replace them. */
export type Parts = {
  /** These two take what they need and no more: what is asked about an account comes this way and goes no further. */
  authenticate(received: Pick<Received, 'credential' | 'address'>): Promise<Principal>
  limit(authenticated: Pick<Authenticated, 'principal' | 'say'>): Promise<Pass>
  /** Walks, unless the same request has been walked before. */
  once(limited: Omit<Limited, 'job'>, walk: (remembered?: RememberedAttempt) => Promise<Answer>): Promise<Answer>
  admit(limited: Limited): Promise<Admitted>
  /** Gives the next way each time it is asked, and is told how the last one failed. */
  route(admitted: Admitted): Iterator<Routed, void, Retry | undefined>
  /** Why there was no way at all. */
  noRoute(admitted: Admitted): GatewayError
  call(routed: Routed): Promise<Outcome>
  /** What it has to throw away it adds to what failed. */
  meter(routed: Routed, delivered: Delivered, failed: AttemptRecord[]): Promise<Answer> | Answer
  /** Never throws: an error is on its way to the client already. */
  release(admitted: Admitted, failed: readonly AttemptRecord[], error: unknown): Promise<void>
}

/** One request, one walk down the line. What a stage needs, the stage before it proves. */
export async function run(parts: Parts, received: Received): Promise<Answer> {
  const authenticated = { ...received, principal: await parts.authenticate(received) }
  const limited = { ...authenticated, pass: await parts.limit(authenticated) }
  try {
    return await parts.once(limited, () => answer(parts, limited))
  } catch (error) {
    limited.pass.leave(0)
    throw error
  }
}

async function answer(parts: Parts, limited: Limited): Promise<Answer> {
  const admitted = await parts.admit(limited) // the model's rules, and a hold on the money

  const failed: AttemptRecord[] = []
  let mayBeCharged = false
  try {
    let error: GatewayError | undefined
    const routes = parts.route(admitted)
    for (let next = routes.next(); !next.done;) {
      const routed = next.value
      const outcome = await parts.call(routed)
      // The answer may stream for minutes: metering follows it to its end and settles there, once.
      if (outcome.kind !== 'failed') return await parts.meter(routed, outcome, failed)

      failed.push(...outcome.attempts) // a failed attempt is our cost, never the customer's
      error = outcome.error
      if (outcome.mayBeCharged) mayBeCharged = true
      if (outcome.retry === 'no') break
      next = routes.next(outcome.retry)
    }
    throw error ?? parts.noRoute(admitted)
  } catch (thrown) {
    const error = mayBeCharged ? final(asGatewayError(thrown)) : thrown
    await parts.release(admitted, failed, error)
    throw error
  }
}
