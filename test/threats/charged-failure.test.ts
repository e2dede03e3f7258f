import { describe, expect, test } from 'bun:test'
import { nano, parseDollars, type Nano } from '../../src/base/money.ts'
import { readBill } from '../../src/billing/reconcile/bill.ts'
import { reconcile, repair, verdictOn } from '../../src/billing/reconcile/reconcile.ts'
import { checkLedger } from '../../src/store/check.ts'
import { gatewayForTests } from '../support/gateway.ts'
import { attemptsOf, recordOf } from '../support/records.ts'
import { contentOf, payloads, says } from '../support/streams.ts'

// M-15. The first vendor makes the answer, charges for it and then fails; the second delivers. It sells for three times
// what it costs, so that no charge can be taken for a cost.
const yaml = `
sandbox: true
channels:
  - { id: first, vendor: openai, keys: ["one"], priority: 0 }
  - { id: alike, vendor: deepseek, keys: ["two"], priority: 1 }
  - { id: other, vendor: anthropic, keys: ["three"], priority: 1 }
models:
  - id: same
    capability: chat
    channels: [{ channel: first }, { channel: alike }]
    outputTokensMax: 1000
    prices: { inputPerMillion: "1", outputPerMillion: "10", markup: "3" }
  - id: translated
    capability: chat
    channels: [{ channel: first }, { channel: other }]
    outputTokensMax: 1000
    prices: { inputPerMillion: "1", outputPerMillion: "10", markup: "3" }
`
/** The first vendor makes 77 tokens and fails; the second ignores these words and answers as usual. */
const words = 'Hello. sandbox:only=openai sandbox:usage=77 sandbox:charge-then-fail=500'

const idsOf = (rows: readonly { id: string }[]) => new Set(rows.map(({ id }) => id))
const sum = (rows: readonly { amount: Nano }[]) => rows.reduce((total, { amount }) => total + amount, 0n)

