import { type Nano, zeroNano } from '../base/money.ts'
import type { Usage } from '../capabilities/usage.ts'
import { insertNew } from './bulk.ts'
import { lockChain } from './chain.ts'
import type { Store } from './open.ts'
import { inPages } from './pages.ts'
import type { ExcessTo } from './postings.ts'
import { addUsage, usedBy } from './rollups.ts'
import { attemptRows, type AttemptRecord, type RequestRecord } from './requests.ts'
import type { Basis, Tx } from './schema.ts'
import { type Change, type Grant, moveLeased, type Take } from './turn-accounts.ts'
import { entriesOf, requestOf, txnRow } from './turn-rows.ts'

/** Which process of which node is writing. A new process takes a new epoch, and writes of an older one are refused. */
export type Identity = { readonly node: string; readonly epoch: number }

/** How a leased hold ended, with everything that is to be kept of it. */
export type Posting = {
  /** Also the id of the txn, so that a hold is posted once however often it is sent. */
  readonly holdId: string
  readonly accountId: string
  readonly priceVersion: string
  /** What the customer pays, never more than the hold. */
  readonly charge: Nano
  /** The part of the price, by the vendor's count, that exceeds the hold. */
  readonly excess: Nano
  /** Where the excess is booked if it is not our loss: suspense, since the vendor's number cannot be true. */
  readonly excessTo?: ExcessTo
  readonly basis: Exclude<Basis, 'manual'>
  readonly usage: Usage | null
  readonly request: RequestRecord
  readonly attempts: readonly AttemptRecord[]
}

/** Everything a node wants of the database at one moment, done in one commit or not at all. */
export type Turn = {
  /** One more than the turn before. After a lost answer, the number in the database tells whether it took place. */
  readonly number: number
  readonly postings: readonly Posting[]
  readonly takes: readonly Take[]
  readonly returns: readonly { readonly accountId: string; readonly amount: Nano }[]
}

export type Standing = { readonly turn: number; readonly leases: ReadonlyMap<string, Nano> }

/** `posted`: which of the holds that were asked about are posted already. */
export type OpenedNode = Standing & { readonly epoch: number; readonly posted: ReadonlySet<string> }

/**
 * This process may not write any more: another has taken its node's place, or the database is an earlier state of it.
 */
export class Fenced extends Error {
  constructor(node: string, by: keyof typeof fences = 'another-process') {
    super(fences[by](node))
    this.name = 'Fenced'
  }
}

const fences = {
  'another-process': (node: string) =>
    `another process runs as node ${node}: it was started since, perhaps on a copy of its folder (TURNPIKE_DATA)`,
  'older-database': (node: string) =>
    `the database lacks what node ${node} had committed: an older copy, or a standby that was behind, took its place`,
}

/** Takes a new epoch, which fences off the process before it. Also gives which of these holds are posted already. */
export async function openNode(store: Store, node: string, holdIds: readonly string[]): Promise<OpenedNode> {
  return store.transaction(async (tx) => {
    const row = await tx
      .insertInto('node')
      .values({ id: node, epoch: 1, turn: 0, seen_at: store.now() })
      .onConflict((conflict) =>
        conflict.column('id').doUpdateSet((eb) => ({ epoch: eb('node.epoch', '+', 1), seen_at: store.now() })),
      )
      .returning(['epoch', 'turn'])
      .executeTakeFirstOrThrow()
    return { ...row, leases: await leasesOf(tx, node), posted: await knownIn(tx, 'txn', holdIds) }
  })
}

async function knownIn(tx: Tx, table: 'txn' | 'request', ids: readonly string[]): Promise<Set<string>> {
  const known = new Set<string>()
  for (const page of inPages(ids)) {
    const found = await tx.selectFrom(table).select('id').where('id', 'in', page).execute()
    for (const { id } of found) known.add(id)
  }
  return known
}

/**
 * Finds out whether the turn whose answer was lost took place: then the node's number in the database is that turn's.
 * Otherwise the number after it is written, so that the turn can no longer take place, however late it arrives or how
 * slow its commit is; asking again gives the same answer.
 */
export async function resolveLostTurn(store: Store, { node, epoch }: Identity, unknown: number): Promise<Standing> {
  return store.transaction(async (tx) => {
    await tx
      .updateTable('node')
      .set({ turn: unknown + 1 })
      .where('id', '=', node)
      .where('epoch', '=', epoch)
      .where('turn', '=', unknown - 1)
      .execute()
    const row = await lastTurnOf(tx, node)
    if (row?.epoch !== epoch) throw fencedBy(row, { node, epoch })
    return { turn: row.turn, leases: await leasesOf(tx, node) }
  })
}

/** No process has an epoch that the database has yet to give, unless the database is an earlier state of itself. */
function fencedBy(row: { readonly epoch: number } | undefined, { node, epoch }: Identity): Fenced {
  return new Fenced(node, row === undefined || row.epoch < epoch ? 'older-database' : 'another-process')
}

async function lastTurnOf(tx: Tx, node: string): Promise<{ epoch: number; turn: number } | undefined> {
  return tx.selectFrom('node').select(['epoch', 'turn']).where('id', '=', node).executeTakeFirst()
}

