import { systemTimers } from '../base/clock.ts'
import { badRequest, GatewayError } from '../base/errors.ts'
import type { RequestId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { macFor } from '../base/secret.ts'
import { decodeUtf8 } from '../base/utf8.ts'
import { within } from '../base/within.ts'
import { isUnavailable } from '../store/faults.ts'
import {
  beginAnswer,
  cancelUncertainAnswer,
  freeAnswer,
  keepAnswer,
  keepFact,
  type AnswerId,
  type KeptAnswer,
} from '../store/idempotency.ts'
import { RetryQueue } from '../store/retry-queue.ts'
import type { Store } from '../store/open.ts'
import type { Queries, Tx } from '../store/schema.ts'
import { RowRoom } from './row-room.ts'
import { sealUnder } from './seal.ts'
import { Storing } from './storing.ts'

/** A request with an Idempotency-Key. */
export type IdempotentRequest = {
  readonly accountId: string
  readonly path: string
  /** As the client sent it. */
  readonly key: string
  /** The content of the body: under the same key, another one is refused. */
  readonly body: Uint8Array
  readonly requestId: RequestId
}

export type Begun =
  | { readonly kind: 'begun'; readonly record: IdempotencyRecord }
  /** The answer to give again. */
  | { readonly kind: 'replay'; readonly status: number; readonly body: Uint8Array }
  /** The error to give again. */
  | { readonly kind: 'failed'; readonly failure: GatewayError }

/** How a request that has begun ends. One of these is called at its end, perhaps after `keepIn`. */
export type IdempotencyRecord = {
  /** Stores the answer, which will be given again. */
  keep(status: number, body: Uint8Array): Promise<void>
  /** The same for a short answer, in the caller's transaction: it is stored if and only if what it reports is. */
  keepIn(tx: Tx, status: number, body: string): Promise<void>
  /**
   * Stores that the request happened, where its answer cannot be given again: a stream, audio, an answer that no client
   * waited for. An answer that was stored with `keepIn` is still given.
   */
  keepFact(status: number): Promise<void>
  /** Stores a failure after which the vendor may have charged: the same error will be given again. */
  keepFailure(failure: GatewayError): Promise<void>
  /** Forgets the request: the next try runs. */
  free(): Promise<void>
  /** The same in the caller's transaction, which takes back what the answer of `keepIn` reports. */
  freeIn(tx: Tx): Promise<void>
}

export type Idempotency = {
  begin(asked: IdempotentRequest): Promise<Begun>
  /** Tries unfinished writes once more, and lets long answers on their way arrive, for a few seconds at most. */
  close(): Promise<void>
}

const keyPattern = /^[\x21-\x7e]{1,255}$/
export const keepAnswersMs = 24 * 60 * 60 * 1000
const runningRetrySeconds = 1
const behindPauseMs = 500

// The longest answer that a row holds. Images and vectors are longer, and would block the database, on SQLite for all.
const rowBytesMax = 1024 * 1024
// A client cut off by a stopping node asks again and should get its answer, but a stop must not hang on a bucket.
const closeMsMaxDefault = 3_000
// Precedes the name of an answer that is stored elsewhere. A sealed text is base64, which has no colon.
const elsewhere = 'artifact:'

/** The storage for answers that are too long for a row. */
export type LongAnswers = {
  /** Undefined where there is no room, or none for more of this account. */
  keepPrivate(bytes: Uint8Array, accountId: string, expiresAt: number): Promise<string | undefined>
  readPrivate(name: string): Promise<Uint8Array | undefined>
}

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

export function makeIdempotency(parts: IdempotencyParts): Idempotency {
  const { store, secret, node, longAnswers, log, closeMsMax = closeMsMaxDefault } = parts
  const mac = macFor(secret, 'idempotency')
  const room = new RowRoom(keepAnswersMs, parts.accountBytesMax)
  const storing = new Storing(parts.storingBytesMax)
  const behind = new RetryQueue({ log, clock: store, timers: systemTimers, pauseMs: behindPauseMs })

  function retryLater(write: () => Promise<void>, request: string): void {
    void behind.add({ write, about: { request }, deadline: store.now() + keepAnswersMs })
  }

  function recordOf(id: AnswerId, asked: IdempotentRequest): IdempotencyRecord {
    const { requestId } = asked
    const sealed = (body: string) => sealUnder(asked.key, secret).seal(body)
    const keepShort = (db: Queries, status: number, body: string) =>
      keepAnswer(db, id, { requestId, status, sealedBody: sealed(body) })
    const notKept = (cause: string) => log.warn({ request: requestId, cause }, 'a long answer could not be stored')
    const happened = (status: number | null, sealedBody: string | null = null) =>
      keepFact(store.db, id, { requestId, status, sealedBody })

    async function keepLong(status: number, body: Uint8Array): Promise<void> {
      try {
        const sealedBody = await storeElsewhere(body, asked)
        await keepAnswer(store.db, id, { requestId, status, sealedBody })
      } catch (thrown) {
        notKept(String(thrown))
      }
    }

    /** Retries while the database is away: a client that comes back must not find its request running for ever. */
    async function surely(write: () => Promise<void>): Promise<void> {
      try {
        await write()
      } catch (thrown) {
        if (!isUnavailable(thrown)) throw thrown
        retryLater(write, requestId)
      }
    }

    return {
      async keep(status, body) {
        const isShort = body.length <= rowBytesMax
        if (isShort && room.take(asked.accountId, body.length, store.now())) {
          return surely(() => keepShort(store.db, status, decodeUtf8(body)))
        }
        await surely(() => happened(status))
        if (isShort) return undefined
        // Not awaited: the answer is paid for, and its client must not wait for a disk or a bucket.
        const hasBegun = storing.begin(body.length, () => keepLong(status, body))
        if (!hasBegun) notKept('too many answers are being stored at once')
      },
      keepIn: keepShort,
      keepFact: (status) => surely(() => happened(status)),
      // Without a status, unlike an answer; and a node of the previous version on the same database takes it for a
      // fact.
      keepFailure: (failure) => surely(() => happened(null, sealed(writeFailure(failure)))),
      free: () => surely(() => freeAnswer(store.db, id, requestId)),
      freeIn: (tx) => freeAnswer(tx, id, requestId),
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
      const begun = { fingerprint, requestId, node, keepMs: keepAnswersMs }
      let mayHaveBegun = false
      const found = await beginAnswer(store, id, begun, () => (mayHaveBegun = true)).catch((thrown: unknown) => {
        // A client that is told to try again must not find a request marked as running that never runs.
        if (mayHaveBegun && isUnavailable(thrown)) retryLater(() => cancelUncertainAnswer(store, id, begun), requestId)
        throw new GatewayError('overloaded', 'Idempotency keys cannot be checked at the moment.', {
          retryAfterSeconds: 1,
          cause: thrown,
        })
      })
      if (found === 'begun') return { kind: 'begun', record: recordOf(id, asked) }
      return recall(found, fingerprint, asked)
    },

    async close() {
      await within(closeMsMax, Promise.all([behind.close(), storing.arrived()]))
      if (storing.count > 0) log.warn({ count: storing.count }, 'the node stops before all long answers were stored')
    },
  }

  /** Null where there is no room for the answer: then only the fact is stored that it happened. */
  async function storeElsewhere(body: Uint8Array, asked: IdempotentRequest): Promise<string | null> {
    const sealed = await sealUnder(asked.key, secret).sealBytes(body)
    const name = await longAnswers.keepPrivate(sealed, asked.accountId, store.now() + keepAnswersMs)
    return name === undefined ? null : elsewhere + name
  }

  /** Undefined where the answer is stored at no place that this node can reach. */
  async function bodyOf(sealedBody: string, asked: IdempotentRequest): Promise<Uint8Array | undefined> {
    const seal = sealUnder(asked.key, secret)
    if (!sealedBody.startsWith(elsewhere)) return Buffer.from(seal.unseal(sealedBody))
    const sealed = await longAnswers.readPrivate(sealedBody.slice(elsewhere.length))
    return sealed && seal.unsealBytes(sealed)
  }

  async function recall(found: KeptAnswer, fingerprint: string, asked: IdempotentRequest): Promise<Begun> {
    if (found.fingerprint !== fingerprint) {
      throw new GatewayError('idempotency-mismatch', 'This Idempotency-Key was used with another body.')
    }
    if (found.state === 'running') {
      throw new GatewayError('conflict', `The request ${found.requestId} with this Idempotency-Key is still running.`, {
        code: 'idempotency_in_progress',
        retryAfterSeconds: runningRetrySeconds,
      })
    }
    const { requestId, status, sealedBody } = found
    const body = sealedBody === null ? undefined : await bodyOf(sealedBody, asked)
    if (body === undefined) {
      throw new GatewayError('conflict', `The request ${requestId} with this Idempotency-Key has been completed.`, {
        code: 'already_completed',
        shouldRetry: false,
      })
    }
    return status === null ? { kind: 'failed', failure: readFailure(body) } : { kind: 'replay', status, body }
  }
}

/** Stores the error itself and not the response, because each protocol writes it in its own shape. */
function writeFailure({ kind, message, details }: GatewayError): string {
  return JSON.stringify({ kind, message, details: { ...details, cause: undefined, inside: undefined } })
}

/** Nothing but `writeFailure` writes what is sealed without a status. */
function readFailure(body: Uint8Array): GatewayError {
  const { kind, message, details } = JSON.parse(decodeUtf8(body)) as Pick<GatewayError, 'kind' | 'message' | 'details'>
  return new GatewayError(kind, message, details)
}
