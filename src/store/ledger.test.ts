import { expect, test } from 'bun:test'
import { sql } from 'kysely'
import { eachEngine } from '../../test/support/engines.ts'
import {
  accountId,
  attemptOf,
  balances,
  fundedAccount,
  holdOf,
  requestOf,
  settlementOf,
} from '../../test/support/ledger.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { nano } from '../base/money.ts'
import { accountById, changeAccount } from './accounts.ts'
import { checkLedger } from './check.ts'
import { takeHold, takeHoldIn } from './holds.ts'
import { lockChain } from './chain.ts'
import { Entries, postingWrites } from './postings.ts'
import { cancelUncertainHold, recoverAll, recoverHolds, settleHold, settleHoldIn, voidHold } from './ledger.ts'
import type { Store } from './open.ts'
import { executeWrites } from './writes.ts'
import { requestById } from './request-lists.ts'

async function funds(store: Store) {
  const account = await accountById(store.db, accountId)
  return account && { posted: account.posted, held: account.held }
}
const amounts = (posted: bigint, held: bigint) => ({ posted: nano(posted), held: nano(held) })

async function deliveries(store: Store): Promise<Record<string, boolean | null>> {
  const rows = await store.db.selectFrom('attempt').select(['id', 'delivered']).execute()
  return Object.fromEntries(rows.map(({ id, delivered }) => [id, delivered]))
}

const posted = (store: Store, id: string) =>
  store.db.selectFrom('txn').selectAll().where('id', '=', id).executeTakeFirst()

eachEngine('a hold', (open) => {
  test('a hold sets money aside, and a refusal says what is left', async () => {
    const store = await open()
    // Another account's money must not count.
    await fundedAccount(store, { id: 'acc_0' })
    await fundedAccount(store, { amount: 100n })
    expect(await takeHold(store, holdOf('a', 70n))).toEqual({ outcome: 'held' })
    expect(await takeHold(store, holdOf('b', 31n))).toEqual({ outcome: 'no-funds', available: nano(30n) })
    expect(await takeHold(store, holdOf('c', 30n))).toEqual({ outcome: 'held' })
    expect(await funds(store)).toEqual(amounts(100n, 100n))
  })

  test('a hold on a missing or disabled account is refused', async () => {
    const store = await open()
    expect(await takeHold(store, holdOf('a', 0n))).toEqual({ outcome: 'no-account' })
    await fundedAccount(store)
    await changeAccount(store, { id: accountId, actor: 'test', enabled: false })
    expect(await takeHold(store, holdOf('a', 1n))).toEqual({ outcome: 'no-account' })
  })

  test('a hold with a used id or a negative amount fails and sets nothing aside', async () => {
    const store = await open()
    await fundedAccount(store)
    await takeHold(store, holdOf('a', 10n))
    expect(takeHold(store, holdOf('a', 10n))).rejects.toThrow()
    expect(await funds(store)).toEqual(amounts(1_000n, 10n))
    expect(takeHold(store, holdOf('b', -1n))).rejects.toThrow('negative')
  })

  test('a cancelled uncertain hold is released, and cannot be taken later', async () => {
    const store = await open()
    await fundedAccount(store)
    await takeHold(store, holdOf('taken', 10n))
    for (const id of ['taken', 'late', 'late']) await cancelUncertainHold(store, holdOf(id, 10n))
    expect(await funds(store)).toEqual(amounts(1_000n, 0n))
    await thrownBy(takeHold(store, holdOf('late', 10n)))
    expect(await funds(store)).toEqual(amounts(1_000n, 0n))
    expect(await checkLedger(store)).toEqual([])
  })

  test('exactly 30 of 100 concurrent holds succeed on a balance for 30', async () => {
    const store = await open()
    await fundedAccount(store, { amount: 30n * 7n })
    const taken = await Promise.all(Array.from({ length: 100 }, (_, at) => takeHold(store, holdOf(`h${at}`, 7n))))
    expect(taken.filter((one) => one.outcome === 'held')).toHaveLength(30)
    expect(await funds(store)).toEqual(amounts(210n, 210n))
  }, 120_000)

  test('a hold on an unlimited account is metered and never refused', async () => {
    const store = await open()
    await fundedAccount(store, { amount: 0n, unlimited: true })
    expect(await takeHold(store, holdOf('a', 50n))).toEqual({ outcome: 'held' })
    await settleHold(store, settlementOf('a', 40n))
    expect(await funds(store)).toEqual(amounts(-40n, 0n))
  })

  test('a hold taken in a transaction that fails is not held', async () => {
    const store = await open()
    await fundedAccount(store)
    const failing = store.transaction(async (tx) => {
      await takeHoldIn(tx, holdOf('a', 10n), store.now())
      throw new Error('the task could not be made')
    })
    expect(failing).rejects.toThrow('the task')
    expect(await funds(store)).toEqual(amounts(1_000n, 0n))
  })
})

