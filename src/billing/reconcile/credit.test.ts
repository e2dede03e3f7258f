import { expect, test } from 'bun:test'
import { sql } from 'kysely'
import { billedAt, line, listOf, lists, look, sold } from '../../../test/support/bills.ts'
import { eachEngine } from '../../../test/support/engines.ts'
import { accountId, attemptOf, fundedAccount, requestOf } from '../../../test/support/ledger.ts'
import { formatDollars, nano, pico } from '../../base/money.ts'
import { accountById } from '../../store/accounts.ts'
import { listAudit } from '../../store/audit.ts'
import type { Settlement } from '../../store/ledger.ts'
import type { Store } from '../../store/open.ts'
import { readExport, type BillLine } from './bill.ts'
import type { PriceLists } from './credit.ts'
import { repair } from './reconcile.ts'

// The vendor's prices are half of ours: the customer paid 40 nanos, and 10 of input and 5 of output cost us 20.
const abandoned = {
  basis: 'estimated',
  request: requestOf('a', { status: 499 }),
  attempts: [attemptOf('a', 20n)],
} as const

const cacheWrite = (rate: bigint) => ({ cacheWrite: pico(rate) })
const withCache: PriceLists = {
  prices: listOf('v1', { ...lists.prices.rates, ...cacheWrite(2_500n) }),
  costs: listOf('v0', { ...lists.costs.rates, ...cacheWrite(1_250n) }),
}

/** Price lists with a price for video tokens. */
function tokens(of: string, price: bigint): PriceLists {
  return {
    prices: { ...lists.prices, perVideoToken: { [of]: pico(price) } },
    costs: { ...lists.costs, perVideoToken: { [of]: pico(price / 2n) } },
  }
}

async function posted(store: Store): Promise<bigint> {
  return (await accountById(store.db, accountId))?.posted ?? 0n
}

/** Makes the records look like those of an older version, which did not say which attempts delivered. */
async function ofOlder(store: Store): Promise<Store> {
  await sql`update attempt set delivered = null`.execute(store.db)
  return store
}

