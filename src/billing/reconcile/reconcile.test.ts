import { describe, expect, test } from 'bun:test'
import { nano, pico, type Nano } from '../../base/money.ts'
import type { Counts, PriceList } from '../../capabilities/usage.ts'
import { eachEngine } from '../../../test/support/engines.ts'
import {
  accountId,
  attemptOf,
  balances,
  fundedAccount,
  holdOf,
  requestOf,
  settlementOf,
} from '../../../test/support/ledger.ts'
import { accountById } from '../../store/accounts.ts'
import { reclaimNode } from '../../store/corrections.ts'
import { takeHold } from '../../store/holds.ts'
import { settleHold, voidHold, type Settlement } from '../../store/ledger.ts'
import type { Store } from '../../store/open.ts'
import { openNode, takeTurn } from '../../store/turns.ts'
import { spentSince, sumVendors } from '../../store/usage.ts'
import type { BillLine } from './bill.ts'
import { reconcile, repair, verdictOn } from './reconcile.ts'

/** Twice what the vendor charges: a nano for input, two for output. */
const prices: PriceList = {
  version: 'v1',
  rates: { input: pico(2_000n), output: pico(4_000n) },
  tiers: [],
  perImage: {},
  perSecond: {},
  perVideoToken: {},
}
const priceList = (_model: string, version: string) => (version === 'v1' ? prices : undefined)
const now = requestOf('').createdAt + 1_000

function line(id: string, cost: bigint, more: Partial<BillLine> = {}): BillLine {
  return { ref: `att_${id}`, cost: nano(cost), model: 'gpt-x-2026', ...more }
}

function look(store: Store, bill: readonly BillLine[], more = {}) {
  return reconcile({ store, bill, priceList, requestMsMax: 3_600_000, ...more })
}

async function sold(store: Store, id: string, price: bigint, more: Partial<Settlement> = {}): Promise<void> {
  await takeHold(store, holdOf(id, 100n, { deadline: now + 1_000_000_000 }))
  await settleHold(store, settlementOf(id, price, { attempts: [attemptOf(id, price / 2n)], ...more }))
}

async function kindsOf(store: Store, bill: readonly BillLine[]): Promise<string[]> {
  return (await look(store, bill)).findings.map(({ kind, ref }) => `${kind} ${ref}`).toSorted()
}

/** Mends, and shows that a second run has nothing to do. */
async function mend(store: Store, bill: readonly BillLine[]): Promise<Record<string, Nano>> {
  await repair(store, (await look(store, bill)).findings)
  const mended = await balances(store)
  const again = await look(store, bill)
  expect(await repair(store, again.findings)).toEqual([])
  expect(await balances(store)).toEqual(mended)
  expect(verdictOn(again)).toBe(0)
  return mended
}

