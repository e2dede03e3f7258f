import { describe, expect, test } from 'bun:test'
import { pico } from '../../src/base/money.ts'
import { readBill } from '../../src/billing/reconcile/bill.ts'
import type { PriceLists } from '../../src/billing/reconcile/credit.ts'
import { reconcile, repair, verdictOn } from '../../src/billing/reconcile/reconcile.ts'
import { listOf } from '../support/bills.ts'
import { gatewayForTests, until } from '../support/gateway.ts'
import { attemptsOf, lastRequestOf } from '../support/records.ts'
import { says } from '../support/streams.ts'

// The vendor gives one choice per call, so that three choices are three calls under one charge.
const yaml = `
sandbox: true
channels:
  - { id: only, vendor: deepseek, keys: ["one"] }
models:
  - id: m
    capability: chat
    channels: [{ channel: only }]
    outputTokensMax: 1000
    prices: { inputPerMillion: "1", outputPerMillion: "10", markup: "3" }
`
const lists: PriceLists = {
  prices: listOf('', { input: pico(3_000_000n), output: pico(30_000_000n) }),
  costs: listOf('', { input: pico(1_000_000n), output: pico(10_000_000n) }),
}

describe.each([
  ['SQLite', 'sqlite', 'leased'],
  ['SQLite, booked at once', 'sqlite', 'strict'],
  ['PostgreSQL', 'postgres', 'leased'],
] as const)('the reconciliation of several abandoned choices on %s', (_name, engine, mode) => {
  const gateway = gatewayForTests({ engine, mode, yaml })

  async function reconciled() {
    const bill = readBill(await (await fetch(`${gateway.sandboxUrl}/__bill`)).text())
    return reconcile({ store: gateway.store, bill, priceLists: () => lists, requestMsMax: 3_600_000 })
  }

  test('the customer keeps paying for all that was delivered', async () => {
    const account = await gateway.account({ dollars: '1' })
    const words = 'Hello. sandbox:pace=20 sandbox:tokens=500'
    const response = await gateway.post('/v1/chat/completions', says(words, { model: 'm', n: 3, stream: true }), {
      authorization: `Bearer ${account.key}`,
    })
    const reader = response.body?.getReader()
    let text = ''
    const got = (choice: number) => text.split(`"index":${choice},"delta":{"content"`).length > 3
    while (!got(0) || !got(1) || !got(2)) text += Buffer.from((await reader?.read())?.value ?? []).toString()
    await reader?.cancel()
    await until(async () => (await lastRequestOf(gateway, account.id)) !== undefined)

    const record = await lastRequestOf(gateway, account.id)
    expect(record).toMatchObject({ status: 499, basis: 'estimated' })
    const attempts = await attemptsOf(gateway, response)
    expect(attempts.map(({ delivered }) => delivered)).toEqual([true, true, true])
    await until(async () => (await gateway.bill()).length === 3)
    const before = await gateway.balance(account.id)

    const { findings } = await reconciled()
    expect(findings.map(({ credit }) => credit as bigint).filter((credit) => credit > 0n)).toEqual([])
    expect((await repair(gateway.store, findings, { actor: 'cli' })).failed).toEqual([])
    expect(await gateway.balance(account.id)).toEqual(before)
    expect((await lastRequestOf(gateway, account.id))?.cost).toEqual(record?.cost)
    expect(verdictOn(await reconciled())).toBe(0)
  })
})
