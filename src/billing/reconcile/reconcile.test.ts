import { describe, expect, test } from 'bun:test'
import { nano, type Nano } from '../../base/money.ts'
import type { Counts } from '../../capabilities/usage.ts'
import { billedAt as now, line, look, sold } from '../../../test/support/bills.ts'
import { eachEngine } from '../../../test/support/engines.ts'
import { accountId, attemptOf, balances, fundedAccount, holdOf, requestOf } from '../../../test/support/ledger.ts'
import { orderOf, sentOf } from '../../../test/simulation/request.ts'
import { returnOf, takeOf, turnOf } from '../../../test/support/turns.ts'
import { accountById, credit as creditAccount } from '../../store/accounts.ts'
import { reclaimNode } from '../../store/leases.ts'
import { takeHold } from '../../store/holds.ts'
import { voidHold, type Settlement } from '../../store/ledger.ts'
import type { Store } from '../../store/open.ts'
import { costlyAttempts } from '../../store/reconcile.ts'
import { openNode, takeTurn } from '../../store/turns.ts'
import { spentSince } from '../../store/usage.ts'
import { replay } from '../leased/replay.ts'
import type { BillLine } from './bill.ts'
import { repair, verdictOn } from './reconcile.ts'

async function kindsOf(store: Store, bill: readonly BillLine[]): Promise<string[]> {
  return (await look(store, bill)).findings.map(({ kind, ref }) => `${kind} ${ref}`).toSorted()
}

/** Books the repairs, and checks that a second run has nothing to do. */
async function mend(store: Store, bill: readonly BillLine[]): Promise<Record<string, Nano>> {
  expect((await repair(store, (await look(store, bill)).findings, { actor: 'cli' })).failed).toEqual([])
  const mended = await balances(store)
  const again = await look(store, bill)
  expect(await repair(store, again.findings, { actor: 'cli' })).toEqual({ booked: [], failed: [] })
  expect(await balances(store)).toEqual(mended)
  expect(verdictOn(again)).toBe(0)
  return mended
}

/** Three choices of 5 tokens, each 20 nanos for the customer and 10 for us. The client left. */
async function soldThree(store: Store, more: Partial<Settlement> = {}): Promise<void> {
  const attempts = ['a1', 'a2', 'a3'].map((id) => attemptOf(id, 10n))
  const request = requestOf('a', { status: 499 })
  await sold(store, 'a', 60n, { basis: 'estimated', request, attempts, ...more })
}

/** What the vendor counted for each of the three. */
function billOf(...outputs: number[]): BillLine[] {
  return outputs.map((output, at) => line(`a${at + 1}`, BigInt(output * 2), { units: { output } }))
}

async function posted(store: Store): Promise<bigint | undefined> {
  return (await accountById(store.db, accountId))?.posted
}

