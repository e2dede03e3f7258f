import { describe, expect, test } from 'bun:test'
import { formatDollars, nano, parseDollars, type Nano } from '../../src/base/money.ts'
import { readConfigFile } from '../../src/config/file.ts'
import { gatewayForTests, until } from '../support/gateway.ts'
import { jsonPost, sendRaw, type RawAnswer } from '../support/raw-socket.ts'
import { attemptsOf, booked, lastRequestOf, recordOf } from '../support/records.ts'
import { contentOf, payloads, says } from '../support/streams.ts'

/** `flat` costs a cent a request and nothing else; `dear` has prices a reload can change; `thinker` shows its reasoning. */
const models = (perToken = '10') => `
# Five hundred that are booked at once may keep a busy machine from connecting for seconds.
timeouts: { connectSeconds: 30 }
models:
  - id: flat
    capability: chat
    vendor: openai
    prices: { inputPerMillion: "0", outputPerMillion: "0", perRequest: "0.01" }
  - id: dear
    capability: chat
    vendor: openai
    outputTokensMax: 4000
    prices: { inputPerMillion: "1", outputPerMillion: "${perToken}" }
  - id: thinker
    capability: chat
    vendor: deepseek
    reasoning: true
    prices: { inputPerMillion: "1", outputPerMillion: "10" }
`

/** The least that was ever free to spend, looked at again and again until the signal; 0 where it never fell below. */
async function lowestSeen(account: () => Promise<{ posted: Nano; held: Nano }>, signal: AbortSignal): Promise<bigint> {
  let lowest = 0n
  while (!signal.aborted) {
    const { posted, held } = await account()
    if (posted - held < lowest) lowest = posted - held
    // SQLite answers without waiting: without a turn of the loop nothing else would run.
    await new Promise((resolve) => setImmediate(resolve))
  }
  return lowest
}

/** What `dear` costs at the most: a token for every byte of the body, and every choice as long as it may be. */
function mostFor(body: Record<string, unknown>): bigint {
  const { n = 1, max_tokens: cap = 4_000 } = body as { n?: number; max_tokens?: number }
  return BigInt(JSON.stringify(body).length) * 1_000n + BigInt(n * cap) * 10_000n
}

const dear = (words: string, more: Record<string, unknown> = {}) => says(words, { model: 'dear', ...more })