eachEngine('reconciling', (open) => {
  const opened = () => open({ clock: { now: () => now } })

  test('books that the bill confirms are clean', async () => {
    const store = await opened()
    await fundedAccount(store)
    await sold(store, 'a', 20n)
    const report = await look(store, [line('a', 10n)])
    expect(report).toMatchObject({ breaches: [], findings: [], matched: { calls: 1, amount: nano(10n) } })
    expect(verdictOn(report)).toBe(0)
    // A call that failed, and costs nothing on either side.
    await takeHold(store, holdOf('b', 10n))
    const failed = attemptOf('b', 0n, { status: 500, delivered: false })
    await voidHold(store, {
      hold: { id: 'b', accountId },
      request: requestOf('b', { status: 502 }),
      attempts: [failed],
    })
    expect(verdictOn(await look(store, [line('a', 10n), line('b', 0n)]))).toBe(0)
  })

  test('each kind of difference is told apart', async () => {
    const store = await opened()
    await fundedAccount(store)
    await sold(store, 'exact', 20n)
    await sold(store, 'wrong', 20n)
    await sold(store, 'guess', 20n, { basis: 'estimated', request: requestOf('guess', { status: 499 }) })
    await sold(store, 'unbilled', 20n)
    const bill = [line('exact', 10n), line('wrong', 11n), line('guess', 12n), line('nobody', 5n)]
    const nameless = { ref: null, cost: nano(1n) }
    expect(await kindsOf(store, [...bill, nameless])).toEqual([
      'amount-differs att_wrong',
      'estimated att_guess',
      'ledger-only att_unbilled',
      'vendor-only att_nobody',
      'vendor-only nameless',
    ])
    const report = await look(store, bill)
    expect(verdictOn(report)).toBe(1)
    expect(report.findings.find(({ ref }) => ref === 'att_guess')?.why).toContain('the client left')
    expect(verdictOn(await look(store, [bill[0] ?? nameless]))).toBe(2)
    expect(verdictOn(await look(store, [line('exact', 4n), line('exact', 6n)]))).toBe(1)
  })

  describe('repairs are new postings', () => {
    test('what the vendor charges beyond an estimate is our loss, never the customer’s', async () => {
      const store = await opened()
      await fundedAccount(store)
      await sold(store, 'a', 20n, { basis: 'estimated' })
      const books = await mend(store, [line('a', 17n, { units: { input: 7, output: 5 } })])
      expect(books).toMatchObject({
        'cust:acc_a': 980n,
        'platform:loss': -7n,
        'payable:openai': 17n,
        'cost:openai': -10n,
      })
      const attempt = await store.db.selectFrom('attempt').select(['vendor_cost', 'recorded_cost']).executeTakeFirst()
      expect(attempt).toEqual({ vendor_cost: nano(17n), recorded_cost: nano(10n) })
      expect(await sumVendors(store, { from: 0, to: now })).toEqual([
        { vendor: 'openai', attempts: 1, cost: nano(17n) },
      ])
    })

    test('an estimate above what the vendor counted is made good', async () => {
      const store = await opened()
      await fundedAccount(store)
      await sold(store, 'a', 40n, { basis: 'estimated' })
      const books = await mend(store, [line('a', 7n, { units: { input: 3, output: 2 } })])
      // 3 at two nanos and 2 at four.
      expect(books).toMatchObject({
        'cust:acc_a': 986n,
        'revenue:gpt-x': 14n,
        'platform:loss': 13n,
        'payable:openai': 7n,
      })
      expect((await accountById(store.db, accountId))?.posted).toBe(nano(986n))
      expect((await store.db.selectFrom('request').select('cost').executeTakeFirst())?.cost).toBe(nano(14n))
      expect(await spentSince(store.db, { accountId, since: 0 })).toBe(nano(14n))
    })

    test.each<{ name: string; units?: Counts; basis?: 'vendor' | 'estimated'; priceList?: () => undefined }>([
      { name: 'the vendor counts nothing' },
      { name: 'the price list is no longer known', units: { output: 1 }, priceList: () => undefined },
      { name: 'it is exact', units: { output: 1 }, basis: 'vendor' },
    ])('it is not where $name', async ({ units, basis = 'estimated', ...more }) => {
      const store = await opened()
      await fundedAccount(store)
      await sold(store, 'a', 20n, { basis })
      const bill = [line('a', 2n, units === undefined ? {} : { units })]
      await repair(store, (await look(store, bill, more)).findings)
      expect((await accountById(store.db, accountId))?.posted).toBe(nano(980n))
      expect((await look(store, bill, more)).findings).toEqual([])
    })

    test('nor after three days', async () => {
      const store = await open({ clock: { now: () => now + 73 * 3_600_000 } })
      await fundedAccount(store)
      await sold(store, 'a', 20n, { basis: 'estimated' })
      await repair(store, (await look(store, [line('a', 2n, { units: { output: 1 } })])).findings)
      expect((await accountById(store.db, accountId))?.posted).toBe(nano(980n))
    })

    test('a failed attempt that was charged is our loss, and its request stays as it was', async () => {
      const store = await opened()
      await fundedAccount(store)
      const failed = attemptOf('first', 0n, { status: 500, delivered: false })
      await sold(store, 'a', 20n, { attempts: [failed, attemptOf('a', 10n)] })
      const bill = [line('first', 4n, { units: { output: 2 } }), line('a', 10n)]
      expect(await kindsOf(store, bill)).toEqual(['estimated att_first'])
      expect(await mend(store, bill)).toMatchObject({ 'cust:acc_a': 980n, 'platform:loss': -4n, 'payable:openai': 14n })
    })

    test('a call that nobody recorded becomes an attempt without a request', async () => {
      const store = await opened()
      await fundedAccount(store)
      await sold(store, 'a', 20n)
      const bill = [line('a', 10n), line('lost', 6n), line('refused', 0n)]
      expect(await mend(store, bill)).toMatchObject({ 'platform:loss': -6n, 'payable:openai': 16n })
      const found = await store.db
        .selectFrom('attempt')
        .select(['request_id', 'vendor'])
        .where('id', '=', 'att_lost')
        .execute()
      expect(found).toEqual([{ request_id: '', vendor: 'openai' }])
    })

    test('but not while it may still come', async () => {
      const store = await opened()
      await fundedAccount(store)
      const { epoch } = await openNode(store, 'node_b', [])
      const takes = [{ accountId, need: nano(50n), extra: nano(0n) }]
      await takeTurn(store, { node: 'node_b', epoch }, { number: 1, postings: [], takes, returns: [] })
      const bill = [line('coming', 6n), line('old', 5n, { at: now - 3_700_000 })]
      const report = await look(store, bill)
      expect(verdictOn(report)).toBe(2)
      expect(await repair(store, report.findings)).toMatchObject([{ ref: 'att_old' }])
      expect(await kindsOf(store, bill)).toEqual(['vendor-only att_coming'])

      // The node's disk is gone: its lease goes back, it is fenced off, and the bill decides.
      expect(await reclaimNode(store, { node: 'node_b', silentSince: now, actor: 'test' })).toMatchObject({
        outcome: 'alive',
      })
      expect(await reclaimNode(store, { node: 'node_c', silentSince: now, actor: 'test' })).toEqual({
        outcome: 'absent',
      })
      expect(await reclaimNode(store, { node: 'node_b', silentSince: now + 1, actor: 'test' })).toEqual({
        outcome: 'reclaimed',
        leases: [{ accountId, amount: nano(50n) }],
      })
      expect(await accountById(store.db, accountId)).toMatchObject({ posted: 1_000n, held: 0n })
      const late = { number: 2, postings: [], takes, returns: [] }
      expect(takeTurn(store, { node: 'node_b', epoch }, late)).rejects.toThrow('another process')
      await mend(store, bill)
    })
  })
})
