import { type Nano, zeroNano } from '../base/money.ts'
import type { Usage } from '../capabilities/usage.ts'
import { lockChain } from './chain.ts'
import { isUnavailable } from './faults.ts'
import { endHold, insertVoidHold, holdState, type NewHold, type OpenHold, releaseWrite } from './holds.ts'
import { chargeWithin, Entries, type ExcessTo, postingWrites, saleEntries } from './postings.ts'
import type { Store } from './open.ts'
import { type AttemptRecord, attemptRecordWrites, type RequestRecord, requestRecordWrite } from './requests.ts'
import type { Basis, HoldState, Queries, Tx } from './schema.ts'
import { addUsage, usedBy } from './rollups.ts'
import { executeWrites, type Write } from './writes.ts'

export type Settlement = {
  readonly hold: OpenHold
  /** What the usage costs at the pinned price. The customer pays it up to the hold. */
  readonly price: Nano
  readonly basis: Exclude<Basis, 'policy_zero'>
  readonly usage: Usage | null
  readonly request: RequestRecord
  readonly attempts: readonly AttemptRecord[]
  /** Where a vendor's cost beyond the hold is booked: our loss, or suspense if the vendor's report cannot be true. */
  readonly excessTo?: ExcessTo
}

/** `already-ended` changes nothing: the hold has been ended by another caller, or does not exist. */
export type AlreadyEnded = { outcome: 'already-ended'; state: HoldState | 'absent' }
export type Settled = { outcome: 'settled'; charge: Nano; excess: Nano } | AlreadyEnded

/** `committing` is called just before the commit: from then on the hold may be settled, even if no answer arrives. */
export async function settleHold(store: Store, settlement: Settlement, committing?: () => void): Promise<Settled> {
  return store.transaction(async (tx) => {
    const settled = await settleHoldIn(tx, settlement, store.now())
    if (settled.outcome === 'settled') committing?.()
    return settled
  })
}

/** For callers that end something else in the same commit, such as a video task. */
export async function settleHoldIn(tx: Tx, settlement: Settlement, now: number): Promise<Settled> {
  const { hold, price, basis, usage, request, attempts } = settlement
  if (price < 0n) throw new Error(`the price of hold ${hold.id} is negative`)
  const ended = await endHold(tx, hold, { state: 'settled', now })
  if (ended === undefined) return { outcome: 'already-ended', state: await holdState(tx, hold) }

  const { charge, excess } = chargeWithin(ended.amount, price, basis)
  const entries = saleEntries({ ...settlement, accountId: hold.accountId, model: request.model, charge, excess })
  const { priceVersion } = ended
  const chain = await lockChain(tx, hold.accountId)
  // Sums are locked before balances, as everywhere, so that two transactions that lock both cannot deadlock.
  await addUsage(tx, [usedBy({ accountId: hold.accountId, request, attempts, cost: charge, usage })])
  await executeWrites(tx, [
    ...postingWrites(tx, chain, {
      id: hold.id,
      kind: 'settle',
      holdId: hold.id,
      priceVersion,
      usage,
      basis,
      now,
      entries,
    }),
    requestRecordWrite(tx, hold.accountId, request, { cost: charge, basis, usage, holdId: hold.id }),
    ...attemptRecordWrites(tx, request.id, attempts),
    releaseWrite(tx, hold.accountId, ended.amount, charge),
  ])
  return { outcome: 'settled', charge, excess }
}

export type Voiding = {
  readonly hold: OpenHold
  /** Absent in recovery, where it is no longer known what was answered. */
  readonly request?: RequestRecord
  /** Their cost is our loss, since nothing was delivered. */
  readonly attempts?: readonly AttemptRecord[]
  /** Kept with the posting of that loss; a hold that cost nothing has none. */
  readonly note?: string
}

export type Voided = { outcome: 'voided' } | AlreadyEnded

export async function voidHold(store: Store, voiding: Voiding): Promise<Voided> {
  return store.transaction((tx) => voidHoldIn(tx, voiding, store.now()))
}

