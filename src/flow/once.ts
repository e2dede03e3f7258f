import { asGatewayError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { zeroNano } from '../base/money.ts'
import { failureIn, type Idempotency, type RememberedAttempt } from '../idempotency/idempotency.ts'
import { json } from './content-types.ts'
import type { Answer, Limited } from './stages.ts'

type Walk = (remembered?: RememberedAttempt) => Promise<Answer>

/** Runs a request once however often it is sent: for clients that give an Idempotency-Key, and at no cost to others. */
export function makeOnce(parts: { idempotency: Idempotency; log: Log }) {
  return (limited: Omit<Limited, 'job'>, walk: Walk): Promise<Answer> => {
    const { idempotencyKey } = limited
    return idempotencyKey === undefined ? walk() : walkOnce(limited, idempotencyKey, walk)
  }

  async function walkOnce(limited: Omit<Limited, 'job'>, key: string, walk: Walk): Promise<Answer> {
    const { path, principal, requestId } = limited
    const { said } = await limited.readBody()
    const begun = await parts.idempotency.begin({ accountId: principal.accountId, path, key, body: said, requestId })
    if (begun.kind === 'replay') {
      limited.pass.leave(0)
      limited.say('idempotent-replayed', 'true')
      const failure = failureIn(begun)
      if (failure !== undefined) throw failure
      const { status, body } = begun
      return { kind: 'whole', status, body, contentType: json, cost: zeroNano }
    }
    const notKept = (thrown: unknown) => {
      parts.log.error(
        { request: requestId, cause: String(thrown) },
        'the outcome under an Idempotency-Key could not be stored',
      )
    }
    const answer = await walk(begun.attempt).catch(async (thrown: unknown) => {
      await forget(begun.attempt, thrown).catch(notKept)
      throw thrown
    })
    // The answer is paid for: that it could not be kept must not keep it from the client.
    if (answer.kind === 'whole') await keep(begun.attempt, answer).catch(notKept)
    // Until its end a stream is still running. The vendor had begun on it, so that even one without a word is not free.
    else void answer.ended.then(() => begun.attempt.keepFact(200)).catch(notKept)
    return answer
  }
}

type Whole = Extract<Answer, { kind: 'whole' }>

async function keep(attempt: RememberedAttempt, { status = 200, body, contentType }: Whole): Promise<void> {
  if (contentType === json) await attempt.keep(status, body)
  else await attempt.keepFact(status)
}

/** A failure that must not be tried again is one that a vendor may have been paid for; any other did not happen. */
async function forget(attempt: RememberedAttempt, thrown: unknown): Promise<void> {
  const failure = asGatewayError(thrown)
  if (failure.details.shouldRetry !== false) await attempt.free()
  // What it is called here was told to nobody.
  else if (failure.kind === 'client-gone') await attempt.keepFact(500)
  else await attempt.keepFailure(failure)
}