eachEngine('the settlement of a hold', (open) => {
  test('settling charges the price, gives the rest back, and books both sides', async () => {
    const store = await open()
    await fundedAccount(store)
    await takeHold(store, holdOf('a', 100n))
    const failed = attemptOf('1', 7n, { delivered: false, status: 500 })
    const delivered = attemptOf('2', 40n, { vendor: 'ark' })
    const settled = await settleHold(store, settlementOf('a', 60n, { attempts: [failed, delivered] }))
    expect(settled).toEqual({ outcome: 'settled', charge: nano(60n), excess: nano(0n) })
    expect(await funds(store)).toEqual(amounts(940n, 0n))
    expect(await balances(store)).toEqual({
      promo: nano(-1_000n),
      'cust:acc_a': nano(940n),
      'revenue:gpt-x': nano(60n),
      'cost:ark': nano(-40n),
      'payable:ark': nano(40n),
      'platform:loss': nano(-7n),
      'payable:openai': nano(7n),
    })
    const pinned = { hold_id: 'a', price_version: 'v1', usage: { input: 3, output: 4 }, basis: 'vendor' }
    expect(await posted(store, 'a')).toMatchObject({ kind: 'settle', ...pinned })
    const record = await requestById(store.db, { scope: { accountId }, id: 'req_a' })
    expect(record?.request).toMatchObject({ cost: nano(60n), basis: 'vendor', usage: { input: 3, output: 4 } })
    expect(record?.attempts.map((attempt) => attempt.vendorCost)).toEqual([nano(7n), nano(40n)])
    expect(await deliveries(store)).toEqual({ att_1: false, att_2: true })
  })

  test('the costs of attempts at one vendor are added up', async () => {
    const store = await open()
    await fundedAccount(store)
    await takeHold(store, holdOf('a', 100n))
    const attempts = [attemptOf('1', 5n), attemptOf('2', 6n), attemptOf('3', 7n, { delivered: false })]
    await settleHold(store, settlementOf('a', 20n, { attempts }))
    const { 'cost:openai': cost, 'payable:openai': payable, 'platform:loss': loss } = await balances(store)
    expect([cost, payable, loss]).toEqual([nano(-11n), nano(18n), nano(-7n)])
  })

  test.each([
    {
      name: 'is booked as our loss',
      basis: 'vendor',
      to: undefined,
      revenue: 110n,
      'platform:loss': -10n,
      suspense: 0n,
    },
    {
      name: 'can be booked as suspense',
      basis: 'vendor',
      to: 'suspense',
      revenue: 110n,
      'platform:loss': 0n,
      suspense: -10n,
    },
    {
      name: 'is dropped for an estimate',
      basis: 'estimated',
      to: undefined,
      revenue: 100n,
      'platform:loss': 0n,
      suspense: 0n,
    },
  ] as const)('the excess over the hold $name', async ({ basis, to, revenue, ...expected }) => {
    const store = await open()
    await fundedAccount(store, { amount: 100n })
    await takeHold(store, holdOf('a', 100n))
    const settled = await settleHold(store, settlementOf('a', 110n, { basis, ...(to && { excessTo: to }) }))
    expect(settled).toMatchObject({ outcome: 'settled', charge: nano(100n) })
    expect(await funds(store)).toEqual(amounts(0n, 0n))
    const booked = await balances(store)
    expect(booked['revenue:gpt-x']).toBe(nano(revenue))
    expect(booked['platform:loss'] ?? 0n).toBe(expected['platform:loss'])
    expect(booked['suspense'] ?? 0n).toBe(expected.suspense)
  })

  test('a negative price is refused and books nothing', async () => {
    const store = await open()
    await fundedAccount(store)
    await takeHold(store, holdOf('a', 100n))
    expect(await settleHold(store, settlementOf('a', -1n)).catch(String)).toContain('is negative')
    expect(await funds(store)).toEqual(amounts(1_000n, 100n))
  })

  test('a settlement at zero charges nothing and ends the hold', async () => {
    const store = await open()
    await fundedAccount(store)
    await takeHold(store, holdOf('a', 100n))
    expect(await settleHold(store, settlementOf('a', 0n))).toMatchObject({ outcome: 'settled', charge: nano(0n) })
    expect(await funds(store)).toEqual(amounts(1_000n, 0n))
  })

  test('a hold ends exactly once under concurrent and repeated settlements and releases', async () => {
    const store = await open()
    await fundedAccount(store)
    // Another hold stays open all the while, and another account is left alone.
    await fundedAccount(store, { id: 'acc_b' })
    await takeHold(store, holdOf('0', 7n))
    await takeHold(store, holdOf('a', 100n))
    const hold = { id: 'a', accountId }
    const endings = await Promise.all([
      settleHold(store, settlementOf('a', 60n)),
      settleHold(store, settlementOf('a', 60n)),
      voidHold(store, { hold, request: requestOf('a') }),
    ])
    expect(endings.filter((ending) => ending.outcome === 'already-ended')).toHaveLength(2)
    const state = endings[2].outcome === 'voided' ? 'void' : 'settled'
    expect(await settleHold(store, settlementOf('a', 60n))).toEqual({ outcome: 'already-ended', state })
    expect(await voidHold(store, { hold })).toEqual({ outcome: 'already-ended', state })
    expect(await funds(store)).toEqual(amounts(state === 'void' ? 1_000n : 940n, 7n))
  })

  test('another account cannot end the hold', async () => {
    const store = await open()
    await fundedAccount(store)
    await fundedAccount(store, { id: 'acc_b' })
    await takeHold(store, holdOf('a', 100n))
    const theft = { hold: { id: 'a', accountId: 'acc_b' } }
    const absent = { outcome: 'already-ended', state: 'absent' } as const
    expect(await settleHold(store, settlementOf('a', 60n, theft))).toEqual(absent)
    expect(await voidHold(store, theft)).toEqual(absent)
    expect(await funds(store)).toEqual(amounts(1_000n, 100n))
  })

  test('settling in a transaction that fails leaves the hold open and books nothing', async () => {
    const store = await open()
    await fundedAccount(store)
    await takeHold(store, holdOf('a', 100n))
    const failing = store.transaction(async (tx) => {
      await settleHoldIn(tx, settlementOf('a', 60n, { attempts: [attemptOf('1', 5n)] }), store.now())
      throw new Error('the task ended otherwise')
    })
    expect(failing).rejects.toThrow('otherwise')
    expect(await funds(store)).toEqual(amounts(1_000n, 100n))
    expect(await requestById(store.db, { scope: 'every-account', id: 'req_a' })).toBeUndefined()
  })

  test('settling completes the record of a task that was accepted before', async () => {
    const store = await open()
    await fundedAccount(store)
    for (const id of ['a', 'b']) await takeHold(store, holdOf(id, 100n, { kind: 'task' }))
    const request = requestOf('task', { capability: 'video' })
    await settleHold(store, settlementOf('a', 0n, { request, usage: null }))
    await settleHold(store, settlementOf('b', 60n, { request, usage: { request: 1 } }))
    const record = await requestById(store.db, { scope: { accountId }, id: 'req_task' })
    expect(record?.request).toMatchObject({ cost: nano(60n), usage: { request: 1 } })
  })
})

