import { asGatewayError, type GatewayError } from '../base/errors.ts'
import { zeroNano } from '../base/money.ts'
import type { Idempotency, RememberedAttempt } from '../idempotency/idempotency.ts'
import type { Answer, Limited } from './stages.ts'

/** Runs a request once however often it is sent: for clients that give an Idempotency-Key, and at no cost to others. */
export function makeOnce(idempotency: Idempotency) {
  return async (limited: Limited, walk: () => Promise<Answer>): Promise<Answer> => {
    const { idempotencyKey: key, path, principal, requestId } = limited
    if (key === undefined) return walk()
    const { raw } = await limited.readBody()
    const begun = await idempotency.begin({ accountId: principal.accountId, path, key, body: raw, requestId })
    if (begun.kind === 'replay') {
      limited.say('idempotent-replayed', 'true')
      return { kind: 'whole', body: Buffer.from(begun.body), cost: zeroNano }
    }
    return remember(begun.attempt, walk)
  }
}

async function remember(attempt: RememberedAttempt, walk: () => Promise<Answer>): Promise<Answer> {
  try {
    const answer = await walk()
    if (answer.kind === 'whole') await attempt.keep(200, Buffer.from(answer.body).toString('utf8'))
    else await attempt.keepFact(200)
    return answer
  } catch (thrown) {
    const error = asGatewayError(thrown)
    await (mayHaveBeenCharged(error) ? attempt.keepFact(500) : attempt.free())
    throw thrown
  }
}

/** A failure that must not be tried again is one that the vendor was paid for. */
function mayHaveBeenCharged(error: GatewayError): boolean {
  return error.details.shouldRetry === false && error.kind === 'overloaded'
}
