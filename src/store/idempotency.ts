import { zeroNano } from '../base/money.ts'
import type { Store } from './open.ts'
import { inPages } from './pages.ts'
import type { Queries, Tx } from './schema.ts'

/** Identifies an answer: an Idempotency-Key is scoped to one account and one path. The key itself is never stored. */
export type AnswerId = { readonly accountId: string; readonly path: string; readonly keyDigest: string }

export type KeptAnswer = {
  readonly fingerprint: string
  readonly state: 'running' | 'done'
  readonly requestId: string
  /** Null where the request is running, and where it failed and the body says how. */
  readonly status: number | null
  /** Null where only the fact that it happened is kept: streams, audio, and answers whose client had left. */
  readonly sealedBody: string | null
}

type Beginning = {
  readonly fingerprint: string
  readonly requestId: string
  readonly node: string
  readonly keepMs: number
}

/**
 * Begins a request under the key, or gives the answer that is there. Of any number of concurrent requests, one begins.
 * `committing` is called just before the commit: from then on the request may have begun, even if no answer arrives.
 */
export async function beginAnswer(
  store: Store,
  id: AnswerId,
  begun: Beginning,
  committing: () => void,
): Promise<'begun' | KeptAnswer> {
  const now = store.now()
  return store.transaction(async (tx) => {
    await where(tx.deleteFrom('idempotency'), id)
      .where('created_at', '<', now - begun.keepMs)
      .execute()
    for (;;) {
      if (await insertRunning(tx, id, begun, now)) {
        committing()
        return 'begun'
      }
      const row = await where(tx.selectFrom('idempotency').selectAll(), id).executeTakeFirst()
      // The request that had the key freed it between the two statements, so it is available now.
      if (row === undefined) continue
      return {
        fingerprint: row.fingerprint,
        state: row.state,
        requestId: row.request_id,
        status: row.status,
        sealedBody: row.sealed_body,
      }
    }
  })
}

/**
 * For a beginning whose commit is uncertain: afterwards it is not there and can no longer appear, because inserting the
 * same key waits for a commit that is still on its way.
 */
export async function cancelUncertainAnswer(store: Store, id: AnswerId, begun: Beginning): Promise<void> {
  await store.transaction(async (tx) => {
    await insertRunning(tx, id, begun, store.now())
    await freeAnswer(tx, id, begun.requestId)
  })
}

/** False where another request has the key. */
async function insertRunning(tx: Tx, id: AnswerId, begun: Beginning, now: number): Promise<boolean> {
  const inserted = await tx
    .insertInto('idempotency')
    .values({
      account_id: id.accountId,
      path: id.path,
      key_digest: id.keyDigest,
      fingerprint: begun.fingerprint,
      state: 'running',
      request_id: begun.requestId,
      node: begun.node,
      status: null,
      sealed_body: null,
      created_at: now,
    })
    .onConflict((conflict) => conflict.columns(['account_id', 'path', 'key_digest']).doNothing())
    .returning('request_id')
    .executeTakeFirst()
  return inserted !== undefined
}

type Outcome = Pick<KeptAnswer, 'requestId' | 'status' | 'sealedBody'>

export async function keepAnswer(db: Queries, id: AnswerId, answer: Outcome): Promise<void> {
  await done(db, id, answer).execute()
}

/** Keeps the fact that a request happened, or how it failed. An answer kept before is worth more, and stays. */
export async function keepFact(db: Queries, id: AnswerId, fact: Outcome): Promise<void> {
  await done(db, id, fact).where('state', '=', 'running').execute()
}

function done(db: Queries, id: AnswerId, { requestId, status, sealedBody }: Outcome) {
  return where(db.updateTable('idempotency'), id)
    .set({ state: 'done', status, sealed_body: sealedBody })
    .where('request_id', '=', requestId)
}

/** Frees the key of a request that can be repeated without being paid twice: the next try runs. */
export async function freeAnswer(db: Queries, id: AnswerId, requestId: string): Promise<void> {
  await where(db.deleteFrom('idempotency'), id).where('request_id', '=', requestId).execute()
}

/**
 * Called when a node starts, to close what its last process left running. Requests that had reached a vendor are done,
 * since they may have been charged, and so are those with a charge on record by now. The keys of all others are freed.
 */
