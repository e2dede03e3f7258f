import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { changeAccount } from '../../src/store/accounts.ts'
import { changeKey, revokeKey } from '../../src/store/keys.ts'
import { dumpAll } from '../support/dump.ts'
import { gatewayForTests, startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { movableClock } from '../support/movable-clock.ts'
import { sharedPostgres } from '../support/postgres.ts'
import { lines, sendRaw } from '../support/raw-socket.ts'
import { refusedForFree } from '../support/refused.ts'
import { says } from '../support/streams.ts'

const clock = movableClock()

const gateway = gatewayForTests({
  clock,
  yaml: 'trustedProxies: ["127.0.0.1", "192.0.2.0/24"]\nlimits: { authFailuresPerMinute: 50 }',
})

const list = (key: string, headers: Record<string, string> = {}) =>
  fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}`, ...headers } })

// A-01; for what the database sees of them, A-03 in `key-lookup.test.ts`.
describe('an invalid key', () => {
  const canary = 'sk-canary0123456789canary0123456789canary'
  const quotes = "'".repeat(8 * 1024)

  test.each([
    { name: 'a request without a key', headers: {} },
    { name: 'a key under another scheme', headers: { authorization: `Basic ${canary}` } },
    { name: 'a scheme without a key', headers: { authorization: 'Bearer' } },
    { name: 'a key after two spaces', headers: { authorization: `Bearer  ${canary}` } },
    { name: 'a header with two keys', headers: { authorization: `Bearer ${canary}, Bearer ${canary}` } },
    { name: 'a key followed by other words', headers: { authorization: `Bearer ${canary} and more` } },
    { name: 'an unknown key', headers: { authorization: `Bearer ${canary}` } },
    { name: 'a key in another header', headers: { 'x-api-key': canary } },
    { name: 'an SQL injection without spaces', headers: { authorization: "Bearer '/**/OR/**/'1'='1" } },
    { name: 'an SQL injection', headers: { authorization: "Bearer ' OR '1'='1" } },
    { name: 'a key of eight kilobytes of quotes', headers: { authorization: `Bearer ${quotes}` } },
  ])('$name is refused with the same 401 as any other', async ({ headers }) => {
    const answers = await refusedForFree(gateway, async () => [
      await fetch(`${gateway.url}/v1/models?api_key=${gateway.key}`, { headers }),
      await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(says('Hello!')),
      }),
    ])
    for (const answer of answers) {
      expect(answer.status).toBe(401)
      expect(answer.headers.get('www-authenticate')).toStartWith('Bearer')
      expect(answer.headers.get('x-should-retry')).toBe('false')
      const body = await answer.text()
      expect(body).not.toContain('canary')
      expect(JSON.parse(body)).toEqual({
        error: {
          message:
            'Incorrect API key provided, or an expired or revoked one, or none. Send a valid key as "Authorization: Bearer sk-…".',
          type: 'invalid_request_error',
          param: null,
          code: 'invalid_api_key',
        },
      })
    }
    expect(gateway.logged.join('')).not.toContain('canary')
  })

  test.each<{ name: string; headersWith: (key: string) => Record<string, string> }>([
    { name: 'under another scheme', headersWith: (key) => ({ authorization: `Basic ${key}` }) },
    { name: 'without a scheme', headersWith: (key) => ({ authorization: key }) },
    { name: 'after two spaces', headersWith: (key) => ({ authorization: `Bearer  ${key}` }) },
    { name: 'after other words', headersWith: (key) => ({ authorization: `Token x, Bearer ${key}` }) },
    { name: 'before other words', headersWith: (key) => ({ authorization: `Bearer ${key} and more` }) },
    { name: 'beside a bad one', headersWith: (key) => ({ authorization: 'Bearer sk-x', 'x-api-key': key }) },
    { name: 'beside an empty one', headersWith: (key) => ({ authorization: 'Bearer', 'x-api-key': key }) },
  ])('a good key $name is refused like a bad one', async ({ headersWith }) => {
    const headers = {
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
      ...headersWith(gateway.key),
    }
    const post = (path: string, body: object) =>
      fetch(`${gateway.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    const answers = await refusedForFree(gateway, () =>
      Promise.all([
        fetch(`${gateway.url}/v1/models`, { headers }),
        post('/v1/chat/completions', says('Hello!')),
        post('/v1/messages', { ...says('Hello!'), max_tokens: 9 }),
        post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      ]),
    )
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 401])
  })

  test('two Authorization headers are refused, even if one of them is good', async () => {
    const host = new URL(gateway.url).host
    const good = `Authorization: Bearer ${gateway.key}`
    const bad = 'Authorization: Bearer sk-x'
    for (const pair of [
      [good, bad],
      [bad, good],
      [good, good],
    ]) {
      const answer = await sendRaw(gateway.url, lines('GET /v1/models HTTP/1.1', `Host: ${host}`, ...pair))
      expect(answer.status).toBe(401)
      expect(answer.text).toContain('"code":"invalid_api_key"')
      expect(answer.text).not.toContain(gateway.key)
    }
  })

  //
  test('two keys with a common prefix each see only their own models', async () => {
    const alike = `sk-${'a'.repeat(60)}`
    const { key } = await gateway.account({ models: ['gpt-4o-mini'], key: `${alike}1` })
    const { key: other } = await gateway.account({ models: ['gpt-4o'], key: `${alike}2` })
    const seenBy = async (held: string) => ((await (await list(held)).json()) as { data: { id: string }[] }).data
    expect((await seenBy(key)).map(({ id }) => id)).toEqual(['gpt-4o-mini'])
    expect((await seenBy(other)).map(({ id }) => id)).toEqual(['gpt-4o'])
    for (const cut of [1, 4, 8]) {
      const similar = key.slice(0, -cut) + 'x'.repeat(cut)
      expect((await list(similar === key ? `${key}x` : similar)).status).toBe(401)
    }
    expect((await list(key.toUpperCase())).status).toBe(401)
    expect((await list(`${key}=`)).status).toBe(401)
  })
})