eachEngine('voiding a hold', (open) => {
  test('voiding gives the whole hold back, and vendor charges become our loss', async () => {
    const store = await open()
    await fundedAccount(store)
    await takeHold(store, holdOf('a', 100n))
    const attempts = [attemptOf('1', 5n), attemptOf('2', 0n, { status: 0 })]
    const voided = await voidHold(store, {
      hold: { id: 'a', accountId },
      request: requestOf('a', { status: 502 }),
      attempts,
      note: 'why',
    })
    expect(voided).toEqual({ outcome: 'voided' })
    expect(await funds(store)).toEqual(amounts(1_000n, 0n))
    expect(await balances(store)).toMatchObject({ 'platform:loss': nano(-5n), 'payable:openai': nano(5n) })
    const pinned = { hold_id: 'a', price_version: 'v1', usage: null, basis: 'policy_zero', note: 'why' }
    expect(await posted(store, 'a')).toMatchObject({ kind: 'loss', ...pinned })
    const record = await requestById(store.db, { scope: { accountId }, id: 'req_a' })
    expect(record?.request).toMatchObject({ status: 502, cost: nano(0n), basis: 'policy_zero' })
    expect(await deliveries(store)).toEqual({ att_1: false, att_2: false })
  })

  test('recovery voids overdue holds, at a start all holds of requests, and never those of tasks', async () => {
    const clock = { now: () => 1_000 }
    const store = await open({ clock })
    await fundedAccount(store)
    await takeHold(store, holdOf('late', 1n, { deadline: 1_500 }))
    await takeHold(store, holdOf('running', 2n, { deadline: 9_000 }))
    await takeHold(store, holdOf('task', 4n, { deadline: 1_500, kind: 'task' }))
    expect(await recoverHolds(store, { now: 1_400 })).toEqual({ voided: [], failed: [] })
    expect(await recoverHolds(store, { now: 2_000 })).toEqual({ voided: ['late'], failed: [] })
    expect(await funds(store)).toEqual(amounts(1_000n, 6n))
    expect(await recoverAll(store)).toEqual({ voided: ['running'], failed: [] })
    expect(await recoverAll(store)).toEqual({ voided: [], failed: [] })
    expect(await funds(store)).toEqual(amounts(1_000n, 4n))
    // This hold has no task, which the check of the books would report.
    await voidHold(store, { hold: { id: 'task', accountId } })
  })

  test('a hold that cannot be voided does not keep others from being voided', async () => {
    const store = await open({ books: 'unchecked', clock: { now: () => 1_000 } })
    await fundedAccount(store)
    await fundedAccount(store, { id: 'acc_odd' })
    await takeHold(store, holdOf('odd', 5n, { accountId: 'acc_odd', deadline: 1_100 }))
    await takeHold(store, holdOf('late', 7n, { deadline: 1_200 }))
    // Less is held than the hold says, which only an edit of the database can cause.
    await sql`update account set held = 0 where id = 'acc_odd'`.execute(store.db)
    const failed = [expect.stringMatching(/^odd: .*account_held_positive/)]
    expect(await recoverHolds(store, { now: 2_000 })).toEqual({ voided: ['late'], failed })
    expect(await funds(store)).toEqual(amounts(1_000n, 0n))
    await takeHold(store, holdOf('running', 7n, { deadline: 9_000 }))
    expect(await recoverAll(store)).toEqual({ voided: ['running'], failed })
    expect(await funds(store)).toEqual(amounts(1_000n, 0n))
  })
})

