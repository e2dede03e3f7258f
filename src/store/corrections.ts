import { newId } from '../base/ids.ts'
import { formatDollars, type Nano, nano, zeroNano } from '../base/money.ts'
import type { Usage } from '../capabilities/usage.ts'
import { type Actor, recordChange } from './audit.ts'
import { lockChain, platformChain } from './chain.ts'
import type { Store } from './open.ts'
import { Entries, type LedgerPosting, postingWrites } from './postings.ts'
import type { RecordedAttempt, RecordedRequest } from './reconcile.ts'
import { correctUsage, countedUnder, hourMs, startOf } from './rollups.ts'
import type { Tx } from './schema.ts'
import { executeWrites } from './writes.ts'

export type Correction = {
  readonly attempt: RecordedAttempt
  /** What the vendor's bill says. */
  readonly billed: Nano
  /** What the customer gets back for the whole request; one of its attempts carries it for all. */
  readonly credit: Nano
  readonly usage: Usage | null
  readonly note: string
}

/** `changed`: the attempt or its request was corrected in the meantime, and nothing was booked. */
export type Corrected = 'corrected' | 'changed'

/** A request's charge or an attempt's cost has changed since it was read, so the correction based on it is void. */
class ChangedMeanwhile extends Error {}

/**
 * Sets attempts to what the vendor charges, all or none. We bear the difference; a customer never pays more, and what
 * one gets back is in the audit.
 */
export async function correctAttempts(
  store: Store,
  corrections: readonly Correction[],
  actor: Actor,
): Promise<Corrected> {
  // Sorted by id, so that two processes that correct the same attempts cannot deadlock.
  const inOrder = corrections.toSorted((a, b) => (a.attempt.id < b.attempt.id ? -1 : 1))
  try {
    await store.transaction(async (tx) => {
      for (const correction of inOrder) if (!(await setCost(tx, correction))) throw new ChangedMeanwhile()
      const now = store.now()
      for (const correction of inOrder) await recordCredit(tx, correction, { at: now, actor })
      await bookCorrections(tx, inOrder, now)
    })
    return 'corrected'
  } catch (thrown) {
    if (thrown instanceof ChangedMeanwhile) return 'changed'
    throw thrown
  }
}

/**
 * For callers that end something else in the same commit, such as the watch over a task. The customer gets nothing
 * back, which would have to be in the audit.
 */
export async function correctCostIn(tx: Tx, cost: Omit<Correction, 'credit'>, now: number): Promise<Corrected> {
  const correction = { ...cost, credit: zeroNano }
  if (!(await setCost(tx, correction))) return 'changed'
  await bookCorrections(tx, [correction], now)
  return 'corrected'
}

async function recordCredit(
  tx: Tx,
  { attempt: { request }, credit, note }: Correction,
  by: { readonly at: number; readonly actor: Actor },
): Promise<void> {
  if (request === undefined || credit <= 0n) return
  const detail = { account: request.accountId, amount: formatDollars(credit), note }
  await recordChange(tx, { ...by, action: 'request.credit', subject: request.id, detail })
}

/** Sets an attempt's cost to the billed one. False, with nothing changed, where it no longer costs what was read. */
async function setCost(tx: Tx, { attempt, billed }: Correction): Promise<boolean> {
  const owed = await tx
    .updateTable('attempt')
    .set((eb) => ({ vendor_cost: billed, recorded_cost: eb.fn.coalesce('recorded_cost', 'vendor_cost') }))
    .where('id', '=', attempt.id)
    .where('vendor_cost', '=', attempt.cost)
    .returning('id')
    .executeTakeFirst()
  return owed !== undefined
}