const statusAt = async (node: TestGateway, key: string) =>
  (await fetch(`${node.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status

// A-02; with the database away for a minute: `src/keys/key-ring.test.ts`.
describe('a key that is no longer valid', () => {
  test('a key is refused after its expiry', async () => {
    const { key } = await gateway.account({ expiresAt: clock.now() + 60_000 })
    expect((await list(key)).status).toBe(200)
    clock.advance(60_001)
    expect((await refusedForFree(gateway, () => list(key))).status).toBe(401)
  })

  test.each([
    {
      name: 'revoked',
      end: (keyId: string) => revokeKey(gateway.store, { id: keyId, actor: 'test' }),
    },
    {
      name: 'disabled',
      end: (keyId: string) => changeKey(gateway.store, { id: keyId, actor: 'test', enabled: false }),
    },
  ])('a key is refused soon after it was $name', async ({ end }) => {
    const { key, keyId } = await gateway.account()
    expect((await list(key)).status).toBe(200)
    await end(keyId)
    await until(async () => (await list(key)).status === 401)
  })

  test('a key of a disabled account cannot spend, even before the change has spread', async () => {
    const { key, id } = await gateway.account()
    expect((await list(key)).status).toBe(200)
    await changeAccount(gateway.store, { id, actor: 'test', enabled: false })
    const answer = await refusedForFree(gateway, () =>
      gateway.post('/v1/chat/completions', says('Hello!'), { authorization: `Bearer ${key}` }),
    )
    expect(answer.status).toBe(401)
    await until(async () => (await list(key)).status === 401)
  })

  test('a revoked key is refused on every node within seconds', async () => {
    const postgres = await sharedPostgres()
    const databaseUrl = await postgres.freshDatabase()
    const nodes = await Promise.all(Array.from({ length: 3 }, () => startTestGateway({ databaseUrl })))
    try {
      const [one] = nodes
      if (one === undefined) throw new Error('no node')
      // Twice: the first change that a node sees would be noticed in any case.
      for (const _ of ['first', 'second']) {
        const { key, keyId } = await one.account()
        const seen = () => Promise.all(nodes.map((node) => statusAt(node, key)))
        expect(await seen()).toEqual([200, 200, 200])
        await revokeKey(one.store, { id: keyId, actor: 'test' })
        const revokedAt = performance.now()
        // Each of them looks for changes once a second, and trusts its cache for a minute. Five seconds are promised,
        // which a busy machine may take for its answers alone.
        await until(async () => (await seen()).every((status) => status === 401))
        expect(performance.now() - revokedAt).toBeLessThan(30_000)
      }
    } finally {
      for (const node of nodes) await node.close()
      await postgres.dropDatabase(databaseUrl)
    }
  }, 120_000)
})

const from = (address: string) => ({ 'x-forwarded-for': `8.8.8.8, ${address}` })

const behind = (address: string, claimed: string) => ({
  'x-forwarded-for': `${claimed}, ${address}, 192.0.2.10, 192.0.2.11`,
})

const guess = (index: number) => `sk-${createHash('sha256').update(String(index)).digest('hex')}`

// A-09; the full ten thousand: `key-lookup.test.ts`.
describe('guessing keys', () => {
  test('too many wrong keys from one address are a 429, and a good key still works there', async () => {
    const attacker = from('203.0.113.7')
    const first = await Promise.all(Array.from({ length: 50 }, (_, index) => list(guess(index), attacker)))
    expect(new Set(first.map(({ status }) => status))).toEqual(new Set([401]))
    const next = await list(guess(1_000), attacker)
    expect(next.status).toBe(429)
    expect(Number(next.headers.get('retry-after'))).toBeWithin(1, 61)
    const later = await Promise.all(Array.from({ length: 200 }, (_, index) => list(guess(2_000 + index), attacker)))
    expect(new Set(later.map(({ status }) => status))).toEqual(new Set([429]))

    const { key } = await gateway.account()
    expect((await list(key, attacker)).status).toBe(200)
    expect((await list(guess(3_000), from('203.0.113.8'))).status).toBe(401)
    // The next minute allows as many guesses, and no more.
    clock.advance(61_000)
    const again = await Promise.all(Array.from({ length: 50 }, (_, index) => list(guess(4_000 + index), attacker)))
    expect(new Set(again.map(({ status }) => status))).toEqual(new Set([401]))
    expect((await list(guess(4_100), attacker)).status).toBe(429)
  })

  test('an address in front of the trusted proxy’s own entry is not believed', async () => {
    for (let index = 0; index < 51; index++) {
      await list(guess(5_000 + index), { 'x-forwarded-for': `198.51.100.${index}, 203.0.113.99` })
    }
    expect((await list(guess(6_000), { 'x-forwarded-for': '198.51.100.200, 203.0.113.99' })).status).toBe(429)
  })

  test('a client behind several trusted proxies is counted by its own address, not by a forged one', async () => {
    for (let index = 0; index < 51; index++) {
      await list(guess(9_000 + index), behind('203.0.113.120', `192.0.2.${index}`))
    }
    expect((await list(guess(9_100), behind('203.0.113.120', '203.0.113.121'))).status).toBe(429)
    expect((await list(guess(9_101), behind('203.0.113.121', '203.0.113.120'))).status).toBe(401)
  })

  test('the operator’s own machine is not locked out', async () => {
    for (let index = 0; index < 60; index++) await list(guess(7_000 + index))
    expect((await list(guess(8_000))).status).toBe(401)
  })
})

//
describe('a stolen database', () => {
  test.each(['sqlite', 'postgres'] as const)(
    'the database contains no key, not even encoded or hashed, on %s',
    async (engine) => {
      const node = await startTestGateway({ engine })
      try {
        const { key } = await node.account()
        await node.post('/v1/chat/completions', says('Hello!'), { authorization: `Bearer ${key}` })
        await node.assertBooks()
        const dump = await dumpAll(node)
        for (const secret of [key, node.key]) {
          for (const form of [
            secret,
            secret.slice(3),
            Buffer.from(secret).toString('base64').slice(0, 40),
            Buffer.from(secret).toString('hex'),
            createHash('sha256').update(secret).digest('hex'),
            createHash('sha256').update(secret).digest('base64'),
          ]) {
            expect(dump).not.toContain(form)
          }
          expect(dump).toContain(secret.slice(-4))
        }
      } finally {
        await node.close()
      }
    },
    120_000,
  )
})

// A-11; every path of the operator's: `scopes.test.ts`, `test/admin/access.test.ts`.
test("the public port has none of the operator's paths", async () => {
  for (const path of ['/admin/keys', '/admin/accounts', '/admin', '/__bill', '/__calls']) {
    const answer = await fetch(gateway.url + path, { headers: { authorization: `Bearer ${gateway.key}` } })
    expect(answer.status).toBe(404)
  }
})
