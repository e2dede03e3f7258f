import { sql } from 'kysely'
import { type Nano, zeroNano } from '../base/money.ts'
import { brokenChains } from './check-chains.ts'
import { wrongTasks } from './check-tasks.ts'
import type { Store } from './open.ts'
import type { Tx } from './schema.ts'
import { sum } from './sum.ts'

/** One broken rule of the books, and what breaks it. */
export type Breach = {
  readonly rule: 'I1' | 'I2' | 'I3' | 'I4' | 'I5' | 'I6' | 'I7' | 'I8'
  readonly subject: string
  readonly why: string
}

/**
 * Checks the books against themselves, in one consistent snapshot; a balanced ledger gives no breach.
 * I1: the entries of a posting sum to zero.
 * I2: a balance is the sum of its entries.
 * I3: what an account has held is the sum of its open holds and leases.
 * I4: a hold ends at most once, and as its state says; none is open past its deadline.
 * I5: no charge exceeds its hold, and a request's record shows what was charged.
 * I6: what is owed to a vendor is the cost of its attempts. That the vendor's bill agrees can only be checked with the
 * bill.
 * I7: a finished task has one resolution and one event.
 * I8: the chains of postings are whole.
 */
export async function checkLedger(store: Store): Promise<Breach[]> {
  const now = store.now()
  return store.snapshot(async (tx) => [
    ...(await unbalancedPostings(tx)),
    ...(await wrongBalances(tx)),
    ...(await wrongHeld(tx)),
    ...(await wrongEndings(tx)),
    ...(await overdueHolds(tx, now)),
    ...(await excessiveCharges(tx)),
    ...(await wrongRecords(tx)),
    ...(await wrongPayables(tx)),
    ...(await wrongTasks(tx)),
    ...(await brokenChains(tx)),
  ])
}

async function unbalancedPostings(tx: Tx): Promise<Breach[]> {
  const rows = await tx
    .selectFrom('entry')
    .select((eb) => ['txn_id', sum(eb.ref('amount')).as('total')])
    .groupBy('txn_id')
    .having((eb) => eb(sum(eb.ref('amount')), '<>', zeroNano))
    .execute()
  return rows.map((row) => ({ rule: 'I1', subject: row.txn_id, why: `entries sum to ${row.total}` }))
}

async function wrongBalances(tx: Tx): Promise<Breach[]> {
  // Compared from both sides: an account without entries must stand at zero, and customer entries must have an account.
  const { rows } = await sql<{ id: string; posted: Nano | null; total: Nano }>`
    with booked as (
      select substr(account, 6) as id, cast(sum(amount) as bigint) as total
      from entry where account like 'cust:%' group by account
    )
    select account.id, account.posted, coalesce(booked.total, 0) as total
      from account left join booked on booked.id = account.id
      where account.posted <> coalesce(booked.total, 0)
    union all
    select booked.id, null, booked.total from booked
      where not exists (select 1 from account where account.id = booked.id)`.execute(tx)
  return rows.map((row) => ({
    rule: 'I2',
    subject: row.id,
    why: row.posted === null ? `no account for entries of ${row.total}` : `posted ${row.posted}, entries ${row.total}`,
  }))
}

async function wrongHeld(tx: Tx): Promise<Breach[]> {
  const { rows } = await sql<{ id: string; held: Nano; total: Nano }>`
    with claims as (
      select account_id, amount from hold where state = 'open'
      union all
      select account_id, amount from lease
    ), claimed as (
      select account_id, cast(sum(amount) as bigint) as total from claims group by account_id
    )
    select account.id, account.held, coalesce(claimed.total, 0) as total
      from account left join claimed on claimed.account_id = account.id
      where account.held <> coalesce(claimed.total, 0)`.execute(tx)
  return rows.map((row) => ({ rule: 'I3', subject: row.id, why: `held ${row.held}, holds and leases ${row.total}` }))
}

async function wrongEndings(tx: Tx): Promise<Breach[]> {
  const rows = await tx
    .selectFrom('hold')
    .leftJoin('txn', (join) => join.onRef('txn.hold_id', '=', 'hold.id').on('txn.kind', 'in', ['settle', 'loss']))
    .select((eb) => [
      'hold.id',
      'hold.state',
      sql<number>`count(case when ${eb.ref('txn.kind')} = 'settle' then 1 end)`.as('settles'),
      sql<number>`count(case when ${eb.ref('txn.kind')} = 'loss' then 1 end)`.as('losses'),
    ])
    .groupBy(['hold.id', 'hold.state'])
    .having(
      sql<boolean>`count(txn.id) > 1
        or (hold.state = 'settled') <> (count(case when txn.kind = 'settle' then 1 end) = 1)
        or (hold.state = 'open' and count(txn.id) > 0)`,
    )
    .execute()
  return rows.map((row) => ({
    rule: 'I4',
    subject: row.id,
    why: `${row.state}, with ${row.settles} settlements and ${row.losses} losses`,
  }))
}

async function overdueHolds(tx: Tx, now: number): Promise<Breach[]> {
  const rows = await tx
    .selectFrom('hold')
    .select(['id', 'deadline'])
    .where('state', '=', 'open')
    .where('deadline', '<', now)
    .execute()
  return rows.map((row) => ({ rule: 'I4', subject: row.id, why: `open, though its deadline was ${row.deadline}` }))
}

async function excessiveCharges(tx: Tx): Promise<Breach[]> {
  const rows = await tx
    .selectFrom('txn')
    .innerJoin('hold', 'hold.id', 'txn.hold_id')
    .innerJoin('entry', 'entry.txn_id', 'txn.id')
    .select(['txn.id', 'hold.amount as expected', sql<Nano>`-entry.amount`.as('total')])
    .where('txn.kind', '=', 'settle')
    .where('entry.account', 'like', 'cust:%')
    .where(sql<boolean>`-entry.amount > hold.amount`)
    .execute()
  return rows.map((row) => ({ rule: 'I5', subject: row.id, why: `${row.total} charged on a hold of ${row.expected}` }))
}

async function wrongRecords(tx: Tx): Promise<Breach[]> {
  const { rows } = await sql<{ id: string; cost: Nano; total: Nano }>`
    with charged as (
      select txn.hold_id, cast(-sum(entry.amount) as bigint) as total
      from txn join entry on entry.txn_id = txn.id
      where txn.hold_id is not null and entry.account like 'cust:%' group by txn.hold_id
    )
    select request.id, request.cost, coalesce(charged.total, 0) as total
      from request left join charged on charged.hold_id = request.hold_id
      where request.hold_id is not null and request.cost <> coalesce(charged.total, 0)`.execute(tx)
  return rows.map((row) => ({ rule: 'I5', subject: row.id, why: `recorded as ${row.cost}, charged ${row.total}` }))
}

async function wrongPayables(tx: Tx): Promise<Breach[]> {
  const { rows } = await sql<{ vendor: string; total: Nano; expected: Nano }>`
    with owed as (
      select substr(account, 9) as vendor, amount from entry where account like 'payable:%'
    ), sums as (
      select vendor, amount, 0 as cost from owed
      union all
      select vendor, 0 as amount, vendor_cost as cost from attempt
    )
    select vendor, cast(sum(amount) as bigint) as total, cast(sum(cost) as bigint) as expected
      from sums group by vendor having sum(amount) <> sum(cost)`.execute(tx)
  return rows.map((row) => ({
    rule: 'I6',
    subject: row.vendor,
    why: `${row.total} is owed to the vendor, its attempts cost ${row.expected}`,
  }))
}
