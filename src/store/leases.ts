import { formatDollars, type Nano, zeroNano } from '../base/money.ts'
import { type Actor, recordChange } from './audit.ts'
import { closeAbandonedIn } from './idempotency.ts'
import type { Store } from './open.ts'
import type { Queries } from './schema.ts'
import { sum } from './sum.ts'

/** What nodes have leased of an account's balance, used or not. */
export async function leasedOf(db: Queries, accountId: string): Promise<Nano> {
  const { total } = await db
    .selectFrom('lease')
    .select((eb) => sum(eb.ref('amount')).as('total'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  return total
}

export async function hasLeases(db: Queries, node: string): Promise<boolean> {
  const leases = db.selectFrom('lease').select('amount').where('node', '=', node).where('amount', '>', zeroNano)
  return (await leases.limit(1).executeTakeFirst()) !== undefined
}

export type Reclaimed =
  | { readonly outcome: 'reclaimed'; readonly leases: readonly { accountId: string; amount: Nano }[] }
  | { readonly outcome: 'absent' }
  /** The node spoke to the database since `silentSince`. */
  | { readonly outcome: 'alive'; readonly seenAt: number }

/** When a node last spoke to the database; undefined where there is no such node. */
export async function nodeSeenAt(db: Queries, node: string): Promise<number | undefined> {
  return (await db.selectFrom('node').select('seen_at').where('id', '=', node).executeTakeFirst())?.seen_at
}

/**
 * For a node whose disk is gone: returns its leases to their accounts and fences the node off. What its requests had
 * charged by then is in no record: customers are not charged for it, and vendors' bills will show it. The
 * Idempotency-Keys of those requests are used up, since vendors may have been paid.
 */
export async function reclaimNode(
  store: Store,
  { node, silentSince, actor }: { readonly node: string; readonly silentSince: number; readonly actor: Actor },
): Promise<Reclaimed> {
  return store.transaction(async (tx) => {
    const fenced = await tx
      .updateTable('node')
      .set((eb) => ({ epoch: eb('epoch', '+', 1) }))
      .where('id', '=', node)
      .where('seen_at', '<', silentSince)
      .returning('id')
      .executeTakeFirst()
    if (fenced === undefined) {
      const seenAt = await nodeSeenAt(tx, node)
      return seenAt === undefined ? { outcome: 'absent' } : { outcome: 'alive', seenAt }
    }
    // The outcome of its running requests is unknown. A client that retries one must not find it running for a day.
    await closeAbandonedIn(tx, node, 'all')
    const rows = await tx
      .deleteFrom('lease')
      .where('node', '=', node)
      .where('amount', '>', zeroNano)
      .returning(['account_id', 'amount'])
      .execute()
    const leases = rows
      .map(({ account_id: accountId, amount }) => ({ accountId, amount }))
      .toSorted((a, b) => (a.accountId < b.accountId ? -1 : 1))
    for (const { accountId, amount } of leases) {
      await tx
        .updateTable('account')
        .set((eb) => ({ held: eb('held', '-', amount) }))
        .where('id', '=', accountId)
        .execute()
    }
    const detail = { leases: Object.fromEntries(leases.map((lease) => [lease.accountId, formatDollars(lease.amount)])) }
    await recordChange(tx, { at: store.now(), actor, action: 'node.reclaim', subject: node, detail })
    return { outcome: 'reclaimed', leases }
  })
}