export async function closeAbandoned(
  store: Store,
  node: string,
  sentRequestIds: readonly string[] | 'all',
): Promise<void> {
  await store.transaction((tx) => closeAbandonedIn(tx, node, sentRequestIds))
}

/** The same for a node that never starts again, in the commit that reclaims its leases. */
export async function closeAbandonedIn(tx: Tx, node: string, sentRequestIds: readonly string[] | 'all'): Promise<void> {
  const sent = new Set(sentRequestIds === 'all' ? [] : sentRequestIds)
  for await (const left of leftRunning(tx, node)) {
    const ids = left.map(({ requestId }) => requestId)
    const paid = sentRequestIds === 'all' ? new Set(ids) : await paidAmong(tx, ids)
    for (const { requestId, ...id } of left) {
      if (sent.has(requestId) || paid.has(requestId))
        await keepFact(tx, id, { requestId, status: 500, sealedBody: null })
      else await freeAnswer(tx, id, requestId)
    }
  }
}

// A day may have millions of rows, and one statement that reads them all would exceed the statement timeout.
const rowsPerLook = 20_000

/** Walks by age, which is indexed, in steps of `rowsPerLook` rows. */
async function* leftRunning(tx: Tx, node: string): AsyncGenerator<(AnswerId & { readonly requestId: string })[]> {
  for (let from = -1; ;) {
    const rows = tx.selectFrom('idempotency').where('created_at', '>', from)
    const further = rows.select('created_at').orderBy('created_at').offset(rowsPerLook).limit(1)
    const { created_at: to = Number.MAX_SAFE_INTEGER } = (await further.executeTakeFirst()) ?? {}
    const left = await rows
      .select(['account_id', 'path', 'key_digest', 'request_id'])
      .where('created_at', '<=', to)
      .where('node', '=', node)
      .where('state', '=', 'running')
      .execute()
    for (const page of inPages(left)) yield page.map(toLeft)
    if (to === Number.MAX_SAFE_INTEGER) return
    from = to
  }
}

function toLeft(row: { account_id: string; path: string; key_digest: string; request_id: string }) {
  return { accountId: row.account_id, path: row.path, keyDigest: row.key_digest, requestId: row.request_id }
}

// The vendor gave no answer (0) or did not refuse (200): it may have begun the work, whatever cost is on record.
const mayHaveBegun = [0, 200]

/** The requests that a customer paid for, or that a vendor may have been paid for although nothing was delivered. */
async function paidAmong(tx: Tx, requestIds: readonly string[]): Promise<ReadonlySet<string>> {
  const paid = await tx
    .selectFrom('request')
    .select('request.id')
    .where('request.id', 'in', requestIds)
    .where((eb) => {
      const attempts = eb.selectFrom('attempt').select('attempt.id').whereRef('attempt.request_id', '=', 'request.id')
      const begun = attempts.where((of) => of.or([of('vendor_cost', '>', zeroNano), of('status', 'in', mayHaveBegun)]))
      return eb.or([eb('request.cost', '>', zeroNano), eb.exists(begun)])
    })
    .execute()
  return new Set(paid.map(({ id }) => id))
}

// A row may hold a megabyte. Deleting 100 of that size took SQLite, which does nothing else meanwhile, more than a
// second on a busy machine, and exceeded the statement timeout on PostgreSQL: a page that is too large fails every
// time, and nothing is ever dropped.
const rowsPerDrop = 20

export async function dropOldAnswers(db: Queries, before: number): Promise<void> {
  // Each page begins where the last one ended, because the index still holds the deleted entries, which would be
  // searched through each time.
  for (let from = 0; ;) {
    const old = db.selectFrom('idempotency').select('created_at').where('created_at', '>=', from)
    const page = old.where('created_at', '<', before).orderBy('created_at').offset(rowsPerDrop).limit(1)
    const last = await page.executeTakeFirst()
    const until = last === undefined ? before : last.created_at + 1
    await db.deleteFrom('idempotency').where('created_at', '>=', from).where('created_at', '<', until).execute()
    if (until === before) return
    from = until
  }
}

function where<Q extends { where(column: 'account_id' | 'path' | 'key_digest', is: '=', value: string): Q }>(
  query: Q,
  id: AnswerId,
): Q {
  return query.where('account_id', '=', id.accountId).where('path', '=', id.path).where('key_digest', '=', id.keyDigest)
}
