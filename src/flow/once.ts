import { asGatewayError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { zeroNano } from '../base/money.ts'
import type { Idempotency } from '../idempotency/idempotency.ts'
import type { IdempotencyRecord } from '../idempotency/record.ts'
import { json } from './content-types.ts'
import type { Answer, Limited, WholeAnswer } from './stages.ts'

/** The rest of the line. Under an Idempotency-Key it may store its own answer, together with what that reports. */
export type Walk<A extends Answer> = (remembered?: IdempotencyRecord) => Promise<A>

/** Runs a request with an Idempotency-Key once, however often it is sent. Requests without one do not pay for this. */
export function makeOnce(parts: { idempotency: Idempotency; log: Log }) {
  return <A extends Answer>(limited: Omit<Limited, 'job'>, walk: Walk<A>): Promise<A | WholeAnswer> => {
    const { idempotencyKey } = limited
    return idempotencyKey === undefined ? walk() : walkOnce(limited, idempotencyKey, walk)
  }

  async function walkOnce<A extends Answer>(
    limited: Omit<Limited, 'job'>,
    key: string,
    walk: Walk<A>,
  ): Promise<A | WholeAnswer> {
    const { path, principal, requestId } = limited
    const { body, canonicalBytes } = await limited.readBody()
    const { model } = body
    // A model that the key may not use answers like one that does not exist, even if another key has asked it.
    if (typeof model === 'string' && !principal.mayUse(model)) return walk()
    const begun = await parts.idempotency.begin({
      accountId: principal.accountId,
      path,
      key,
      body: canonicalBytes,
      requestId,
    })
    if (begun.kind !== 'begun') {
      limited.pass.leave(0)
      limited.setHeader('idempotent-replayed', 'true')
      if (begun.kind === 'failed') throw begun.failure
      return { kind: 'whole', status: begun.status, body: begun.body, contentType: json, cost: zeroNano }
    }
    const notKept = (thrown: unknown) => {
      parts.log.error(
        { request: requestId, cause: String(thrown) },
        'the outcome under an Idempotency-Key could not be stored',
      )
    }
    const answer = await walk(begun.record).catch(async (thrown: unknown) => {
      await endFailed(begun.record, thrown).catch(notKept)
      throw thrown
    })
    // The answer is paid for, so the client gets it even if it could not be stored.
    if (answer.kind === 'whole') await keep(begun.record, answer).catch(notKept)
    // A stream counts as running until its end. Even an empty one does not free its key, since the vendor may charge.
    else void answer.ended.then(() => begun.record.keepFact(200)).catch(notKept)
    return answer
  }
}

async function keep(record: IdempotencyRecord, { status = 200, body, contentType }: WholeAnswer): Promise<void> {
  if (contentType === json) await record.keep(status, body)
  else await record.keepFact(status)
}

/** Stores a failure that must not be retried, since a vendor may charge for it; any other failure frees the key. */
async function endFailed(record: IdempotencyRecord, thrown: unknown): Promise<void> {
  const failure = asGatewayError(thrown)
  if (failure.details.shouldRetry !== false) await record.free()
  // The client was gone and has seen no error, so there is none to repeat.
  else if (failure.kind === 'client-gone') await record.keepFact(500)
  else await record.keepFailure(failure)
}
