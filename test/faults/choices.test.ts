import { afterEach, expect, test } from 'bun:test'
import { nano } from '../../src/base/money.ts'
import { reconcile, repair, verdictOn } from '../../src/billing/reconcile/reconcile.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { attemptsOf, booked, recordOf } from '../support/records.ts'
import { errorOf } from '../support/streams.ts'
import { answer, completion, startVendor, type RawVendor, type Reply } from '../support/vendor.ts'

// Several choices from a vendor that gives one per call: as many calls in parallel, and all of them succeed or none
// counts.

let gateway: TestGateway
let vendors: RawVendor[]
afterEach(async () => {
  await gateway.assertBooks()
  await gateway.close()
  await Promise.all(vendors.map((vendor) => vendor.stop()))
})

async function start(...replies: readonly Reply[]): Promise<void> {
  vendors = await Promise.all(replies.map(startVendor))
  await startAt(vendors.map(({ baseUrl }) => baseUrl))
}

async function startAt(baseUrls: readonly string[]): Promise<void> {
  const channels = baseUrls.map(
    (baseUrl, at) => `  - { id: c${at}, vendor: deepseek, baseUrl: "${baseUrl}", keys: ["key"], priority: ${at} }`,
  )
  gateway = await startTestGateway({
    yaml: `
sandbox: false
channels:
${channels.join('\n')}
models:
  - id: m
    capability: chat
    channels: [${baseUrls.map((_, at) => `{ channel: c${at} }`).join(', ')}]
    outputTokensMax: 1000
    prices: { inputPerMillion: "1", outputPerMillion: "10" }
`,
  })
}

const ask = (more: Record<string, unknown> = {}) =>
  gateway.post(
    '/v1/chat/completions',
    { model: 'm', n: 3, messages: [{ role: 'user', content: 'Hi' }], ...more },
    { 'idempotency-key': 'once' },
  )
const calls = () => vendors.map(({ requests }) => requests.length)
const tried = async (response: Response) =>
  (await attemptsOf(gateway, response))
    .map((each) => `${each.channel} ${each.status} ${each.vendor_cost} ${each.delivered}`)
    .toSorted()

const busy = answer(503, '{"error":{"message":"busy"}}')

/** Refuses the third call while it works on the other two, which it does not answer. */
const refusesThird: Reply = (socket, { call }) => {
  if (call % 3 !== 0) return new Promise(() => {})
  socket.write(busy)
}

test('the next channel serves all choices after one was refused, and the calls cut off are our loss', async () => {
  await start(refusesThird, (socket) => void socket.write(answer(200, completion('Hello.'))))
  const before = await gateway.balance()
  const response = await ask()
  expect(response.status).toBe(200)
  expect(((await response.json()) as { choices: unknown[] }).choices).toHaveLength(3)
  await until(() => vendors[0]?.hangups === 2)
  expect(calls()).toEqual([3, 3])

  // 10 tokens in and 5 out, three times: what was cut off is on record, and no part of the charge.
  expect(await recordOf(gateway, response)).toMatchObject({ status: 200, cost: 180_000n, basis: 'vendor' })
  expect(await tried(response)).toEqual([
    'c0 0 0 false',
    'c0 0 0 false',
    'c0 503 0 false',
    ...Array.from({ length: 3 }, () => 'c1 200 60000 true'),
  ])
  const after = await gateway.balance()
  expect(before.posted - after.posted).toBe(180_000n)

  // The vendor may have charged for them until then. Its bill tells, and that is our loss.
  const attempts = await attemptsOf(gateway, response)
  const cut = attempts.filter(({ status }) => status === 0)
  const bill = attempts
    .filter(({ status }) => status !== 503)
    .map(({ id, delivered }) => ({ ref: id, cost: nano(delivered ? 60_000n : 10_000n) }))
  const look = () => reconcile({ store: gateway.store, bill, priceLists: () => undefined, requestMsMax: 3_600_000 })
  const { findings } = await look()
  expect(findings.map(({ kind, ref }) => `${kind} ${ref}`).toSorted()).toEqual(
    cut.map(({ id }) => `estimated ${id}`).toSorted(),
  )
  expect((await repair(gateway.store, findings, { actor: 'cli' })).failed).toEqual([])
  expect(await booked(gateway, 'platform:loss')).toBe(nano(-20_000n))
  expect(await gateway.balance()).toEqual(after)
  expect(verdictOn(await look())).toBe(0)
})

test.each([false, true])('the failure is final when every channel refuses a choice (streamed: %p)', async (stream) => {
  await start(refusesThird, refusesThird)
  const response = await ask({ stream })
  expect((await errorOf(response)).status).toBe(502)
  expect(response.headers.get('x-should-retry')).toBe('false')
  expect(await errorOf(await ask({ stream }))).toMatchObject({ status: 502, code: 'upstream_failed' })
  expect(calls()).toEqual([3, 3])
  expect(await tried(response)).toEqual(
    ['c0', 'c1'].flatMap((channel) => [`${channel} 0 0 false`, `${channel} 0 0 false`, `${channel} 503 0 false`]),
  )
  expect(await recordOf(gateway, response)).toMatchObject({ status: 502, cost: 0n, basis: 'policy_zero' })
})

test('the failure is final when the last channel cannot be reached after choices were cut off', async () => {
  await start(refusesThird, () => {})
  await vendors[1]?.stop()
  const response = await ask()
  expect((await errorOf(response)).status).toBe(502)
  expect(response.headers.get('x-should-retry')).toBe('false')
  expect((await errorOf(await ask())).code).toBe('upstream_failed')
  expect(await tried(response)).toContain('c1 0 0 false')
})

test('a choice that the vendor broke off is not asked for at another channel', async () => {
  const isOver = Promise.withResolvers<void>()
  await start(
    async (socket, { call }) => {
      if (call === 1) socket.on('close', () => isOver.resolve())
      if (call === 2) socket.destroy()
      if (call === 3) socket.write(busy)
      await isOver.promise
    },
    (socket) => void socket.write(answer(200, completion('Hello.'))),
  )
  const response = await ask()
  expect((await errorOf(response)).status).toBe(502)
  expect(response.headers.get('x-should-retry')).toBe('false')
  expect(calls()).toEqual([3, 0])
  expect((await tried(response)).length).toBe(3)
})

test('a vendor that cannot be reached leaves the Idempotency-Key free', async () => {
  await start(() => {})
  await vendors[0]?.stop()
  const response = await ask()
  expect((await errorOf(response)).status).toBe(502)
  expect(response.headers.get('x-should-retry')).toBeNull()
  expect((await errorOf(await ask())).status).toBe(502)
})

test('each of several calls pays for the whole prompt and for an answer at its cap', async () => {
  const usage = { prompt_tokens: 60, completion_tokens: 5, total_tokens: 65 }
  await start((socket) => void socket.write(answer(200, completion('Hello.', { usage }))))
  const response = await ask({ max_tokens: 5 })
  expect(response.status).toBe(200)
  // The prompt three times at a micro-dollar per token, and three times five tokens at ten.
  expect(await recordOf(gateway, response)).toMatchObject({ cost: 330_000n, basis: 'vendor' })
  expect(await booked(gateway, 'platform:loss')).toBe(nano(0n))
})
