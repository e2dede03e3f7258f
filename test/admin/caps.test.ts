import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { movableClock } from '../support/movable-clock.ts'
import { operatorOf, jsonClient, type JsonClient, type Told } from '../support/operator.ts'
import { coldStartMs } from '../support/postgres.ts'
import { says } from '../support/streams.ts'

const day = 86_400_000

/** `flat` costs a cent a request and nothing else. */
const yaml = `
models:
  - id: flat
    capability: chat
    vendor: openai
    prices: { inputPerMillion: "0", outputPerMillion: "0", perRequest: "0.01" }
`

type Cap = { of: string; amount: string; period: string; spent: string; remaining: string; resets_at: number | null }
type Balance = { balance: string; held: string; available: string; currency: string; caps: Cap[] }

const messageOf = ({ body }: Told) => (body['error'] as { message: string }).message

describe.each([
  ['SQLite, leased', 'sqlite', 'leased'],
  ['PostgreSQL, booked at once', 'postgres', 'strict'],
] as const)('spending caps on %s', (_name, engine, mode) => {
  const clock = movableClock()
  let gateway: TestGateway
  let operator: JsonClient

  beforeAll(async () => {
    gateway = await startTestGateway({ engine, mode, clock, yaml })
    operator = operatorOf(gateway)
  }, coldStartMs)
  afterAll(async () => {
    await gateway.assertBooks()
    await gateway.close()
  })

  const buy = (key: string) =>
    jsonClient(gateway.url, key).call('POST', '/v1/chat/completions', says('Hi', { model: 'flat' }))
  const balanceOf = (key: string) => jsonClient(gateway.url, key).get<Balance>('/v1/balance')

  /** Noon of a day in the middle of a month: a test of one period must not meet the end of another. */
  function toNoon(): void {
    const now = new Date(clock.now())
    const noon = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 10, 12)
    clock.advance(noon - clock.now())
  }

  test('a key at its daily cap gets a 402 that names the cap until the next day, and another key goes on', async () => {
    toNoon()
    const { id, key: plain } = await gateway.account({ dollars: '5' })
    const cap = { amount: '0.03', period: 'day' }
    const { key } = await operator.post<{ key: string }>('/admin/keys', { account: id, cap })
    for (let i = 0; i < 3; i++) expect((await buy(key)).status).toBe(200)
    const refused = await buy(key)
    expect(refused.status).toBe(402)
    expect(refused.headers.get('x-should-retry')).toBe('false')
    expect(messageOf(refused)).toStartWith('The spending cap of this key (day) is used up')
    expect((await buy(plain)).status).toBe(200)

    const midnight = Math.ceil(clock.now() / day) * day
    expect(await balanceOf(key)).toEqual({
      balance: '4.96',
      held: '0',
      available: '4.96',
      currency: 'USD',
      unlimited: false,
      caps: [{ of: 'key', ...cap, spent: '0.03', remaining: '0', resets_at: midnight / 1000 }],
    } as never)
    expect((await balanceOf(plain)).caps).toEqual([])
    // The day is over: the key may spend again, and only that much.
    clock.advance(midnight - clock.now() + 1_000)
    for (let i = 0; i < 3; i++) expect((await buy(key)).status).toBe(200)
    expect((await buy(key)).status).toBe(402)
  })

  test('a request that needs more than is left under a cap is told how much is left', async () => {
    const { id } = await gateway.account({ dollars: '5' })
    const cap = { amount: '0.015', period: 'total' }
    const { key } = await operator.post<{ key: string }>('/admin/keys', { account: id, cap })
    expect((await buy(key)).status).toBe(200)
    const refused = await buy(key)
    expect(refused.status).toBe(402)
    expect(messageOf(refused)).toStartWith(
      'The spending cap of this key (total) leaves too little: this request needs up to $0.01 and $0.005 is available.',
    )
  })

  test('the monthly cap of an account binds all its keys together, whatever their own caps', async () => {
    toNoon()
    const { id, key } = await gateway.account({ dollars: '5' })
    const own = { amount: '0.1', period: 'total' }
    const { key: second } = await operator.post<{ key: string }>('/admin/keys', { account: id, cap: own })
    await operator.patch(`/admin/accounts/${id}`, { cap: { amount: '0.04', period: 'month' } })
    await until(async () => (await balanceOf(key)).caps.length === 1)
    expect([await buy(key), await buy(second), await buy(key), await buy(second)].map(({ status }) => status)).toEqual([
      200, 200, 200, 200,
    ])
    for (const each of [key, second]) {
      const refused = await buy(each)
      expect(refused.status).toBe(402)
      expect(messageOf(refused)).toStartWith('The spending cap of this account (month) is used up')
    }
    expect((await balanceOf(second)).caps).toMatchObject([
      { of: 'key', period: 'total', spent: '0.02', remaining: '0.08', resets_at: null },
      { of: 'account', period: 'month', spent: '0.04', remaining: '0' },
    ])
    // Another day of the same month changes nothing; the next month does.
    clock.advance(5 * day)
    expect((await buy(key)).status).toBe(402)
    const { resets_at: end } = (await balanceOf(key)).caps[0] as Cap
    clock.advance((end ?? 0) * 1000 - clock.now() + 1_000)
    expect((await buy(key)).status).toBe(200)
    expect(new Date(clock.now()).getUTCDate()).toBe(1)
  })

  test('what a cancelled video held can be spent again at once', async () => {
    toNoon()
    const { id } = await gateway.account({ dollars: '5' })
    const cap = { amount: '0.5', period: 'total' }
    const { key } = await operator.post<{ key: string }>('/admin/keys', { account: id, cap })
    const customer = jsonClient(gateway.url, key)
    const path = '/v1/videos/generations'
    const video = { model: 'wan2.6-t2v', duration: 5, input: { prompt: 'Waves sandbox:queued=600000' } }
    const { body } = await customer.call('POST', path, video)
    expect((await buy(key)).status).toBe(402)
    expect((await customer.call('DELETE', `${path}/${String(body['id'])}`)).status).toBe(200)
    expect((await buy(key)).status).toBe(200)
  })

  test('what running requests and videos hold does not count as remaining', async () => {
    toNoon()
    const { id } = await gateway.account({ dollars: '5' })
    const cap = { amount: '4', period: 'day' }
    const { key } = await operator.post<{ key: string }>('/admin/keys', { account: id, cap })
    const capOf = async () => (await balanceOf(key)).caps[0] as Cap
    const running = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(says('sandbox:endless sandbox:pace=20', { model: 'flat', stream: true })),
    })
    const reader = (running.body as ReadableStream<Uint8Array>).getReader()
    // A client that leaves before the first text pays nothing.
    for (let read = ''; !/"content":"[^"]/.test(read);)
      read += Buffer.from((await reader.read()).value ?? []).toString()
    expect(await capOf()).toMatchObject({ spent: '0', remaining: '3.99' })
    await reader.cancel()
    await until(async () => {
      const { spent, remaining } = await capOf()
      return spent === '0.01' && remaining === '3.99'
    })

    const video = { model: 'wan2.6-t2v', duration: 5, input: { prompt: 'Waves sandbox:queued=600000' } }
    const path = '/v1/videos/generations'
    const { body } = await jsonClient(gateway.url, key).call('POST', path, video)
    const { held } = await balanceOf(key)
    expect(Number(held)).toBeGreaterThan(0)
    expect(Number((await capOf()).remaining)).toBeCloseTo(3.99 - Number(held), 9)
    const cancelled = await jsonClient(gateway.url, key).call('DELETE', `${path}/${String(body['id'])}`)
    expect(cancelled.status).toBe(200)
    await until(async () => (await capOf()).remaining === '3.99')
  })

  test('a total cap does not reset with time, but the operator can raise or remove it', async () => {
    const { id } = await gateway.account({ dollars: '5' })
    const made = await operator.post<{ key: string; id: string }>('/admin/keys', {
      account: id,
      cap: { amount: '0.02', period: 'total' },
    })
    expect([(await buy(made.key)).status, (await buy(made.key)).status, (await buy(made.key)).status]).toEqual([
      200, 200, 402,
    ])
    clock.advance(40 * day)
    expect((await buy(made.key)).status).toBe(402)
    await operator.patch(`/admin/keys/${made.id}`, { cap: { amount: '0.03', period: 'total' } })
    await until(async () => (await buy(made.key)).status === 200)
    expect((await buy(made.key)).status).toBe(402)
    const lowered = { amount: '0.01', period: 'total' }
    await operator.patch(`/admin/keys/${made.id}`, { cap: lowered })
    const capOf = async () => (await balanceOf(made.key)).caps[0]
    await until(async () => (await capOf())?.amount === lowered.amount)
    // More was spent than is allowed by now, and nothing is left, rather than less than nothing.
    expect(await capOf()).toMatchObject({ ...lowered, spent: '0.03', remaining: '0' })
    await operator.patch(`/admin/keys/${made.id}`, { cap: null })
    await until(async () => (await buy(made.key)).status === 200)
  })

  test('a cap of zero refuses everything, and concurrent requests do not exceed a cap', async () => {
    const { id } = await gateway.account({ dollars: '5' })
    const none = await operator.post<{ key: string }>('/admin/keys', {
      account: id,
      cap: { amount: '0', period: 'day' },
    })
    expect((await buy(none.key)).status).toBe(402)
    const few = await operator.post<{ key: string }>('/admin/keys', {
      account: id,
      cap: { amount: '0.05', period: 'day' },
    })
    const told = await Promise.all(Array.from({ length: 20 }, () => buy(few.key)))
    expect(told.filter(({ status }) => status === 200)).toHaveLength(5)
    expect((await operator.get<{ balance: string }>(`/admin/accounts/${id}`)).balance).toBe('4.95')
  })
})
