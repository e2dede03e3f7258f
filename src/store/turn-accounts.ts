import { type RawBuilder, sql } from 'kysely'
import { nano, type Nano, zeroNano } from '../base/money.ts'
import { available } from './accounts.ts'
import type { AccountTable, Tx } from './schema.ts'
import { isPostgres } from './writes.ts'

export type Take = {
  readonly accountId: string
  /** What each request that waits for the money asks for, in order of arrival. */
  readonly waiting: readonly Nano[]
  /** What the node has left of its lease for them. */
  readonly left: Nano
  /** What to lease beyond that if possible, so that the next requests need not ask. */
  readonly extra: Nano
}

export type Grant =
  | { readonly kind: 'granted'; readonly amount: Nano }
  /** Not all requests can be served: the amount serves those that can be, and `rest` stays in the balance. */
  | { readonly kind: 'short'; readonly amount: Nano; readonly rest: Nano }
  | { readonly kind: 'no-account' }

/** What leaves a node's lease of an account: `spent` leaves the balance too. */
export type Change = { readonly spent: bigint; readonly returned: bigint }

const unchanged: Change = { spent: 0n, returned: 0n }

/**
 * Applies a turn to the balances and the node's leases, in four statements however many accounts there are. When each
 * account had statements of its own, a turn of hundreds of accounts was hundreds of round trips to PostgreSQL, for
 * which every request of these accounts waited.
 */
export async function moveLeased(
  tx: Tx,
  node: string,
  { changes, takes }: { readonly changes: ReadonlyMap<string, Change>; readonly takes: readonly Take[] },
): Promise<Map<string, Grant>> {
  const ids = [...new Set([...changes.keys(), ...takes.map(({ accountId }) => accountId)])]
  if (ids.length === 0) return new Map()
  const accounts = await lockAccounts(tx, ids)
  const grants = new Map<string, Grant>()
  for (const take of takes) {
    const account = accounts.get(take.accountId)
    const { returned } = changes.get(take.accountId) ?? unchanged
    grants.set(take.accountId, account?.enabled === true ? grantOn(take, account, returned) : { kind: 'no-account' })
  }
  const granted = new Map([...grants].map(([id, grant]) => [id, grant.kind === 'no-account' ? zeroNano : grant.amount]))
  await changeAccounts(tx, ids, { changes, granted })
  await takeOffLeases(tx, node, changes)
  await addToLeases(tx, node, granted)
  return grants
}

type Locked = Pick<AccountTable, 'posted' | 'held' | 'unlimited' | 'enabled'>

/** In order of id, as everywhere, so that two transactions that lock the same accounts cannot deadlock. */
async function lockAccounts(tx: Tx, ids: readonly string[]): Promise<Map<string, Locked>> {
  const query = tx
    .selectFrom('account')
    .select(['id', 'posted', 'held', 'unlimited', 'enabled'])
    .where(
      'id',
      'in',
      sql<string>`(select given.value ->> 0 from ${given(
        tx,
        ids.map((id) => [id]),
      )})`,
    )
  // By their bytes, as ids are sorted here too: the database's own collation may be a language's.
  // No stronger than the update that follows, so that a turn does not wait for a key being added.
  const inOrder = query.orderBy('id', (order) => order.collate('C')).forNoKeyUpdate()
  const rows = await (isPostgres(tx) ? inOrder : query).execute()
  return new Map(rows.map((row) => [row.id, row]))
}

function grantOn(take: Take, account: Locked, returned: bigint): Grant {
  return grantFor(take, account.unlimited ? 'unlimited' : nano(available(account) + returned))
}

// Beyond what is needed, a node gets at most a twentieth of what is left, so that the last of a balance is not locked
// up on a node that does not need it.
const shareOfBalance = 20n

export function grantFor(take: Take, balance: Nano | 'unlimited'): Exclude<Grant, { kind: 'no-account' }> {
  const wanted = take.waiting.reduce((sum, amount) => sum + amount, 0n)
  const need = beyond(take.left, wanted)
  if (balance === 'unlimited') return { kind: 'granted', amount: nano(need + take.extra) }
  if (balance < need) return shortOn(take, beyond(0n, balance))
  const share = (balance - need) / shareOfBalance
  return { kind: 'granted', amount: nano(need + (take.extra < share ? take.extra : share)) }
}

/** Leases nothing for a request that cannot be served: on another node, the same money may serve one. */
function shortOn({ waiting, left }: Take, balance: bigint): Extract<Grant, { kind: 'short' }> {
  let served = 0n
  for (const amount of waiting) if (served + amount <= left + balance) served += amount
  const amount = beyond(left, served)
  return { kind: 'short', amount: nano(amount), rest: nano(balance - amount) }
}

function beyond(limit: bigint, amount: bigint): bigint {
  return amount > limit ? amount - limit : 0n
}

/** A charge leaves the balance and the lease in one commit; what is returned leaves only the lease. */
async function changeAccounts(
  tx: Tx,
  ids: readonly string[],
  { changes, granted }: { changes: ReadonlyMap<string, Change>; granted: ReadonlyMap<string, Nano> },
): Promise<void> {
  const rows = ids.map((id) => {
    const { spent, returned } = changes.get(id) ?? unchanged
    return [id, -spent, (granted.get(id) ?? 0n) - spent - returned] as const
  })
  const changed = rows.filter(([, posted, held]) => posted !== 0n || held !== 0n)
  if (changed.length === 0) return
  await sql`update account set posted = posted + ${amountAt(1)}, held = held + ${amountAt(2)}
    from ${given(tx, changed)} where account.id = given.value ->> 0`.execute(tx)
}

async function takeOffLeases(tx: Tx, node: string, changes: ReadonlyMap<string, Change>): Promise<void> {
  if (changes.size === 0) return
  // The node comes from each row, too: from a parameter alone, SQLite would go through all leases of the node.
  const rows = [...changes].map(([id, { spent, returned }]) => [id, spent + returned, node] as const)
  const { numAffectedRows } = await sql`update lease set amount = amount - ${amountAt(1)}
    from ${given(tx, rows)} where lease.node = given.value ->> 2 and lease.account_id = given.value ->> 0`.execute(tx)
  if (numAffectedRows !== BigInt(changes.size)) throw new Error(`node ${node} charges an account without a lease`)
}

async function addToLeases(tx: Tx, node: string, granted: ReadonlyMap<string, Nano>): Promise<void> {
  const rows = [...granted].filter(([, amount]) => amount > 0n)
  if (rows.length === 0) return
  await sql`insert into lease (node, account_id, amount)
    select ${node}, given.value ->> 0, ${amountAt(1)} from ${given(tx, rows)} where true
    on conflict (node, account_id) do update set amount = lease.amount + excluded.amount`.execute(tx)
}

/** Any number of rows as one parameter. Amounts travel as text, because JSON would round 64-bit integers. */
function given(tx: Tx, rows: readonly (readonly (string | bigint)[])[]): RawBuilder<unknown> {
  const text = JSON.stringify(rows.map((row) => row.map(String)))
  return isPostgres(tx)
    ? sql`json_array_elements(cast(${text} as json)) as given(value)`
    : sql`json_each(${text}) as given`
}

function amountAt(place: number): RawBuilder<bigint> {
  return sql`cast(given.value ->> ${sql.lit(place)} as bigint)`
}