/** One commit that checks the epoch, books postings, gives back what is not needed, and leases more. */
export async function takeTurn(store: Store, identity: Identity, turn: Turn): Promise<Map<string, Grant>> {
  try {
    return await store.transaction((tx) => turnIn(tx, identity, turn, { now: store.now(), postings: 'new' }))
  } catch (error) {
    if (!(error instanceof PostedBefore)) throw error
    return store.transaction((tx) => turnIn(tx, identity, turn, { now: store.now(), postings: 'some-posted' }))
  }
}

/**
 * Some of a turn's postings are in the books already. A node normally sends none of those, so they are only looked for
 * after this error.
 */
class PostedBefore extends Error {}

async function turnIn(
  tx: Tx,
  { node, epoch }: Identity,
  turn: Turn,
  { now, postings }: { readonly now: number; readonly postings: 'new' | 'some-posted' },
): Promise<Map<string, Grant>> {
  const mine = await tx
    .updateTable('node')
    .set({ turn: turn.number, seen_at: now })
    .where('id', '=', node)
    .where('epoch', '=', epoch)
    .where('turn', '=', turn.number - 1)
    .returning('id')
    .executeTakeFirst()
  if (mine === undefined) {
    const row = await lastTurnOf(tx, node)
    const lacksTurns = row?.epoch === epoch && row.turn < turn.number - 1
    throw lacksTurns ? new Fenced(node, 'older-database') : fencedBy(row, { node, epoch })
  }

  const known = postings === 'new' ? nothing : await knownOf(tx, turn.postings)
  const sent = { postings: turn.postings, known }
  const spent = await book(tx, node, sent, now)
  await recordRequests(tx, sent)
  return moveLeased(tx, node, { changes: changesOf(turn, spent), takes: turn.takes })
}

/** Which of some postings the books already have, by the ids of their txns and requests. */
type Known = { readonly txns: ReadonlySet<string>; readonly requests: ReadonlySet<string> }

const nothing: Known = { txns: new Set(), requests: new Set() }

async function knownOf(tx: Tx, postings: readonly Posting[]): Promise<Known> {
  const holdIds = postings.map(({ holdId }) => holdId)
  const requestIds = postings.map(({ request }) => request.id)
  return { txns: await knownIn(tx, 'txn', holdIds), requests: await knownIn(tx, 'request', requestIds) }
}

/** The postings of a turn, and those of them that the books have. */
type Sent = { readonly postings: readonly Posting[]; readonly known: Known }

/** Books what is not booked yet, and gives what was charged by account. */
async function book(tx: Tx, node: string, { postings, known }: Sent, now: number): Promise<Map<string, bigint>> {
  const spent = new Map<string, bigint>()
  const news = postings
    .filter(({ holdId }) => !known.txns.has(holdId))
    .map((posting) => ({ posting, entries: entriesOf(posting) }))
    .filter(({ entries }) => entries.length > 0)
  if (news.length === 0) return spent
  const chain = await lockChain(tx, node)
  const txns = news.map(({ posting, entries }) => chain.add(txnRow(posting, now), entries))
  // Skipping a row that already exists would leave a gap in the hash chain.
  if ((await insertNew(tx, 'txn', txns)) < txns.length) throw new PostedBefore()
  await chain.end(tx).execute()
  const entries = news.flatMap(({ entries }) => entries)
  await insertNew(tx, 'entry', entries)
  for (const { posting } of news) {
    spent.set(posting.accountId, (spent.get(posting.accountId) ?? 0n) + posting.charge)
  }
  return spent
}

/** Records requests with their attempts, each once, and adds them to the sums. */
async function recordRequests(tx: Tx, { postings, known }: Sent): Promise<void> {
  if (postings.length === 0) return
  const recorded = new Set(known.requests)
  const unrecorded = postings.filter(({ request }) => !recorded.has(request.id) && recorded.add(request.id))
  // A request that is already recorded would be added to the sums a second time.
  if ((await insertNew(tx, 'request', unrecorded.map(requestOf))) < unrecorded.length) throw new PostedBefore()
  await insertNew(
    tx,
    'attempt',
    postings.flatMap(({ request, attempts }) => attemptRows(request.id, attempts)),
  )
  await addUsage(
    tx,
    unrecorded.map((posting) => usedBy({ ...posting, cost: posting.charge })),
  )
}

function changesOf(turn: Turn, spent: ReadonlyMap<string, bigint>): Map<string, Change> {
  const changes = new Map<string, Change>()
  for (const [accountId, amount] of spent) changes.set(accountId, { spent: amount, returned: 0n })
  for (const { accountId, amount } of turn.returns) {
    const change = changes.get(accountId)
    changes.set(accountId, { spent: change?.spent ?? 0n, returned: (change?.returned ?? 0n) + amount })
  }
  for (const [accountId, { spent, returned }] of changes) if (spent + returned === 0n) changes.delete(accountId)
  return changes
}

/** A row stays when its lease is given back, so a node has one for every account that it ever served. */
async function leasesOf(tx: Tx, node: string): Promise<Map<string, Nano>> {
  const rows = await tx
    .selectFrom('lease')
    .select(['account_id', 'amount'])
    .where('node', '=', node)
    .where('amount', '>', zeroNano)
    .execute()
  return new Map(rows.map(({ account_id: accountId, amount }) => [accountId, amount]))
}
