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
  forsakeAnswer,
  freeAnswer,
  keepAnswer,
  keepFact,
  type AnswerId,
  type KeptAnswer,
} from '../store/idempotency.ts'
import { Insisting } from '../store/insisting.ts'
import type { Store } from '../store/open.ts'
import type { Queries, Tx } from '../store/schema.ts'
import { sealUnder } from './seal.ts'

/** What is remembered under an Idempotency-Key. */
export type Asked = {
  readonly accountId: string
  readonly path: string
  /** As the client sent it. */
  readonly key: string
  /** What the body says: another one under the same key is another request. */
  readonly body: Uint8Array
  readonly requestId: RequestId
}

export type Begun =
  | { readonly kind: 'begun'; readonly attempt: RememberedAttempt }
  | { readonly kind: 'replay'; readonly status: number; readonly body: Uint8Array }

/** How the request that began ends. One of these is called at its end, perhaps after `keepIn`. */
export type RememberedAttempt = {
  /** Its answer will be given again. */
  keep(status: number, body: Uint8Array): Promise<void>
  /** The same for a short one, in a commit of the caller's: it is kept if and only if what it tells of is there. */
  keepIn(tx: Tx, status: number, body: string): Promise<void>
  /**
   * It happened, and what it gave cannot be given again: a stream, a sound, an answer that nobody waited for. What was kept
   * with `keepIn` is given all the same.
   */
  keepFact(status: number): Promise<void>
  /** The same for a failure after which the vendor may have charged: it will be told again. */
  keepFailure(failure: GatewayError): Promise<void>
  /** It did not happen: whoever tries again runs. */
  free(): Promise<void>
  /** The same in a commit of the caller's, which takes back what `keepIn` tells of. */
  freeIn(tx: Tx): Promise<void>
}

export type Idempotency = {
  begin(asked: Asked): Promise<Begun>
  /** What is not written down is tried once more, and long answers that are on their way may arrive: for a moment. */
  close(): Promise<void>
}

/** Of what failed. Answers that are given again are good ones, and have a lower one. */
const failedStatus = 500
const keyPattern = /^[\x21-\x7e]{1,255}$/
export const keepAnswersMs = 24 * 60 * 60 * 1000
const runningRetrySeconds = 1
const behindPauseMs = 500

// What a row holds. Pictures and vectors are longer, and would keep a database, and on SQLite everybody, waiting.
const rowBytesMax = 1024 * 1024
// A bucket that hangs is waited for, for minutes, and all that while each is in memory twice: as it is, and sealed.
const layingAsideBytesMaxDefault = 256 * 1024 * 1024
// Who loses its connection to a node that stops asks again, and is to have its answer: but a stop waits for no bucket.
const closeMsMaxDefault = 3_000
// Before the name of what lies elsewhere. A sealed text has no such sign in it.
const elsewhere = 'artifact:'

/** Where there is room for what does not belong into a row. */
export type LongAnswers = {
  /** Undefined where there is no room. */
  layAside(bytes: Uint8Array, expiresAt: number): Promise<string | undefined>
  pickUp(name: string): Promise<Uint8Array | undefined>
}

type IdempotencyParts = {
  readonly store: Store
  readonly secret: Uint8Array
  readonly node: string
  readonly longAnswers: LongAnswers
  readonly log: Log
  /** Of answers that are on their way to where they are laid aside, and so in memory. */
  readonly layingAsideBytesMax?: number
  readonly closeMsMax?: number
}