eachEngine('refunds to customers', (open) => {
  /** How much of the 40 nanos the customer gets back by this bill. */
  async function givenBack(bill: readonly BillLine[], by = lists): Promise<bigint> {
    const store = await charged()
    const { findings } = await look(store, bill, { priceLists: () => by })
    expect((await repair(store, findings, { actor: 'cli' })).failed).toEqual([])
    return (await posted(store)) - 960n
  }

  async function charged(more: Partial<Settlement> = {}): Promise<Store> {
    const store = await open({ clock: { now: () => billedAt } })
    await fundedAccount(store)
    await sold(store, 'a', 40n, { ...abandoned, ...more })
    return store
  }

  test('several lines of one call are judged by the sum of their units', async () => {
    const exact = readExport('ref,cost,input,output\natt_a,0.00000001,10,\natt_a,0.00000001,,5\n')
    expect(await givenBack(exact)).toBe(0n)
    const less = readExport('ref,cost,input,output\natt_a,0.000000006,6,\natt_a,0.000000008,,4\n')
    expect(await givenBack(less)).toBe(12n)
    // One of the lines has no units, so it is not known what it is for.
    const halfCounted = readExport('ref,cost,input,output\natt_a,0.000000006,6,\natt_a,0.000000008,,\n')
    expect(await givenBack(halfCounted)).toBe(0n)
  })

  test('a bill whose units do not explain its cost gives the customer nothing back', async () => {
    // 8 tokens written to the cache cost 10 nanos, and so do 5 of output: the bill shows only the output.
    const common = 'ref,cost,model,input,cachedInput,output,time\natt_a,0.00000002,m,,,5,2027-01-15T08:00:00Z\n'
    expect(await givenBack(readExport(common), withCache)).toBe(0n)
    const whole = 'ref,cost,input,cacheWrite,output\natt_a,0.000000015,,4,5\n'
    expect(await givenBack(readExport(whole), withCache)).toBe(10n)
    // A line that charges without any units, and one that neither charges nor counts anything.
    expect(await givenBack([line('a', 20n, { units: {} })])).toBe(0n)
    expect(await givenBack([line('a', 0n, { units: {} })])).toBe(40n)
    // The rest of the cost is for images, which have no units.
    expect(await givenBack([line('a', 17n, { units: { input: 7 } })])).toBe(0n)
    // Less was billed than these units cost, so the bill is not by our prices.
    expect(await givenBack([line('a', 5n, { units: { input: 7 } })])).toBe(0n)
  })

  test('a difference by rounding is tolerated, and a larger one gives the customer nothing back', async () => {
    const half: PriceLists = {
      prices: listOf('v1', { input: pico(1_000n) }),
      costs: listOf('v0', { input: pico(500n) }),
    }
    // Three tokens at half a nano come to 1.5, rounded to 2; with each line rounded by itself they come to 3.
    const pieces = [1, 2, 3].map(() => line('a', 1n, { units: { input: 1 } }))
    expect(await givenBack(pieces, half)).toBe(37n)
    expect(await givenBack([line('a', 3n, { units: { input: 3 } })], half)).toBe(0n)
    expect(await givenBack([line('a', 2n, { units: { input: 3 } })], half)).toBe(37n)
  })

  test('a refund is in the audit, and a correction without one is not', async () => {
    const store = await charged()
    await sold(store, 'b', 40n)
    const bill = [line('a', 14n, { units: { input: 6, output: 4 } }), line('b', 21n)]
    expect((await repair(store, (await look(store, bill)).findings, { actor: 'cli' })).booked).toHaveLength(2)
    const [refund, ...others] = (await listAudit(store.db, { limit: 9 })).filter(({ actor }) => actor === 'cli')
    const { note } = (refund?.detail ?? {}) as { note?: string }
    expect(refund).toMatchObject({
      action: 'request.credit',
      subject: 'req_a',
      detail: { account: accountId, amount: formatDollars(nano((await posted(store)) - 920n)) },
    })
    expect(note).toStartWith('reconciled: ')
    expect(others).toEqual([])
  })

  test('video tokens are refunded only where all videos have one price', async () => {
    const video = [line('a', 10n, { units: { videoToken: 5 } })]
    expect(await givenBack(video, tokens('default', 4_000n))).toBe(20n)
    expect(await givenBack(video, tokens('720p', 4_000n))).toBe(0n)
    expect(await givenBack(video)).toBe(0n)
  })

  test('an attempt without a record of its delivery counts as delivered if it cost something', async () => {
    const refused = attemptOf('first', 0n, { status: 503, delivered: false })
    const store = await ofOlder(await charged({ attempts: [refused, attemptOf('a', 20n)] }))
    const { findings } = await look(store, [line('first', 3n), line('a', 14n, { units: { input: 6, output: 4 } })])
    expect(findings.map(({ ref, credit }) => `${ref} ${credit}`).toSorted()).toEqual(['att_a 12', 'att_first 0'])
    await repair(store, findings, { actor: 'cli' })
    expect(await posted(store)).toBe(972n)
    // Where the cost followed the vendor's own usage, another amount on the bill means a wrong price.
    await sold(store, 'b', 40n)
    const bill = [line('b', 21n)]
    await ofOlder(store)
    expect((await look(store, bill)).findings).toMatchObject([
      { kind: 'amount-differs', ref: 'att_b' },
      { kind: 'ledger-only' },
      { kind: 'ledger-only' },
    ])
  })

  test('nothing is refunded where an attempt without a record of its delivery may have delivered', async () => {
    // Two choices with the whole cost on the last one, as an older version recorded a crash.
    const crashed = [attemptOf('a', 0n, { status: 0 }), attemptOf('b', 20n, { status: 0 })]
    const store = await ofOlder(await charged({ request: requestOf('a', { status: 500 }), attempts: crashed }))
    const bill = ['a', 'b'].map((id) => line(id, 10n, { units: { output: 5 } }))
    await repair(store, (await look(store, bill)).findings, { actor: 'cli' })
    expect(await posted(store)).toBe(960n)
    const costs = await store.db.selectFrom('attempt').select('vendor_cost').execute()
    expect(costs).toEqual([{ vendor_cost: nano(10n) }, { vendor_cost: nano(10n) }])
  })
})