eachEngine('reconciliation', (open) => {
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

  test('each kind of difference is reported as its own kind', async () => {
    const store = await opened()
    await fundedAccount(store)
    await sold(store, 'exact', 20n)
    await sold(store, 'wrong', 20n)
    await sold(store, 'guess', 20n, { basis: 'estimated', request: requestOf('guess', { status: 499 }) })
    await sold(store, 'unbilled', 20n)
    const bill = [line('exact', 10n), line('wrong', 11n), line('guess', 12n), line('nobody', 5n)]
    const nameless = { ref: null, cost: nano(1n) }
    const refused = { ref: null, cost: nano(0n) }
    expect(await kindsOf(store, [...bill, nameless, refused])).toEqual([
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

  test('a billed call with a reference that is not ours is reported but not booked', async () => {
    const store = await opened()
    await fundedAccount(store)
    await sold(store, 'a', 20n)
    const before = await balances(store)
    const foreign = { ref: 'chatcmpl-1', cost: nano(5n) }
    const report = await look(store, [line('a', 10n), foreign])
    expect(report.findings).toMatchObject([{ kind: 'vendor-only', ref: 'chatcmpl-1', repair: undefined }])
    expect(report.findings[0]?.why).toContain('calls made without the gateway')
    expect(verdictOn(report)).toBe(2)
    expect(await repair(store, report.findings, { actor: 'cli' })).toEqual({ booked: [], failed: [] })
    expect(await balances(store)).toEqual(before)
  })

  test('a bill is compared only with calls to its vendors, from its beginning on', async () => {
    const store = await opened()
    await fundedAccount(store)
    await sold(store, 'a', 20n)
    await sold(store, 'older', 20n, { attempts: [attemptOf('older', 10n, { createdAt: now - 10_000 })] })
    await sold(store, 'elsewhere', 20n, { attempts: [attemptOf('elsewhere', 10n, { vendor: 'deepseek' })] })
    await sold(store, 'free', 20n, { attempts: [attemptOf('free', 0n)] })
    const missing = async (more: Parameters<typeof look>[2]) =>
      (await look(store, [line('a', 10n)], more)).findings.map(({ ref }) => ref)
    expect(await missing({})).toEqual(['att_older'])
    expect(await missing({ since: now - 5_000 })).toEqual([])
    expect(await missing({ vendor: 'deepseek' })).toEqual(['att_elsewhere'])
    const page = async (after: string) => {
      const found = await costlyAttempts(store.db, { vendors: ['openai'], since: 0, after, limit: 1 })
      return found.map(({ id }) => id)
    }
    expect([await page(''), await page('att_a'), await page('att_older')]).toEqual([['att_a'], ['att_older'], []])
  })

  describe('repairs', () => {
    test("a vendor charge beyond an estimate is booked as our loss, not the customer's", async () => {
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
    })

    test("an estimate above the vendor's count is refunded to the customer", async () => {
      const store = await opened()
      await fundedAccount(store)
      await sold(store, 'a', 40n, { basis: 'estimated' })
      const books = await mend(store, [line('a', 7n, { units: { input: 3, output: 2 } })])
      // The charge becomes 14: 3 of input at two nanos and 2 of output at four.
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

    test.each<{ name: string; units?: Counts; basis?: 'vendor' | 'estimated'; priceLists?: () => undefined }>([
      { name: 'the vendor counts nothing' },
      { name: 'the price list is no longer known', units: { output: 1 }, priceLists: () => undefined },
      { name: 'the charge was exact', units: { output: 1 }, basis: 'vendor' },
    ])('the customer is refunded nothing where $name', async ({ units, basis = 'estimated', ...more }) => {
      const store = await opened()
      await fundedAccount(store)
      await sold(store, 'a', 20n, { basis })
      const bill = [line('a', 2n, units === undefined ? {} : { units })]
      await repair(store, (await look(store, bill, more)).findings, { actor: 'cli' })
      expect((await accountById(store.db, accountId))?.posted).toBe(nano(980n))
      expect((await look(store, bill, more)).findings).toEqual([])
    })

    test('the customer is refunded nothing after three days', async () => {
      const store = await open({ clock: { now: () => now + 73 * 3_600_000 } })
      await fundedAccount(store)
      await sold(store, 'a', 20n, { basis: 'estimated' })
      await repair(store, (await look(store, [line('a', 2n, { units: { output: 1 } })])).findings, { actor: 'cli' })
      expect((await accountById(store.db, accountId))?.posted).toBe(nano(980n))
    })

    test('a failed attempt on the bill is booked as our loss, and its request stays as it was', async () => {
      const store = await opened()
      await fundedAccount(store)
      const failed = attemptOf('first', 0n, { status: 500, delivered: false })
      await sold(store, 'a', 20n, { attempts: [failed, attemptOf('a', 10n)] })
      const bill = [line('first', 4n, { units: { output: 2 } }), line('a', 10n)]
      expect(await kindsOf(store, bill)).toEqual(['estimated att_first'])
      expect(await mend(store, bill)).toMatchObject({ 'cust:acc_a': 980n, 'platform:loss': -4n, 'payable:openai': 14n })
    })

    describe('a request of several calls', () => {
      test('a bill that agrees with the records changes nothing', async () => {
        const store = await opened()
        await fundedAccount(store)
        await soldThree(store)
        const report = await look(store, billOf(5, 5, 5))
        expect(report).toMatchObject({ findings: [], matched: { calls: 3, amount: nano(30n) }, matchedEstimated: 3 })
        await mend(store, billOf(5, 5, 5))
        expect(await posted(store)).toBe(940n)
      })

      test('the request is refunded once, with all its corrections', async () => {
        const store = await opened()
        await fundedAccount(store)
        await soldThree(store)
        const { findings } = await look(store, billOf(5, 3, 2))
        expect(findings.map(({ ref, credit }) => `${ref} ${credit}`).toSorted()).toEqual([
          'att_a1 20',
          'att_a2 0',
          'att_a3 0',
        ])
        const books = await mend(store, billOf(5, 3, 2))
        expect(books).toMatchObject({ 'cust:acc_a': 960n, 'revenue:gpt-x': 40n, 'payable:openai': 20n })
        expect(await posted(store)).toBe(960n)
        expect((await store.db.selectFrom('request').select('cost').executeTakeFirst())?.cost).toBe(nano(40n))
      })

      test('a call that was estimated too high offsets another that was too low', async () => {
        const store = await opened()
        await fundedAccount(store)
        await soldThree(store)
        await mend(store, billOf(2, 5, 9))
        expect(await posted(store)).toBe(940n)
      })

      test('the request is refunded only once each of its calls is on the bill with its units', async () => {
        const store = await opened()
        await fundedAccount(store)
        await soldThree(store)
        await repair(store, (await look(store, billOf(1, 1))).findings, { actor: 'cli' })
        expect(await posted(store)).toBe(940n)
        await mend(store, [...billOf(1, 1), line('a3', 2n)])
        expect(await posted(store)).toBe(940n)
        await mend(store, billOf(1, 1, 1))
        expect(await posted(store)).toBe(988n)
      })

      test('only the calls that delivered decide the refund', async () => {
        const store = await opened()
        await fundedAccount(store)
        // One attempt cost something and delivered nothing; another delivered at no cost, as far as we know.
        const wasted = attemptOf('a0', 10n, { delivered: false })
        await soldThree(store, { attempts: [wasted, attemptOf('a1', 10n), attemptOf('a2', 20n), attemptOf('a3', 0n)] })
        const bill = [line('a0', 20n, { units: { output: 10 } }), ...billOf(5, 3, 2)]
        const { findings } = await look(store, bill)
        expect(findings.find(({ ref }) => ref === 'att_a0')?.why).toContain('nothing was delivered')
        await mend(store, bill)
        expect(await posted(store)).toBe(960n)
      })

      test('the repairs of a request are booked all together or not at all', async () => {
        const store = await opened()
        await fundedAccount(store)
        await soldThree(store)
        const stale = (await look(store, billOf(5, 3, 2))).findings
        // Another run corrects the last call meanwhile.
        await repair(store, (await look(store, [line('a3', 7n)])).findings, { actor: 'cli' })
        const before = await balances(store)
        expect(await repair(store, stale, { actor: 'cli' })).toEqual({ booked: [], failed: [] })
        expect(await balances(store)).toEqual(before)
        await mend(store, billOf(5, 3, 2))
        expect(await posted(store)).toBe(960n)
        // The charge was lowered meanwhile: nothing is given back twice.
        const fresh = (await look(store, billOf(1, 1, 1))).findings
        await store.db
          .updateTable('request')
          .set({ cost: nano(39n) })
          .execute()
        expect((await repair(store, fresh, { actor: 'cli' })).booked).toEqual([])
        expect(await posted(store)).toBe(960n)
        await store.db
          .updateTable('request')
          .set({ cost: nano(40n) })
          .execute()
      })

      test('after a crash, each call is compared with its own line of the bill', async () => {
        const store = await opened()
        await fundedAccount(store)
        const { epoch, turn } = await openNode(store, 'node_a', [])
        const node = { node: 'node_a', epoch }
        await takeTurn(store, node, turnOf(turn + 1, { takes: [takeOf(100n)] }))
        const [first, ...others] = ['att_a1', 'att_a2', 'att_a3'].map(sentOf)
        const delivered = ['att_a1', 'att_a2', 'att_a3'].map((id) => ({ id, vendorCost: nano(10n) }))
        const order = { ...orderOf('req_a', accountId, 100n), model: 'gpt-x' }
        const postings = replay([
          { type: 'HOLD', id: 'hold_a', order, ...(first !== undefined && { attempt: first }) },
          ...others.map((attempt) => ({ type: 'SEND', id: 'hold_a', attempt }) as const),
          { type: 'MARK', id: 'hold_a', progress: { usage: { output: 15 }, price: nano(60n), delivered } },
        ])
        await takeTurn(store, node, turnOf(turn + 2, { postings, returns: [returnOf(40n)] }))
        expect(await look(store, billOf(5, 5, 5))).toMatchObject({ findings: [], matched: { calls: 3 } })
        await mend(store, billOf(5, 5, 3))
        expect(await posted(store)).toBe(948n)
      })
    })

    test('a failed attempt with a successful status is not reported as a wrong price', async () => {
      const store = await opened()
      await fundedAccount(store)
      const failed = attemptOf('first', 0n, { delivered: false })
      await sold(store, 'a', 20n, { attempts: [failed, attemptOf('a', 10n)] })
      const bill = [line('first', 4n), line('a', 10n)]
      expect(await kindsOf(store, bill)).toEqual(['estimated att_first'])
      expect(verdictOn(await look(store, bill))).toBe(2)
      expect(await mend(store, bill)).toMatchObject({ 'cust:acc_a': 980n, 'platform:loss': -4n })
    })

    test('a repair that cannot be booked is reported and does not prevent the others', async () => {
      const store = await opened()
      await fundedAccount(store)
      await sold(store, 'a', 40n, { basis: 'estimated' })
      await sold(store, 'b', 20n)
      // Nothing can be given back to a balance that is already at the upper bound.
      const most = 4_000_000_000_000_000_000n
      await creditAccount(store, { accountId, amount: nano(most - 940n), source: 'promo', actor: 'test' })
      const bill = [line('a', 2n, { units: { output: 1 } }), line('b', 12n), line('lost', 6n)]
      const { booked, failed } = await repair(store, (await look(store, bill)).findings, { actor: 'cli' })
      expect(booked.map(({ ref }) => ref).toSorted()).toEqual(['att_b', 'att_lost'])
      expect(failed.map(({ finding }) => finding.ref)).toEqual(['att_a'])
      expect(failed[0]?.error).toContain('account_bounded')
      expect(await kindsOf(store, bill)).toEqual(['estimated att_a'])
      expect((await look(store, bill)).breaches).toEqual([])
    })

    test('a billed call missing from the records becomes an attempt without a request', async () => {
      const store = await opened()
      await fundedAccount(store)
      await sold(store, 'a', 20n)
      // The newest call went to another vendor, with another model.
      const elsewhere = { vendor: 'google', upstreamModel: 'gemini-x', createdAt: now - 1 }
      await sold(store, 'b', 20n, { attempts: [attemptOf('b', 10n, elsewhere)] })
      const bill = [line('a', 10n), line('b', 10n), line('lost', 6n), line('refused', 0n)]
      expect(await mend(store, bill)).toMatchObject({ 'platform:loss': -6n, 'payable:openai': 16n })
      const found = await store.db
        .selectFrom('attempt')
        .select(['request_id', 'vendor'])
        .where('id', '=', 'att_lost')
        .execute()
      expect(found).toEqual([{ request_id: '', vendor: 'openai' }])
    })

    test('a billed call is not booked while a hold is open under which it may have been made', async () => {
      const store = await opened()
      await fundedAccount(store)
      await sold(store, 'a', 20n)
      const bill = [line('a', 10n), line('coming', 6n)]
      await takeHold(store, holdOf('open', 10n, { deadline: now + 1_000 }))
      const report = await look(store, bill)
      expect(report.claims.holds.map(({ id }) => id)).toEqual(['open'])
      expect(await repair(store, report.findings, { actor: 'cli' })).toEqual({ booked: [], failed: [] })
      await voidHold(store, { hold: { id: 'open', accountId } })
      expect(await mend(store, bill)).toMatchObject({ 'platform:loss': -6n })
    })

    test('a billed call is not booked while its node may still post it', async () => {
      const store = await opened()
      await fundedAccount(store)
      const { epoch } = await openNode(store, 'node_b', [])
      const takes = [takeOf(50n, 0n, accountId)]
      await takeTurn(store, { node: 'node_b', epoch }, { number: 1, postings: [], takes, returns: [] })
      // A call made less than a request's longest time before the node was last heard of may still be under way.
      const recent = line('recent', 4n, { at: now - 3_500_000 })
      const bill = [line('coming', 6n), recent, line('old', 5n, { at: now - 3_700_000 })]
      const report = await look(store, bill)
      expect(verdictOn(report)).toBe(2)
      expect(await repair(store, report.findings, { actor: 'cli' })).toMatchObject({
        booked: [{ ref: 'att_old' }],
        failed: [],
      })
      expect(await kindsOf(store, bill)).toEqual(['vendor-only att_coming', 'vendor-only att_recent'])

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