export async function voidHoldIn(tx: Tx, voiding: Voiding, now: number): Promise<Voided> {
  const { hold, request } = voiding
  const attempts = (voiding.attempts ?? []).map((attempt) => ({ ...attempt, delivered: false }))
  const ended = await endHold(tx, hold, { state: 'void', now })
  if (ended === undefined) return { outcome: 'already-ended', state: await holdState(tx, hold) }

  const writes: Write[] = []
  if (attempts.some((attempt) => attempt.vendorCost !== 0n)) {
    const entries = new Entries()
    for (const { vendor, vendorCost } of attempts) entries.move('platform:loss', `payable:${vendor}`, vendorCost)
    const { priceVersion } = ended
    const note = voiding.note ?? null
    const loss = { id: hold.id, kind: 'loss', holdId: hold.id, priceVersion, basis: 'policy_zero', note } as const
    writes.push(...postingWrites(tx, await lockChain(tx, hold.accountId), { ...loss, now, entries }))
  }
  if (request !== undefined) {
    await addUsage(tx, [usedBy({ accountId: hold.accountId, request, attempts, cost: zeroNano, usage: null })])
    const charged = { cost: zeroNano, basis: 'policy_zero', usage: null, holdId: hold.id } as const
    writes.push(requestRecordWrite(tx, hold.accountId, request, charged))
    writes.push(...attemptRecordWrites(tx, request.id, attempts))
  }
  await executeWrites(tx, [...writes, releaseWrite(tx, hold.accountId, ended.amount, zeroNano)])
  return { outcome: 'voided' }
}

/**
 * For a hold that may or may not have been taken: afterwards it is not, and can no longer be. A statement that was
 * given up may still be carried out, and then finds the id in use.
 */
export async function cancelUncertainHold(store: Store, hold: NewHold): Promise<void> {
  await store.transaction(async (tx) => {
    const now = store.now()
    if (!(await insertVoidHold(tx, hold, now))) await voidHoldIn(tx, { hold }, now)
  })
}

// Bounds the memory of recovery, not its work.
const recoveryPage = 500
// As many as one line of the log can show.
const failedMax = 20

export type Recovered = {
  readonly voided: readonly string[]
  /**
   * The first holds that could not be voided, each with the reason. Recovery goes on past them, because the broken
   * books of one hold must not keep the money of the others locked.
   */
  readonly failed: readonly string[]
}

type Overdue = {
  readonly now: number
  /**
   * Whether this process is still working on a hold that it took. The deadline alone would void such a hold where the
   * time of day was set forward.
   */
  readonly isAtWork?: (holdId: string) => boolean
}

/** Voids the holds of requests that no node can be working on any more. Holds of tasks are left to the poller. */
export async function recoverHolds(store: Store, { now, isAtWork }: Overdue): Promise<Recovered> {
  return recover(store, openRequestHolds(store.db).where('deadline', '<', now), isAtWork)
}

/** Called when the only node starts: the process that took these holds is dead. */
export async function recoverAll(store: Store): Promise<Recovered> {
  return recover(store, openRequestHolds(store.db))
}

function openRequestHolds(db: Queries) {
  return db
    .selectFrom('hold')
    .select(['id', 'account_id', 'deadline'])
    .where('state', '=', 'open')
    .where('kind', '=', 'request')
    .orderBy('deadline')
    .orderBy('id')
    .limit(recoveryPage)
}

async function recover(
  store: Store,
  open: ReturnType<typeof openRequestHolds>,
  isAtWork: Overdue['isAtWork'] = () => false,
): Promise<Recovered> {
  const voided: string[] = []
  const failed: string[] = []
  for (let next = open; ;) {
    const page = await next.execute()
    // One by one: several nodes may recover at once, and each hold is decided by its own compare-and-set.
    for (const { id, account_id: accountId } of page) {
      if (isAtWork(id)) continue
      try {
        const { outcome } = await voidHold(store, { hold: { id, accountId } })
        if (outcome === 'voided') voided.push(id)
      } catch (thrown) {
        if (isUnavailable(thrown)) throw thrown
        if (failed.length < failedMax) failed.push(`${id}: ${String(thrown)}`)
      }
    }
    const last = page.at(-1)
    if (last === undefined) return { voided, failed }
    next = open.where((eb) => eb(eb.refTuple('deadline', 'id'), '>', eb.tuple(last.deadline, last.id)))
  }
}
