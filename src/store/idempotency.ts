import { zeroNano } from '../base/money.ts'
import type { Store } from './open.ts'
import { inPages } from './pages.ts'
import type { Queries, Tx } from './schema.ts'

/** Which answer: a key counts within one account and one path. The key itself is never stored. */
export type AnswerId = { readonly accountId: string; readonly path: string; readonly keyDigest: string }

export type KeptAnswer = {
  readonly fingerprint: string
  readonly state: 'running' | 'done'
  readonly requestId: string
  /** Absent where it failed, and the body says how. */
  readonly status: number | null
  /** Absent where only the fact is kept: streams, sounds, what nobody waited for. */
  readonly sealedBody: string | null
}

type Beginning = {
  readonly fingerprint: string
  readonly requestId: string
  readonly node: string
  readonly keepMs: number
}

/**
 * Begins, or gives what is there. Of any number that come at once, one begins. `committing` is called when nothing but the
 * commit is left: from then on it may have begun, whatever is heard of it.
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
      // Whoever had it has freed it in between: it can be had now.
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
 * For a beginning of which nobody knows whether it was committed: afterwards it is not there, and cannot come any more. Who
 * inserts the same key waits for a commit that is still on its way.
 */
export async function forsakeAnswer(store: Store, id: AnswerId, begun: Beginning): Promise<void> {
  await store.transaction(async (tx) => {
    await insertRunning(tx, id, begun, store.now())
    await freeAnswer(tx, id, begun.requestId)
  })
}

/** False where somebody else has it. */
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

export async function keepAnswer(
  db: Queries,
  id: AnswerId,
  answer: { readonly requestId: string; readonly status: number; readonly sealedBody: string | null },
): Promise<void> {
  await where(db.updateTable('idempotency'), id)
    .set({ state: 'done', status: answer.status, sealed_body: answer.sealedBody })
    .where('request_id', '=', answer.requestId)
    .execute()
}

/** That it happened, or how it failed: an answer that was kept before is worth more, and stays. */
export async function keepFact(
  db: Queries,
  id: AnswerId,
  fact: Pick<KeptAnswer, 'requestId' | 'status' | 'sealedBody'>,
): Promise<void> {
  await where(db.updateTable('idempotency'), id)
    .set({ state: 'done', status: fact.status, sealed_body: fact.sealedBody })
    .where('request_id', '=', fact.requestId)
    .where('state', '=', 'running')
    .execute()
}

/** Nothing came of it that would be paid twice: the next try runs. */
export async function freeAnswer(db: Queries, id: AnswerId, requestId: string): Promise<void> {
  await where(db.deleteFrom('idempotency'), id).where('request_id', '=', requestId).execute()
}

/**
 * At the start of a node: what its last process left running. Requests that had reached a vendor are done, since they may
 * have been charged; so are those of which that is on record by now. The others never happened.
 */
export async function closeAbandoned(
  store: Store,
  node: string,
  sentRequestIds: readonly string[] | 'all',
): Promise<void> {
  await store.transaction((tx) => closeAbandonedIn(tx, node, sentRequestIds))
}

/** For a node that never starts again, in the commit that says so. */
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

// A day of them may be millions, and a statement that reads them all takes longer than one may take.
const rowsPerLook = 20_000

/** By their age, of which there is an index: from one row to another that is so many further on. */
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

// No answer, or one that was no refusal: such a vendor may have begun, whatever that was found to cost.
const mayHaveBegun = [0, 200]

/** Those that a customer paid for, or that a vendor may have been paid for, though nothing came of it. */
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

// A row has up to a megabyte, and 100 such took SQLite, which does nothing else meanwhile, more than a second on a busy
// machine, and PostgreSQL longer than a statement may take: a page that is too large fails each time, and none is dropped.
const rowsPerDrop = 20

export async function dropOldAnswers(db: Queries, before: number): Promise<void> {
  // From where the last page ended: an index still leads to what was deleted, and would be searched through each time.
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