eachEngine('the books', (open) => {
  test('an unbalanced posting is refused', async () => {
    const store = await open()
    const entries = new Entries([['promo', nano(5n)]])
    const posting = { id: 'x', kind: 'correction', basis: 'manual', now: 1, entries } as const
    expect(
      store.transaction(async (tx) => executeWrites(tx, postingWrites(tx, await lockChain(tx, accountId), posting))),
    ).rejects.toThrow('off by 5')
  })

  test('the check reports holds whose state contradicts their postings', async () => {
    let now = 2_000
    const store = await open({ books: 'unchecked', clock: { now: () => now } })
    const { db } = store
    await fundedAccount(store)
    const sold = ['kept', 'undone', 'reopened']
    for (const id of [...sold, 'unsaid']) await takeHold(store, holdOf(id, 10n, { deadline: 3_000 }))
    // What a call costs us may exceed the customer's hold.
    for (const id of sold) await settleHold(store, settlementOf(id, 5n, { attempts: [attemptOf(id, 40n)] }))
    await voidHold(store, { hold: { id: 'unsaid', accountId } })
    now = 4_000
    expect(await checkLedger(store)).toEqual([])
    await sql`update hold set state = 'void' where id = 'undone'`.execute(db)
    await sql`update hold set state = 'settled' where id = 'unsaid'`.execute(db)
    await sql`update hold set state = 'open', deadline = 5000 where id = 'reopened'`.execute(db)
    // Each posting is unbalanced, though the two together are balanced.
    await sql`insert into entry (txn_id, account, amount) values ('kept', 'promo', 3), ('undone', 'promo', -3)`.execute(
      db,
    )
    const found = (await checkLedger(store)).filter(({ rule }) => ['I1', 'I3', 'I4', 'I5'].includes(rule))
    expect(found.map(({ rule, subject, why }) => `${rule} ${subject}: ${why}`).toSorted()).toEqual([
      'I1 kept: entries sum to 3',
      'I1 undone: entries sum to -3',
      'I3 acc_a: held 0, holds and leases 10',
      'I4 reopened: open, with 1 settlements and 0 losses',
      'I4 undone: void, with 1 settlements and 0 losses',
      'I4 unsaid: settled, with 0 settlements and 0 losses',
    ])
  })

  test('each broken rule is found and named', async () => {
    const store = await open({ books: 'unchecked', clock: { now: () => 2_000 } })
    const { db } = store
    await fundedAccount(store)
    for (const id of ['settled', 'late', 'twice']) await takeHold(store, holdOf(id, 10n, { deadline: 3_000 }))
    await settleHold(store, settlementOf('settled', 10n))
    expect(await checkLedger(store)).toEqual([])

    await sql`insert into entry (txn_id, account, amount) values ('settled', 'promo', 3)`.execute(db)
    await sql`update account set posted = posted + 1, held = held + 5`.execute(db)
    await sql`update hold set deadline = 1000 where id = 'late'`.execute(db)
    await sql`update hold set amount = 4 where id = 'settled'`.execute(db)
    await sql`update request set cost = 11`.execute(db)
    await sql`insert into attempt
      (id, request_id, channel, vendor, upstream_model, status, vendor_cost, delivered, created_at)
      values ('att', '', '', 'openai', '', 200, 7, true, 1)`.execute(db)
    await sql`insert into txn (id, kind, hold_id, basis, created_at) values
      ('x', 'settle', 'twice', 'vendor', 1), ('y', 'loss', 'twice', 'vendor', 1)`.execute(db)
    await sql`insert into entry (txn_id, account, amount) values ('x', 'cust:nobody', 2), ('x', 'promo', -2)`.execute(
      db,
    )
    const found = (await checkLedger(store)).map(({ rule, subject }) => `${rule} ${subject}`)
    expect(found.toSorted()).toEqual([
      'I1 settled',
      'I2 acc_a',
      'I2 nobody',
      'I3 acc_a',
      'I4 late',
      'I4 twice',
      'I5 req_settled',
      'I5 settled',
      'I6 openai',
      'I8 settled',
      'I8 txn',
    ])
  })
})
