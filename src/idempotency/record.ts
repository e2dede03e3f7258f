import type { GatewayError } from '../base/errors.ts'
import type { RequestId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { decodeUtf8 } from '../base/utf8.ts'
import { isUnavailable } from '../store/faults.ts'
import { freeAnswer, keepAnswer, keepFact, type AnswerId } from '../store/idempotency.ts'
import type { Store } from '../store/open.ts'
import type { Queries, Tx } from '../store/schema.ts'
import type { AnswerBodies } from './answer-bodies.ts'
import { writeFailure } from './kept-failure.ts'
import type { RowRoom } from './row-room.ts'
import type { Storing } from './storing.ts'

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

/** What the records of all requests share. */
export type Desk = {
  readonly store: Store
  readonly bodies: AnswerBodies
  readonly room: RowRoom
  readonly storing: Storing
  readonly log: Log
  /** Until when what is kept now is of use. */
  expiresAt(): number
  retryLater(write: () => Promise<void>, requestId: string): void
}

// The longest answer that a row holds. Images and vectors are longer, and would block the database, on SQLite for all.
const rowBytesMax = 1024 * 1024

/** The record of one request that has begun on this node. */
export class BegunRecord implements IdempotencyRecord {
  readonly #desk: Desk
  readonly #id: AnswerId
  readonly #asked: IdempotentRequest

  constructor(desk: Desk, id: AnswerId, asked: IdempotentRequest) {
    this.#desk = desk
    this.#id = id
    this.#asked = asked
  }

  async keep(status: number, body: Uint8Array): Promise<void> {
    const { store, room, storing } = this.#desk
    const isShort = body.length <= rowBytesMax
    if (isShort && room.take(this.#asked.accountId, body.length, store.now())) {
      return this.#surely(() => this.#keepShort(store.db, status, decodeUtf8(body)))
    }
    await this.keepFact(status)
    if (isShort) return undefined
    // Not awaited: the answer is paid for, and its client must not wait for a disk or a bucket.
    const hasBegun = storing.begin(body.length, () => this.#keepLong(status, body))
    if (!hasBegun) this.#notKept('too many answers are being stored at once')
  }

  keepIn(tx: Tx, status: number, body: string): Promise<void> {
    return this.#keepShort(tx, status, body)
  }

  keepFact(status: number): Promise<void> {
    return this.#surely(() => this.#happened(status, null))
  }

  keepFailure(failure: GatewayError): Promise<void> {
    const { bodies } = this.#desk
    // Without a status, unlike an answer; and a node of the previous version on the same database takes it for a fact.
    return this.#surely(() => this.#happened(null, bodies.seal(writeFailure(failure), this.#asked.key)))
  }

  free(): Promise<void> {
    return this.#surely(() => freeAnswer(this.#desk.store.db, this.#id, this.#asked.requestId))
  }

  freeIn(tx: Tx): Promise<void> {
    return freeAnswer(tx, this.#id, this.#asked.requestId)
  }

  #keepShort(db: Queries, status: number, body: string): Promise<void> {
    const sealedBody = this.#desk.bodies.seal(body, this.#asked.key)
    return keepAnswer(db, this.#id, { requestId: this.#asked.requestId, status, sealedBody })
  }

  async #keepLong(status: number, body: Uint8Array): Promise<void> {
    const { store, bodies } = this.#desk
    const { accountId, key, requestId } = this.#asked
    try {
      const sealedBody = await bodies.storeElsewhere(body, key, accountId, this.#desk.expiresAt())
      await keepAnswer(store.db, this.#id, { requestId, status, sealedBody })
    } catch (thrown) {
      this.#notKept(String(thrown))
    }
  }

  #happened(status: number | null, sealedBody: string | null): Promise<void> {
    return keepFact(this.#desk.store.db, this.#id, { requestId: this.#asked.requestId, status, sealedBody })
  }

  #notKept(cause: string): void {
    this.#desk.log.warn({ request: this.#asked.requestId, cause }, 'a long answer could not be stored')
  }

  /** Retries while the database is away: a client that comes back must not find its request running for ever. */
  async #surely(write: () => Promise<void>): Promise<void> {
    try {
      await write()
    } catch (thrown) {
      if (!isUnavailable(thrown)) throw thrown
      this.#desk.retryLater(write, this.#asked.requestId)
    }
  }
}
