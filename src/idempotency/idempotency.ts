import { badRequest, GatewayError } from '../base/errors.ts'
import type { RequestId } from '../base/ids.ts'
import { macFor } from '../base/secret.ts'
import { beginAnswer, freeAnswer, keepAnswer, keepFact, type AnswerId, type KeptAnswer } from '../store/idempotency.ts'
import type { Store } from '../store/open.ts'
import type { Tx } from '../store/schema.ts'
import { seal, unseal } from './seal.ts'

/** What is remembered under an Idempotency-Key. */
export type Asked = {
  readonly accountId: string
  readonly path: string
  /** As the client sent it. */
  readonly key: string
  /** The body as it was sent: another body under the same key is another request. */
  readonly body: Uint8Array
  readonly requestId: RequestId
}

export type Begun =
  | { readonly kind: 'begun'; readonly attempt: RememberedAttempt }
  | { readonly kind: 'replay'; readonly status: number; readonly body: string; readonly requestId: string }

/** How the request that began ends. One of these is called at its end, perhaps after `keepIn`. */
export type RememberedAttempt = {
  /** Its answer will be given again. */
  keep(status: number, body: string): Promise<void>
  /** The same, in a commit of the caller's: the answer is kept if and only if what it tells of is there. */
  keepIn(tx: Tx, status: number, body: string): Promise<void>
  /**
   * It happened, and what it gave cannot be given again: a stream, a sound, a failure after the vendor charged. What was
   * kept with `keepIn` is given all the same.
   */
  keepFact(status: number): Promise<void>
  /** It did not happen: whoever tries again runs. */
  free(): Promise<void>
}

export type Idempotency = { begin(asked: Asked): Promise<Begun> }

const keyPattern = /^[\x21-\x7e]{1,255}$/
export const keepAnswersMs = 24 * 60 * 60 * 1000
const keptBodyBytesMax = 1024 * 1024
const runningRetrySeconds = 1

export function makeIdempotency(parts: { store: Store; secret: Uint8Array; node: string }): Idempotency {
  const { store, secret, node } = parts
  const mac = macFor(secret, 'idempotency')

  function attemptOf(id: AnswerId, asked: Asked): RememberedAttempt {
    const { requestId } = asked
    const answerOf = (status: number, body: string) => {
      const sealedBody = Buffer.byteLength(body) > keptBodyBytesMax ? null : seal(body, asked.key, secret)
      return { requestId, status, sealedBody }
    }
    return {
      keep: (status, body) => keepAnswer(store.db, id, answerOf(status, body)),
      keepIn: (tx, status, body) => keepAnswer(tx, id, answerOf(status, body)),
      keepFact: (status) => keepFact(store.db, id, { requestId, status }),
      free: () => freeAnswer(store.db, id, requestId),
    }
  }

  return {
    async begin(asked) {
      if (!keyPattern.test(asked.key)) {
        throw badRequest('Idempotency-Key must be 1 to 255 visible ASCII characters.', 'Idempotency-Key')
      }
      const id = { accountId: asked.accountId, path: asked.path, keyDigest: mac(asked.key).toString('hex') }
      const fingerprint = mac(Buffer.from(asked.body).toString('latin1')).toString('hex')
      const { requestId } = asked
      const found = await beginAnswer(store, id, { fingerprint, requestId, node, keepMs: keepAnswersMs }).catch(
        (thrown: unknown) => {
          throw new GatewayError('overloaded', 'Idempotency keys cannot be checked at the moment.', {
            retryAfterSeconds: 1,
            cause: thrown,
          })
        },
      )
      if (found === 'begun') return { kind: 'begun', attempt: attemptOf(id, asked) }
      return recall(found, fingerprint, asked)
    },
  }

  function recall(found: KeptAnswer, fingerprint: string, asked: Asked): Begun {
    if (found.fingerprint !== fingerprint) {
      throw new GatewayError('idempotency-mismatch', 'This Idempotency-Key was used with another body.')
    }
    if (found.state === 'running') {
      throw new GatewayError('conflict', `The request ${found.requestId} with this Idempotency-Key is still running.`, {
        code: 'idempotency_in_progress',
        retryAfterSeconds: runningRetrySeconds,
      })
    }
    if (found.sealedBody === null || found.status === null) {
      throw new GatewayError(
        'conflict',
        `The request ${found.requestId} with this Idempotency-Key has been completed.`,
        {
          code: 'already_completed',
          shouldRetry: false,
        },
      )
    }
    const body = unseal(found.sealedBody, asked.key, secret)
    return { kind: 'replay', status: found.status, body, requestId: found.requestId }
  }
}
