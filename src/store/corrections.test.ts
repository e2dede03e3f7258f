import { expect, test } from 'bun:test'
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
import { nano } from '../base/money.ts'
import { adoptAttempt, correctAttempts } from './corrections.ts'
import { takeHold } from './holds.ts'
import { type Settlement, settleHold } from './ledger.ts'
import type { Store } from './open.ts'
import { attemptsByIds } from './reconcile.ts'
import { dayMs, hourMs } from './rollups.ts'

const other = 'acc_b'
const { createdAt } = requestOf('')
const hour = Math.floor(createdAt / hourMs) * hourMs
const day = Math.floor(createdAt / dayMs) * dayMs

/** Sells a request for 40 nanos by an estimate, which cost us 20. */
async function sold(store: Store, id: string, { hold, ...more }: Partial<Settlement> = {}): Promise<void> {
  const owner = hold?.accountId ?? accountId
  await takeHold(store, holdOf(id, 100n, { accountId: owner }))
  const settlement = settlementOf(id, 40n, { basis: 'estimated', attempts: [attemptOf(id, 20n)], ...more })
  await settleHold(store, { ...settlement, hold: { id, accountId: owner } })
}

/** What separates one request from another in the sums, one property at a time. */
const apart: Readonly<Record<string, Partial<Settlement>>> = {
  account: { hold: { id: 'account', accountId: other } },
  key: { request: requestOf('key', { keyId: 'key_b' }) },
  model: { request: requestOf('model', { model: 'gpt-y' }) },
  capability: { request: requestOf('capability', { capability: 'embeddings' }) },
  hour: { request: requestOf('hour', { createdAt: createdAt + hourMs }) },
}

async function soldApart(store: Store, vendor: string): Promise<void> {
  await fundedAccount(store, { id: other })
  for (const [id, different] of Object.entries(apart)) {
    await sold(store, id, { ...different, attempts: [attemptOf(id, 20n, { vendor })] })
  }
}

async function correct(store: Store, id: string, billed: bigint, credit = 0n): Promise<string> {
  const found = await attemptsByIds(store.db, [`att_${id}`])
  const shared = { billed: nano(billed), credit: nano(credit), usage: null, note: 'as billed' }
  return correctAttempts(
    store,
    found.map((attempt) => ({ attempt, ...shared })),
    'cli',
  )
}

/** All that a correction may change beside the ledger, by what it belongs to. */
async function recordsOf(store: Store): Promise<Record<string, string>> {
  const records: Record<string, string> = {}
  const requests = await store.db.selectFrom('request').select(['id', 'cost']).execute()
  for (const { id, cost } of requests) records[id] = String(cost)
  const attempts = await store.db.selectFrom('attempt').select(['id', 'vendor_cost']).execute()
  for (const { id, vendor_cost: cost } of attempts) records[id] = String(cost)
  const accounts = await store.db.selectFrom('account').select(['id', 'posted']).execute()
  for (const { id, posted } of accounts) records[id] = String(posted)
  for (const table of ['usage_hour', 'usage_day'] as const) {
    for (const row of await store.db.selectFrom(table).selectAll().execute()) {
      const of = [table, row.hour, row.account_id, row.key_id, row.model, row.capability, row.vendor]
      records[of.join(' ')] = `${row.cost} ${row.vendor_cost}`
    }
  }
  return records
}

/** The records that a change has altered. */
async function changedBy(store: Store, change: () => Promise<unknown>): Promise<Record<string, string>> {
  const before = await recordsOf(store)
  await change()
  return Object.fromEntries(Object.entries(await recordsOf(store)).filter(([of, value]) => before[of] !== value))
}

eachEngine('a correction', (open) => {
  test('a second correction keeps the recorded cost, and no correction charges the customer', async () => {
    const store = await open()
    await fundedAccount(store)
    await sold(store, 'a')
    expect([await correct(store, 'a', 30n), await correct(store, 'a', 25n)]).toEqual(['corrected', 'corrected'])
    const attempt = await store.db.selectFrom('attempt').select(['vendor_cost', 'recorded_cost']).executeTakeFirst()
    expect(attempt).toEqual({ vendor_cost: nano(25n), recorded_cost: nano(20n) })
    expect(await changedBy(store, () => correct(store, 'a', 25n, -1n).catch(String))).toEqual({})
    expect(await correct(store, 'a', 25n, -1n).catch(String)).toContain('would be charged for afterwards')
  })

  test('a correction changes only the records and sums of its own request', async () => {
    const store = await open()
    await fundedAccount(store)
    await sold(store, 'a')
    await sold(store, 'twin')
    await sold(store, 'vendor', { attempts: [attemptOf('vendor', 20n, { vendor: 'deepseek' })] })
    await soldApart(store, 'openai')
    const own = `${accountId} key_a gpt-x chat openai`
    expect(await changedBy(store, () => correct(store, 'a', 7n, 26n))).toEqual({
      req_a: '14',
      att_a: '7',
      [accountId]: String(1_000n - 7n * 40n + 26n),
      // The hour includes the twin; the day also includes the request of an hour later.
      [`usage_hour ${hour} ${own}`]: '54 27',
      [`usage_day ${day} ${own}`]: '94 47',
    })
  })

  test("the correction of a failed call is added to the sums of its request's vendor", async () => {
    const store = await open()
    await fundedAccount(store)
    await soldApart(store, 'deepseek')
    const failed = attemptOf('first', 0n, { vendor: 'deepseek', status: 500, delivered: false })
    await sold(store, 'a', { attempts: [failed, attemptOf('a', 20n)] })
    const own = `${accountId} key_a gpt-x chat openai`
    expect(await changedBy(store, () => correct(store, 'first', 4n))).toEqual({
      att_first: '4',
      [`usage_hour ${hour} ${own}`]: '40 24',
      [`usage_day ${day} ${own}`]: '40 24',
    })
  })

  test('the correction of a failed call leaves the sums of other vendors alone, even those of its own vendor', async () => {
    const store = await open()
    await fundedAccount(store)
    for (const vendor of ['anthropic', 'deepseek']) {
      await sold(store, vendor, { attempts: [attemptOf(vendor, 20n, { vendor })] })
    }
    const failed = attemptOf('first', 0n, { vendor: 'deepseek', status: 500, delivered: false })
    await sold(store, 'a', { attempts: [failed, attemptOf('later', 20n, { createdAt: createdAt + 1 })] })
    const own = `${accountId} key_a gpt-x chat openai`
    expect(await changedBy(store, () => correct(store, 'first', 4n))).toEqual({
      att_first: '4',
      [`usage_hour ${hour} ${own}`]: '40 24',
      [`usage_day ${day} ${own}`]: '40 24',
    })
    expect(await balances(store)).toMatchObject({
      'payable:deepseek': nano(24n),
      'payable:openai': nano(20n),
      'platform:loss': nano(-4n),
    })
  })

  test('a call that only the bill knows is booked once, and as it was billed last', async () => {
    const store = await open()
    const found = { ref: 'att_lost', vendor: 'openai', upstreamModel: 'gpt-x-2026', at: createdAt, note: 'found' }
    const adopt = () => adoptAttempt(store, { ...found, billed: nano(20n) })
    expect([await adopt(), await adopt()]).toEqual(['corrected', 'changed'])
    expect(await balances(store)).toEqual({ 'payable:openai': nano(20n), 'platform:loss': nano(-20n) })
    expect(await correct(store, 'lost', 25n)).toBe('corrected')
    expect(await balances(store)).toEqual({ 'payable:openai': nano(25n), 'platform:loss': nano(-25n) })
  })
})