export function makeIdempotency(parts: IdempotencyParts): Idempotency {
  const { store, secret, node, longAnswers, log } = parts
  const { layingAsideBytesMax = layingAsideBytesMaxDefault, closeMsMax = closeMsMaxDefault } = parts
  const mac = macFor(secret, 'idempotency')
  const layingAside = new Set<Promise<void>>()
  let layingAsideBytes = 0
  const behind = new Insisting({ log, clock: store, timers: systemTimers, pauseMs: behindPauseMs })

  function insistOn(write: () => Promise<void>, request: string): void {
    void behind.add({ write, about: { request }, deadline: store.now() + keepAnswersMs })
  }

  function attemptOf(id: AnswerId, asked: Asked): RememberedAttempt {
    const { requestId } = asked
    const sealed = (body: string) => sealUnder(asked.key, secret).seal(body)
    const keepShort = (db: Queries, status: number, body: string) =>
      keepAnswer(db, id, { requestId, status, sealedBody: sealed(body) })
    const notKept = (cause: string) => log.warn({ request: requestId, cause }, 'a long answer could not be stored')
    const happened = (status: number | null, sealedBody: string | null = null) =>
      keepFact(store.db, id, { requestId, status, sealedBody })

    /** Tried again while the database is away: a client that comes back must not find its request running for ever. */
    async function surely(write: () => Promise<void>): Promise<void> {
      try {
        await write()
      } catch (thrown) {
        if (!isUnavailable(thrown)) throw thrown
        insistOn(write, requestId)
      }
    }

    return {
      async keep(status, body) {
        if (body.length <= rowBytesMax) return surely(() => keepShort(store.db, status, decodeUtf8(body)))
        await surely(() => happened(status))
        if (layingAsideBytes + body.length > layingAsideBytesMax)
          return notKept('too many answers are being stored at once')
        layingAsideBytes += body.length
        // Nobody waits for a disk or a bucket: the answer is paid for, and its client is to have it now.
        const laidAside = layAside(body, asked)
          .then((sealedBody) => keepAnswer(store.db, id, { requestId, status, sealedBody }))
          .catch((thrown: unknown) => notKept(String(thrown)))
          .finally(() => {
            layingAsideBytes -= body.length
            layingAside.delete(laidAside)
          })
        layingAside.add(laidAside)
      },
      keepIn: keepShort,
      keepFact: (status) => surely(() => happened(status)),
      // Without a status: the version before, which may be at work on the same database, takes it for a fact, and no answer.
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
        // Whoever is told to try again must not find a request running that nobody runs.
        if (mayHaveBegun && isUnavailable(thrown)) insistOn(() => forsakeAnswer(store, id, begun), requestId)
        throw new GatewayError('overloaded', 'Idempotency keys cannot be checked at the moment.', {
          retryAfterSeconds: 1,
          cause: thrown,
        })
      })
      if (found === 'begun') return { kind: 'begun', attempt: attemptOf(id, asked) }
      return recall(found, fingerprint, asked)
    },

    async close() {
      await within(closeMsMax, Promise.all([behind.close(), ...layingAside]))
      if (layingAside.size > 0)
        log.warn({ count: layingAside.size }, 'the node stops before all long answers were stored')
    },
  }

  /** Null where there is no room for it: then it is known that it happened, and no more. */
  async function layAside(body: Uint8Array, asked: Asked): Promise<string | null> {
    const sealed = await sealUnder(asked.key, secret).sealBytes(body)
    const name = await longAnswers.layAside(sealed, store.now() + keepAnswersMs)
    return name === undefined ? null : elsewhere + name
  }

  /** Undefined where it lies nowhere that this node can reach. */
  async function bodyOf(sealedBody: string, asked: Asked): Promise<Uint8Array | undefined> {
    const seal = sealUnder(asked.key, secret)
    if (!sealedBody.startsWith(elsewhere)) return Buffer.from(seal.unseal(sealedBody))
    const sealed = await longAnswers.pickUp(sealedBody.slice(elsewhere.length))
    return sealed && seal.unsealBytes(sealed)
  }

  async function recall(found: KeptAnswer, fingerprint: string, asked: Asked): Promise<Begun> {
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
    return { kind: 'replay', status: status ?? failedStatus, body }
  }
}

/** As an error, and not as it was told: each protocol tells it in its own shape. */
function writeFailure({ kind, message, details }: GatewayError): string {
  return JSON.stringify({ kind, message, details: { ...details, cause: undefined, inside: undefined } })
}

/** The failure that is to be told again, where it is one. */
export function failureIn({ status, body }: Pick<Extract<Begun, { kind: 'replay' }>, 'status' | 'body'>) {
  if (status !== failedStatus) return undefined
  const { kind, message, details } = JSON.parse(decodeUtf8(body)) as Pick<GatewayError, 'kind' | 'message' | 'details'>
  return new GatewayError(kind, message, details)
}