/** Writes records, sums, the chain and balances in this order: each is locked until the commit, the busiest last. */
async function bookCorrections(tx: Tx, corrections: readonly Correction[], now: number): Promise<void> {
  for (const { attempt, credit } of corrections) {
    if (credit < 0n) throw new Error(`attempt ${attempt.id} would be charged for afterwards`)
    if (attempt.request !== undefined && credit > 0n) await lowerCost(tx, attempt.request, credit)
  }
  for (const { attempt, billed, credit } of corrections) {
    if (attempt.request === undefined) continue
    const change = { cost: nano(0n - credit), vendorCost: nano(billed - attempt.cost) }
    await addToSums(tx, attempt.request, change)
  }
  const chain = await lockChain(tx, platformChain)
  for (const correction of corrections) await executeWrites(tx, postingWrites(tx, chain, correctionOf(correction, now)))
  for (const { attempt, credit } of corrections) {
    if (attempt.request !== undefined && credit > 0n) await giveBack(tx, attempt.request.accountId, credit)
  }
}

function correctionOf({ attempt, billed, credit, usage, note }: Correction, now: number): LedgerPosting {
  const { request, vendor } = attempt
  const entries = new Entries()
  entries.move('platform:loss', `payable:${vendor}`, nano(billed - attempt.cost))
  if (request !== undefined) entries.move(`revenue:${request.model}`, `cust:${request.accountId}`, credit)
  const holdId = request?.holdId ?? undefined
  const shared = { id: newId('txn'), kind: 'correction', basis: 'vendor', usage, note, now, entries } as const
  return holdId === undefined ? shared : { ...shared, holdId }
}

async function lowerCost(tx: Tx, request: RecordedRequest, credit: Nano): Promise<void> {
  const lowered = await tx
    .updateTable('request')
    .set({ cost: nano(request.cost - credit) })
    .where('id', '=', request.id)
    .where('cost', '=', request.cost)
    .returning('id')
    .executeTakeFirst()
  if (lowered === undefined) throw new ChangedMeanwhile()
}

async function giveBack(tx: Tx, accountId: string, credit: Nano): Promise<void> {
  await tx
    .updateTable('account')
    .set((eb) => ({ posted: eb('posted', '+', credit) }))
    .where('id', '=', accountId)
    .execute()
}

/** Applies a correction to the sums that reports add up, under the vendor under which they count the request. */
async function addToSums(
  tx: Tx,
  request: RecordedRequest,
  change: { readonly cost: Nano; readonly vendorCost: Nano },
): Promise<void> {
  const rows = await tx
    .selectFrom('usage_hour')
    .select('vendor')
    .where('account_id', '=', request.accountId)
    .where('hour', '=', startOf(request.createdAt, hourMs))
    .where('key_id', '=', request.keyId)
    .where('model', '=', request.model)
    .where('capability', '=', request.capability)
    .execute()
  const [first] = rows
  const counted = rows.length > 1 ? countedUnder(await callsOf(tx, request.id)) : undefined
  const under = rows.find(({ vendor }) => vendor === counted) ?? first
  if (under !== undefined) await correctUsage(tx, { ...request, vendor: under.vendor }, change)
}

async function callsOf(tx: Tx, requestId: string) {
  return tx
    .selectFrom('attempt')
    .select(['vendor', 'delivered'])
    .where('request_id', '=', requestId)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}

/** Records a call that only the vendor's bill knows as an attempt without a request; its cost is our loss. */
export async function adoptAttempt(
  store: Store,
  found: {
    readonly ref: string
    readonly vendor: string
    readonly upstreamModel: string
    readonly billed: Nano
    readonly at: number
    readonly note: string
  },
): Promise<Corrected> {
  return store.transaction(async (tx) => {
    const inserted = await tx
      .insertInto('attempt')
      .values({
        id: found.ref,
        request_id: '',
        channel: '',
        vendor: found.vendor,
        upstream_model: found.upstreamModel,
        status: 0,
        vendor_cost: found.billed,
        delivered: false,
        created_at: found.at,
        recorded_cost: zeroNano,
      })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .returning('id')
      .executeTakeFirst()
    if (inserted === undefined) return 'changed'
    if (found.billed === zeroNano) return 'corrected'
    const entries = new Entries()
    entries.move('platform:loss', `payable:${found.vendor}`, found.billed)
    const chain = await lockChain(tx, platformChain)
    const loss = { id: newId('txn'), kind: 'loss', basis: 'vendor', note: found.note } as const
    await executeWrites(tx, postingWrites(tx, chain, { ...loss, now: store.now(), entries }))
    return 'corrected'
  })
}