describe.each([
  ['SQLite', 'sqlite', 'leased'],
  ['SQLite, booked at once', 'sqlite', 'strict'],
  ['PostgreSQL', 'postgres', 'leased'],
  ['PostgreSQL, booked at once', 'postgres', 'strict'],
] as const)('a failed attempt that the vendor charged, on %s', (_name, engine, mode) => {
  const gateway = gatewayForTests({ engine, mode, yaml })

  /** Every posting since the mark, with all its entries. */
  async function postings(known: ReadonlySet<string> = new Set()) {
    await gateway.settleBooks()
    const rows = await gateway.store.db
      .selectFrom('txn')
      .innerJoin('entry', 'entry.txn_id', 'txn.id')
      .select(['txn.id', 'kind', 'basis', 'account', 'amount'])
      .orderBy('account')
      .execute()
    return rows.filter(({ id }) => !known.has(id))
  }
  const shown = (rows: Awaited<ReturnType<typeof postings>>) =>
    rows.map(({ kind, basis, account, amount }) => [kind, basis, account, amount as bigint])

  /** As an operator does, with the simulators' bill over HTTP. */
  async function reconciled() {
    const bill = readBill(await (await fetch(`${gateway.sandboxUrl}/__bill`)).text())
    return reconcile({ store: gateway.store, bill, priceLists: () => undefined, requestMsMax: 3_600_000 })
  }

  /** Expects that reading the same bill again books nothing more. */
  async function isClean() {
    const known = idsOf(await postings())
    const again = await reconciled()
    expect(verdictOn(again)).toBe(0)
    expect(await repair(gateway.store, again.findings, { actor: 'cli' })).toEqual({ booked: [], failed: [] })
    expect(await postings(known)).toEqual([])
  }

  const billed = async () => new Map((await gateway.bill()).map(({ ref, cost }) => [ref, parseDollars(cost) ?? 0n]))

  test.each([
    ['same', 'alike', 'deepseek', false],
    ['same', 'alike', 'deepseek', true],
    ['translated', 'other', 'anthropic', false],
    ['translated', 'other', 'anthropic', true],
  ] as const)('the customer pays for the second attempt only: %s, by %s (%s), streamed: %p', async (...row) => {
    const [model, channel, vendor, stream] = row
    const account = await gateway.account({ dollars: '1' })
    const before = idsOf(await postings())
    const response = await gateway.post('/v1/chat/completions', says(words, { model, stream }), {
      authorization: `Bearer ${account.key}`,
    })
    expect(response.status).toBe(200)
    const text = await response.text()
    if (stream) expect(contentOf(payloads(text))).not.toBe('')
    expect(text).not.toContain('"error"')

    // Both were made, and both stand on the vendors' own bill.
    const attempts = await attemptsOf(gateway, response)
    const failed = attempts.find((attempt) => attempt.channel === 'first')
    const delivered = attempts.find((attempt) => attempt.channel === channel)
    const bill = await billed()
    const lost = bill.get(failed?.id ?? '') ?? 0n
    const cost = bill.get(delivered?.id ?? '') ?? 0n
    expect(attempts).toHaveLength(2)
    expect(lost).toBeGreaterThanOrEqual(77n * 10_000n)
    expect(cost).toBeGreaterThan(0n)
    expect(cost).not.toBe(lost)
    expect(failed).toMatchObject({ channel: 'first', vendor: 'openai', status: 500, vendor_cost: 0n })
    expect(delivered).toMatchObject({ channel, vendor, status: 200, vendor_cost: nano(cost) })

    // What the customer sees, and what was booked for it: the delivered attempt at its price, and nothing else.
    const charge = cost * 3n
    expect(await recordOf(gateway, response)).toMatchObject({ status: 200, cost: nano(charge), basis: 'vendor' })
    expect(await gateway.balance(account.id)).toEqual({ posted: nano(1_000_000_000n - charge), held: nano(0n) })
    const sale = (await postings(before)).filter(({ kind }) => kind !== 'credit')
    expect(shown(sale)).toEqual([
      ['settle', 'vendor', `cost:${vendor}`, -cost],
      ['settle', 'vendor', `cust:${account.id}`, -charge],
      ['settle', 'vendor', `payable:${vendor}`, cost],
      ['settle', 'vendor', `revenue:${model}`, charge],
    ])

    // The bill shows the failed attempt: our loss to the nano, while the customer's balance does not change.
    const known = idsOf(await postings())
    const found = await reconciled()
    expect(found.breaches).toEqual([])
    expect(found.findings).toMatchObject([
      { kind: 'estimated', ref: failed?.id, billed: lost, recorded: 0n, credit: 0n },
    ])
    expect(found.findings[0]?.why).toContain('a failed attempt, charged by the vendor')
    expect((await repair(gateway.store, found.findings, { actor: 'cli' })).booked).toHaveLength(1)
    const loss = await postings(known)
    expect(shown(loss)).toEqual([
      ['correction', 'vendor', 'payable:openai', lost],
      ['correction', 'vendor', 'platform:loss', -lost],
    ])
    expect(await recordOf(gateway, response)).toMatchObject({ cost: nano(charge) })
    expect(await gateway.balance(account.id)).toEqual({ posted: nano(1_000_000_000n - charge), held: nano(0n) })
    expect(sum([...sale, ...loss])).toBe(0n)
    expect(sum(await postings())).toBe(0n)
    expect(await checkLedger(gateway.store)).toEqual([])

    await isClean()
  })

  test('the customer pays nothing if both attempts fail, and both charges are our loss', async () => {
    const account = await gateway.account({ dollars: '1' })
    const known = idsOf(await postings())
    const response = await gateway.post(
      '/v1/chat/completions',
      says('Hello. sandbox:charge-then-fail=500', { model: 'same' }),
      { authorization: `Bearer ${account.key}` },
    )
    expect(response.status).toBe(502)
    expect(await recordOf(gateway, response)).toMatchObject({ status: 502, cost: nano(0n), basis: 'policy_zero' })
    expect(await postings(known)).toEqual([])
    const bill = await billed()
    const attempts = await attemptsOf(gateway, response)
    expect(attempts.map(({ channel, status }) => `${channel} ${status}`).toSorted()).toEqual(['alike 500', 'first 500'])
    const lost = attempts.map(({ id }) => bill.get(id) ?? 0n)
    for (const cost of lost) expect(cost).toBeGreaterThan(0n)
    expect((await repair(gateway.store, (await reconciled()).findings, { actor: 'cli' })).booked).toHaveLength(2)
    const losses = (await postings(known)).filter(({ account }) => account === 'platform:loss')
    expect(new Set(losses.map(({ amount }) => 0n - amount))).toEqual(new Set(lost))
    expect(sum(losses)).toBe(0n - lost.reduce((total, cost) => total + cost, 0n))
    expect(sum(await postings(known))).toBe(0n)
    expect(await gateway.balance(account.id)).toEqual({ posted: nano(1_000_000_000n), held: nano(0n) })
    await isClean()
  })
})