describe.each([
  ['SQLite', 'sqlite', 'leased'],
  ['SQLite, booked at once', 'sqlite', 'strict'],
  ['PostgreSQL', 'postgres', 'leased'],
  ['PostgreSQL, booked at once', 'postgres', 'strict'],
] as const)('money on %s', (_name, engine, mode) => {
  const gateway = gatewayForTests({ engine, mode, yaml: models() })

  const chat = (body: unknown, key = gateway.key) =>
    gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` })
  const billedFor = async (response: Response) => {
    const ids = new Set((await attemptsOf(gateway, response)).map(({ id }) => id))
    return (await gateway.bill()).filter(({ ref }) => ids.has(ref))
  }

  async function repriced<T>(perToken: string, work: () => Promise<T>): Promise<T> {
    gateway.reload(() => readConfigFile('test.yaml', models(perToken), {}))
    try {
      return await work()
    } finally {
      gateway.reload(() => readConfigFile('test.yaml', models(), {}))
    }
  }

  // Each step is a transaction on the same row: on a database server, 500 of them would wait for each other too long.
  const atOnce = engine === 'postgres' && mode === 'strict' ? 50 : 500

  /** An account of its own, so that every charge on it belongs to this test. */
  async function customer(dollars = '10') {
    const account = await gateway.account({ dollars })
    const charged = async () => nano((parseDollars(dollars) ?? 0n) - (await gateway.balance(account.id)).posted)
    return { ...account, charged }
  }

  describe('a balance that is spent to its end', () => {
    test('a balance pays for exactly the hundred of five hundred concurrent requests that it can', async () => {
      const { id, key } = await customer('1')
      const before = (await gateway.bill()).length
      const request = jsonPost({ url: gateway.url, key }, says('Hi', { model: 'flat' }))
      const account = () =>
        gateway.store.db.selectFrom('account').select(['posted', 'held']).where('id', '=', id).executeTakeFirstOrThrow()
      let overloads = 0
      const watch = new AbortController()
      const lowest = lowestSeen(account, watch.signal)
      // Raw sockets: clients and gateway share one process, and its `fetch` makes 256 requests at once.
      const answers: RawAnswer[] = []
      let unanswered = 500
      while (unanswered > 0) {
        const size = Math.min(atOnce, unanswered)
        const turn = Array.from({ length: size }, () => sendRaw(gateway.url, request, { quietMs: 30_000 }))
        // A database that is too slow is a 503 that took nothing: the request is sent again.
        const final = (await Promise.all(turn)).filter(({ status }) => status !== 503)
        answers.push(...final)
        unanswered -= final.length
        overloads += size - final.length
      }
      watch.abort()
      const count = (status: number) => answers.filter((answer) => answer.status === status).length
      expect({ paid: count(200), refused: count(402) }).toEqual({ paid: 100, refused: 400 })
      const vendorCalls = (await gateway.bill()).length - before
      expect(vendorCalls).toBeWithin(100, 101 + overloads)
      await until(async () => (await gateway.balance(id)).held === 0n)
      expect((await gateway.balance(id)).posted).toBe(nano(0n))
      expect(await lowest).toBe(0n)
    }, 600_000)

    test('the unused part of a hold is available to the next request', async () => {
      const { key, id } = await customer('0.05')
      // Each may cost up to four cents and costs a fraction of one.
      for (let turn = 0; turn < 5; turn++) expect((await chat(dear('Hi'), key)).status).toBe(200)
      expect((await gateway.balance(id)).posted).toBeGreaterThan(0n)
    })
  })

  describe('the charge for what was used', () => {
    test.each<{ name: string; more?: Record<string, unknown>; words?: string }>([
      { name: 'an answer' },
      { name: 'a stream', more: { stream: true } },
      { name: 'eight choices', more: { n: 8 } },
      { name: 'eight streamed choices', more: { n: 8, stream: true } },
      { name: 'eight choices at their cap', more: { n: 8, max_tokens: 40 }, words: 'sandbox:tokens=40' },
      { name: 'an answer of a dated model', words: 'sandbox:dated' },
      { name: 'a stream with usage in its last content chunk', more: { stream: true }, words: 'sandbox:inline-usage' },
    ])('the charge for $name is what the vendor bills', async ({ more, words = '' }) => {
      const { key, charged } = await customer()
      const response = await chat(dear(`Hello there. ${words}`, more), key)
      await response.text()
      const record = await recordOf(gateway, response)
      const [line] = await billedFor(response)
      expect(record.basis).toBe('vendor')
      expect(formatDollars(record.cost)).toBe(line?.cost ?? '')
      expect(await charged()).toBe(record.cost)
      expect(record.usage).toMatchObject({ input: line?.units['input'] ?? -1, output: line?.units['output'] ?? -1 })
    })

    test('an answer costs nothing when the vendor reports zero usage', async () => {
      const { key, charged } = await customer()
      for (const stream of [false, true]) {
        const response = await chat(dear('Hi sandbox:zero', { stream }), key)
        await response.text()
        expect(await recordOf(gateway, response)).toMatchObject({ status: 200, cost: 0n, basis: 'vendor' })
      }
      expect(await charged()).toBe(nano(0n))
    })

    test('each of a hundred requests with the same request id is charged', async () => {
      const { key, charged } = await customer('2')
      const headers = { authorization: `Bearer ${key}`, 'x-request-id': 'again', 'x-client-request-id': 'again' }
      const send = () => gateway.post('/v1/chat/completions', says('Hi', { model: 'flat' }), headers)
      const answers: Response[] = []
      while (answers.length < 100) answers.push(...(await Promise.all(Array.from({ length: 20 }, send))))
      expect(new Set(answers.map((answer) => answer.headers.get('x-request-id'))).size).toBe(100)
      // On a busy machine a strict database may be too slow for some: those are told so, and pay nothing.
      const paid = answers.filter(({ status }) => status === 200).length
      if (mode === 'leased') expect(paid).toBe(100)
      expect(paid).toBeGreaterThan(1)
      expect(await charged()).toBe(nano(10_000_000n * BigInt(paid)))
    })

    test('a request is charged at the price that stood when it was made', async () => {
      const { key } = await customer()
      const response = await chat(dear('A long story. sandbox:tokens=30 sandbox:pace=5', { stream: true }), key)
      const { first, later } = await repriced('1000', async () => {
        expect(gateway.openHolds()).toBe(1)
        await response.text()
        const next = await chat(dear('A long story. sandbox:tokens=30'), key)
        return { first: await recordOf(gateway, response), later: await recordOf(gateway, next) }
      })
      expect(first.usage).toMatchObject({ output: 30 })
      // 30 tokens at ten micro-dollars, and an input of a few dozen at one.
      expect(Number(first.cost)).toBeWithin(300_000, 400_000)
      expect(later.cost).toBeGreaterThan(nano(30_000_000n))
    })
  })

  describe('a request that failed', () => {
    test.each([
      ['a server error', 'sandbox:status=500', 502],
      ['an overload', 'sandbox:status=503', 502],
      ['an HTML page', 'sandbox:html', 502],
      ['an error with status 200', 'sandbox:error200', 502],
      ['a refusal', 'sandbox:fail=content_policy_violation', 400],
      ['a request that is too large for its vendor', 'sandbox:status=413', 413],
      ['a connection that dies', 'sandbox:cut=0', 502],
      ['an answer that the vendor charged and did not send', 'sandbox:charge-then-fail=500', 502],
    ])('the customer pays nothing for %s', async (_name, words, status) => {
      const { key, charged } = await customer()
      for (const stream of [false, true]) {
        const response = await chat(dear(`Hi ${words}`, { stream }), key)
        const text = await response.text()
        // A stream may have sent its empty opening by the time the connection dies.
        if (response.status === 200) expect(text).toContain('"error"')
        else expect([response.status, response.headers.get('x-turnpike-cost')]).toEqual([status, '0'])
        expect(await recordOf(gateway, response)).toMatchObject({ status, cost: 0n, basis: 'policy_zero' })
      }
      expect(await charged()).toBe(nano(0n))
    })

    test.each(['messages', 'responses', 'embeddings', 'images/generations', 'audio/speech', 'videos/generations'])(
      'a 400 of %s says that it costs nothing',
      async (path) => {
        const response = await gateway.post(`/v1/${path}`, {})
        expect([response.status, response.headers.get('x-turnpike-cost')]).toEqual([400, '0'])
      },
    )

    test('a link that cannot be fetched is a 400 and costs nothing', async () => {
      const { key, charged } = await customer()
      const image = { type: 'image_url', image_url: { url: 'https://10.0.0.1/fox.png' } }
      const body = { model: 'gemini-2.5-flash', messages: [{ role: 'user', content: [image] }] }
      const response = await chat(body, key)
      expect(response.status).toBe(400)
      expect(await recordOf(gateway, response)).toMatchObject({ status: 400, cost: 0n, basis: 'policy_zero' })
      expect(await charged()).toBe(nano(0n))
    })

    test("a vendor's charge for a failed call is on its bill under our attempt, and not the customer's", async () => {
      const { key } = await customer()
      const response = await chat(dear('Hi sandbox:charge-then-fail=500'), key)
      const lines = await billedFor(response)
      expect(lines).toHaveLength(1)
      expect(Number(lines[0]?.cost)).toBeGreaterThan(0)
      expect(await recordOf(gateway, response)).toMatchObject({ cost: 0n })
    })
  })

  describe('an answer without usage', () => {
    test.each([
      ['a stream cut off by a broken connection', 'sandbox:cut=20', true],
      ['a stream that ends without a finish reason', 'sandbox:eof=20', true],
      ['a stream that ends with an error', 'sandbox:midstream-error', true],
      ['a stream whose vendor reports no usage', 'sandbox:nousage', true],
      ['an answer whose vendor reports no usage', 'sandbox:nousage', false],
      ['a cut-off stream with logprobs', 'sandbox:cut=20', true, { logprobs: true }],
    ] as const)(
      "%s is estimated: more than nothing, no more than the hold, and near the vendor's bill",
      async (...row) => {
        const [, words, stream, more = {}] = row
        const { key, charged } = await customer()
        const body = dear(`Tell me something. sandbox:tokens=200 ${words}`, { stream, ...more })
        const response = await chat(body, key)
        await response.text()
        const record = await recordOf(gateway, response)
        expect(record.basis).toBe('estimated')
        expect(record.cost).toBeGreaterThan(0n)
        expect(record.cost).toBeLessThanOrEqual(mostFor(body))
        expect(await charged()).toBe(record.cost)
        const [line] = await billedFor(response)
        const ratio = Number(formatDollars(record.cost)) / Number(line?.cost)
        expect(ratio).toBeWithin(0.5, 2)
      },
    )

    test('a stream that is cut after shown reasoning alone is charged by an estimate', async () => {
      const { key } = await customer()
      const response = await chat(says('Think. sandbox:cut=10', { model: 'thinker', stream: true }), key)
      await response.text()
      const record = await recordOf(gateway, response)
      expect(record.basis).toBe('estimated')
      expect(record.cost).toBeGreaterThan(0n)
    })
  })

  describe('an implausible usage count', () => {
    test('usage beyond the hold costs the customer the hold, and the rest is our loss', async () => {
      const { key, charged, id } = await customer('0.05')
      const before = await booked(gateway, 'platform:loss')
      const body = dear('Hi sandbox:usage=1100', { max_tokens: 1000 })
      const response = await chat(body, key)
      expect(response.status).toBe(200)
      const record = await recordOf(gateway, response)
      expect(record.cost).toBe(nano(mostFor(body)))
      expect(await charged()).toBe(record.cost)
      // A hundred tokens too many at ten micro-dollars, less what the input was overestimated by.
      const loss = before - (await booked(gateway, 'platform:loss'))
      expect(Number(loss)).toBeWithin(800_000, 1_000_001)
      expect((await gateway.balance(id)).posted).toBeGreaterThanOrEqual(0n)
      expect(gateway.logged.join('')).toContain('usage exceeds the hold')
    })

    test.each(['sandbox:usage=-5', 'sandbox:usage=1000000000'])('%s is charged within the hold', async (words) => {
      const { key, id } = await customer('0.05')
      const suspense = await booked(gateway, 'suspense')
      for (const stream of [false, true]) {
        const body = dear(`Hi ${words}`, { stream, max_tokens: 1000 })
        const response = await chat(body, key)
        expect(response.status).toBe(200)
        await response.text()
        const record = await recordOf(gateway, response)
        expect(record.cost).toBeGreaterThan(0n)
        expect(record.cost).toBeLessThanOrEqual(mostFor(body))
      }
      // Usage that no model can have made is booked to suspense until it is explained, apart from known losses.
      const waiting = suspense - (await booked(gateway, 'suspense'))
      expect(waiting > 0n).toBe(words.endsWith('000'))
      expect((await gateway.balance(id)).posted).toBeGreaterThanOrEqual(0n)
    })
  })

  async function leaveAfter(chunks: number, words: string, key: string): Promise<void> {
    const abort = new AbortController()
    const before = (await gateway.calls()).length
    const asked = fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(dear(words, { stream: true })),
      signal: abort.signal,
    })
    if (chunks === 0) {
      await until(async () => (await gateway.calls()).length > before)
    } else {
      const reader = (await asked).body?.getReader()
      for (let read = 0; read < chunks; read++) await reader?.read()
    }
    abort.abort()
    await asked.then(
      (response) => response.text().catch(() => ''),
      () => '',
    )
  }

  describe('a client that leaves', () => {
    test('a client that leaves in the middle pays for what was delivered, not for the hold', async () => {
      const { key, id, charged } = await customer()
      await leaveAfter(5, 'A long story. sandbox:endless sandbox:pace=3', key)
      await until(async () => (await lastRequestOf(gateway, id)) !== undefined)
      const record = await lastRequestOf(gateway, id)
      expect(record).toMatchObject({ status: 499, basis: 'estimated' })
      expect(await charged()).toBe(record?.cost ?? nano(-1n))
      expect(record?.cost).toBeGreaterThan(0n)
      expect(record?.cost).toBeLessThan(mostFor({}) / 4n)
    })

    test('a client that leaves before the first byte pays nothing', async () => {
      const { key, id, charged } = await customer()
      await leaveAfter(0, 'Hello. sandbox:delay=60000', key)
      await until(async () => (await lastRequestOf(gateway, id)) !== undefined)
      expect(await lastRequestOf(gateway, id)).toMatchObject({ status: 499, cost: 0n, basis: 'policy_zero' })
      expect(await charged()).toBe(nano(0n))
      expect((await gateway.bill()).at(-1)).toMatchObject({ status: 499, cost: '0' })
    })

    test('clients that leave at any moment leave no hold open and pay what is on record', async () => {
      const { key, id } = await customer()
      await Promise.all(
        Array.from({ length: 24 }, (_, index) => leaveAfter((index % 6) + 1, 'Hello. sandbox:pace=1', key)),
      )
      await until(() => gateway.openHolds() === 0)
      const { posted, held } = await gateway.balance(id)
      expect(held).toBe(nano(0n))
      const records = await gateway.store.db.selectFrom('request').select('cost').where('account_id', '=', id).execute()
      expect(records).toHaveLength(24)
      expect(posted).toBe(nano(10_000_000_000n - records.reduce((sum, { cost }) => sum + cost, 0n)))
    })
  })

  test('the settlement is recorded by the time the client sees the end of a stream', async () => {
    const { key } = await customer()
    const response = await chat(dear('Hello.', { stream: true }), key)
    let text = ''
    for await (const bytes of response.body ?? []) {
      text += Buffer.from(bytes).toString()
      // No waiting: by the time the last event was sent, the settlement had been recorded.
      if (text.includes('[DONE]')) expect(await recordOf(gateway, response)).toMatchObject({ basis: 'vendor' })
    }
    expect(contentOf(payloads(text))).toContain('Hello.')
  })
})
