import { systemTimers } from '../base/clock.ts'
import { badRequest, GatewayError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { macFor } from '../base/secret.ts'
import { within } from '../base/within.ts'
import { isUnavailable } from '../store/faults.ts'
import { beginAnswer, cancelUncertainAnswer, type AnswerId, type KeptAnswer } from '../store/idempotency.ts'
import { RetryQueue } from '../store/retry-queue.ts'
import type { Store } from '../store/open.ts'
import { makeAnswerBodies, type LongAnswers } from './answer-bodies.ts'
import { readFailure } from './kept-failure.ts'
import { BegunRecord, type Desk, type IdempotencyRecord, type IdempotentRequest } from './record.ts'
import { RowRoom } from './row-room.ts'
import { Storing } from './storing.ts'

export type Begun =
  | { readonly kind: 'begun'; readonly record: IdempotencyRecord }
  /** The answer to give again. */
  | { readonly kind: 'replay'; readonly status: number; readonly body: Uint8Array }
  /** The error to give again. */
  | { readonly kind: 'failed'; readonly failure: GatewayError }

const keyPattern = /^[\x21-\x7e]{1,255}$/
export const keepAnswersMs = 24 * 60 * 60 * 1000
const runningRetrySeconds = 1
const behindPauseMs = 500

// A client cut off by a stopping node asks again and should get its answer, but a stop must not hang on a bucket.
const closeMsMaxDefault = 3_000

type IdempotencyParts = {
  readonly store: Store
  readonly secret: Uint8Array
  readonly node: string
  readonly longAnswers: LongAnswers
  readonly log: Log
  /** The limit for answers that are on their way to the storage for long ones, and so in memory. */
  readonly storingBytesMax?: number
  readonly accountBytesMax?: number
  readonly closeMsMax?: number
}

/** One answer to each request with an Idempotency-Key, however often it is sent. */
export class Idempotency {
  readonly #parts: IdempotencyParts
  readonly #mac: ReturnType<typeof macFor>
  readonly #behind: RetryQueue
  readonly #desk: Desk

  constructor(parts: IdempotencyParts) {
    const { store, secret, longAnswers, log, accountBytesMax, storingBytesMax } = parts
    this.#parts = parts
    this.#mac = macFor(secret, 'idempotency')
    this.#behind = new RetryQueue({ log, clock: store, timers: systemTimers, pauseMs: behindPauseMs })
    const expiresAt = () => store.now() + keepAnswersMs
    this.#desk = {
      store,
      bodies: makeAnswerBodies(secret, longAnswers),
      room: new RowRoom(keepAnswersMs, accountBytesMax),
      storing: new Storing(storingBytesMax),
      log,
      expiresAt,
      retryLater: (write, request) => void this.#behind.add({ write, about: { request }, deadline: expiresAt() }),
    }
  }

  async begin(asked: IdempotentRequest): Promise<Begun> {
    if (!keyPattern.test(asked.key)) {
      throw badRequest('Idempotency-Key must be 1 to 255 visible ASCII characters.', 'Idempotency-Key')
    }
    const id = { accountId: asked.accountId, path: asked.path, keyDigest: this.#mac(asked.key).toString('hex') }
    const fingerprint = this.#mac(Buffer.from(asked.body).toString('latin1')).toString('hex')
    const found = await this.#beginOrFind(id, fingerprint, asked)
    if (found === 'begun') return { kind: 'begun', record: new BegunRecord(this.#desk, id, asked) }
    if (found.fingerprint !== fingerprint) {
      throw new GatewayError('idempotency-mismatch', 'This Idempotency-Key was used with another body.')
    }
    return this.#recall(found, asked)
  }

  /** Tries unfinished writes once more, and lets long answers on their way arrive, for a few seconds at most. */
  async close(): Promise<void> {
    const { log, closeMsMax = closeMsMaxDefault } = this.#parts
    const { storing } = this.#desk
    await within(closeMsMax, Promise.all([this.#behind.close(), storing.arrived()]))
    if (storing.count > 0) log.warn({ count: storing.count }, 'the node stops before all long answers were stored')
  }

  #beginOrFind(id: AnswerId, fingerprint: string, { requestId }: IdempotentRequest): Promise<'begun' | KeptAnswer> {
    const { store, node } = this.#parts
    const begun = { fingerprint, requestId, node, keepMs: keepAnswersMs }
    let mayHaveBegun = false
    return beginAnswer(store, id, begun, () => (mayHaveBegun = true)).catch((thrown: unknown) => {
      // A client that is told to try again must not find a request marked as running that never runs.
      if (mayHaveBegun && isUnavailable(thrown)) {
        this.#desk.retryLater(() => cancelUncertainAnswer(store, id, begun), requestId)
      }
      throw new GatewayError('overloaded', 'Idempotency keys cannot be checked at the moment.', {
        retryAfterSeconds: 1,
        cause: thrown,
      })
    })
  }

  async #recall(found: KeptAnswer, asked: IdempotentRequest): Promise<Begun> {
    const { requestId, state, status, sealedBody } = found
    if (state === 'running') {
      throw new GatewayError('conflict', `The request ${requestId} with this Idempotency-Key is still running.`, {
        code: 'idempotency_in_progress',
        retryAfterSeconds: runningRetrySeconds,
      })
    }
    const body = sealedBody === null ? undefined : await this.#desk.bodies.unseal(sealedBody, asked.key)
    if (body === undefined) {
      throw new GatewayError('conflict', `The request ${requestId} with this Idempotency-Key has been completed.`, {
        code: 'already_completed',
        shouldRetry: false,
      })
    }
    return status === null ? { kind: 'failed', failure: readFailure(body) } : { kind: 'replay', status, body }
  }
}
