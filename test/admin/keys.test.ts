import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { movableClock } from '../support/movable-clock.ts'
import { errorOf, operatorOf, jsonClient, type JsonClient } from '../support/operator.ts'
import { coldStartMs, sharedPostgres } from '../support/postgres.ts'
import { says } from '../support/streams.ts'

/** Written as a number that a double cannot hold. */
const longNumber = (JSON as unknown as { rawJSON(text: string): object }).rawJSON('123456789012345678901')

type Key = { id: string; key: string; account: string; state: string; limits: unknown; expires_at: number | null }

const entries = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`entry ${at}`, 'x']))

describe.each(['sqlite', 'postgres'] as const)('keys on %s', (engine) => {
  const clock = movableClock()
  let gateway: TestGateway
  let operator: JsonClient
  const make = (more: Record<string, unknown> = {}) =>
    operator.post<Key>('/admin/keys', { account: gateway.accountId, ...more })
  const change = (id: string, body: unknown) => operator.call('PATCH', `/admin/keys/${id}`, body)
  const audited = async () => (await operator.all<{ detail: unknown }>('/admin/audit'))[0]?.detail
  const models = async (key: string) =>
    (await jsonClient(gateway.url, key).get<{ data: { id: string }[] }>('/v1/models')).data.map(({ id }) => id)

  beforeAll(async () => {
    gateway = await startTestGateway({ engine, clock })
    operator = operatorOf(gateway)
  }, coldStartMs)
  afterAll(async () => {
    await gateway.assertBooks()
    await gateway.close()
  })

  const everything = {
    name: 'ci',
    models: ['gpt-4o*', 'o3'],
    limits: { requests_per_minute: 60, tokens_per_minute: 100_000, concurrent: 4 },
    cap: { amount: '5', period: 'month' },
    expires_at: '2099-12-31T00:00:00Z',
    metadata: { team: 'search' },
  }

  test('the audit has what a key was created with and changed to, in the fields of the API', async () => {
    const { id, key } = await make(everything)
    const written = { ...everything, expires_at: Date.UTC(2099, 11, 31) / 1000 }
    expect(await audited()).toEqual({ account: gateway.accountId, hint: key.slice(-4), ...written })
    const { limits: _, ...rest } = written
    await change(id, { ...everything, limits: { concurrent: 2 }, enabled: false })
    const limits = { requests_per_minute: null, tokens_per_minute: null, concurrent: 2 }
    expect(await audited()).toEqual({ ...rest, limits, enabled: false })
    await change(id, { limits: null, cap: null, models: null, expires_at: null })
    expect(await audited()).toEqual({ limits: null, cap: null, models: null, expires_at: null })
  })

  test('a key is created with every setting, shown once, and listed by its last four characters alone', async () => {
    const made = await make({ account: 'demo', ...everything })
    const { key, ...shown } = made
    expect(key).toMatch(/^sk-[\w-]{32,}$/)
    expect(shown).toEqual({
      id: expect.stringMatching(/^key_[0-9a-f]{32}$/),
      account: gateway.accountId,
      account_name: 'demo',
      name: 'ci',
      hint: key.slice(-4),
      models: ['gpt-4o*', 'o3'],
      limits: { requests_per_minute: 60, tokens_per_minute: 100_000, concurrent: 4 },
      cap: { amount: '5', period: 'month' },
      enabled: true,
      state: 'enabled',
      expires_at: Date.UTC(2099, 11, 31) / 1000,
      metadata: { team: 'search' },
      created_at: expect.any(Number),
    } as never)
    const listed = await operator.all<Key & { hint: string }>('/admin/keys')
    expect(listed).toContainEqual(shown as never)
    // Never the beginning of a secret, only its last four characters, which may be any: `sk-` is among them now and
    // then.
    const rest = listed.map(({ hint, ...others }) => ({ ...others, hinted: hint.length }))
    expect(JSON.stringify(rest)).not.toMatch(/sk-|adm-|digest/)
    expect(JSON.stringify(rest)).not.toContain(key.slice(3, 11))
    expect(rest.filter(({ hinted }) => hinted !== 4)).toEqual([])
    const seen = await models(key)
    expect(seen).toContain('o3')
    expect(seen.filter((id) => !/^(?:gpt-4o.*|o3)$/.test(id))).toEqual([])
  })

  test('an expiry may be given in unix seconds, and the key is refused after it', async () => {
    // Read once: a second may end in between.
    const inAMinute = Math.floor(clock.now() / 1000) + 60
    const { key, expires_at } = await make({ expires_at: inAMinute })
    expect(expires_at).toBe(inAMinute)
    expect((await jsonClient(gateway.url, key).call('GET', '/v1/balance')).status).toBe(200)
    clock.advance(61_000)
    expect((await jsonClient(gateway.url, key).call('GET', '/v1/balance')).status).toBe(401)
    expect((await operator.all<Key>('/admin/keys')).map(({ state }) => state)).toContain('expired')
  })

  test('null removes a setting of a key, and settings that are not named stay', async () => {
    const { id } = await make({
      name: 'x',
      models: ['o3'],
      limits: { concurrent: 1, requests_per_minute: 5 },
      cap: { amount: '1', period: 'day' },
      expires_at: '2099-01-01',
    })
    const limits = { requests_per_minute: null, tokens_per_minute: null, concurrent: 9 }
    expect((await change(id, { limits: { concurrent: 9 } })).body).toMatchObject({ limits, models: ['o3'], name: 'x' })
    const bare = { models: null, limits: null, cap: null, expires_at: null }
    expect((await change(id, bare)).body).toMatchObject({ ...bare, name: 'x' })
    expect((await change(id, { limits: { concurrent: null } })).body).toMatchObject({ limits: null })
    expect((await change(id, { metadata: entries(16) })).body).toMatchObject({ metadata: entries(16) })
    expect((await change(id, { name: '', metadata: {}, enabled: false })).body).toMatchObject({
      name: '',
      metadata: {},
      enabled: false,
      state: 'disabled',
    })
  })

  test('invalid values are refused with the name of the field', async () => {
    const { id } = await make()
    const bad: readonly (readonly [string, unknown])[] = [
      ['models', []],
      ['models', 'gpt-*'],
      ['models[0]', ['GPT-*']],
      ['models[1]', ['o3', '']],
      ['models[0]', ['gpt-(a+)+$']],
      ['models', Array.from({ length: 101 }, () => 'x')],
      ['limits.concurrent', { concurrent: 0 }],
      ['limits.concurrent', { concurrent: 1.5 }],
      ['limits.requests_per_minute', { requests_per_minute: '5' }],
      ['limits.per_second', { per_second: 1 }],
      ['cap.period', { amount: '1', period: 'year' }],
      ['cap.amount', { amount: 1, period: 'day' }],
      ['cap.period', { amount: '1' }],
      ['expires_at', 'tomorrow'],
      ['expires_at', '2026-02-30'],
      ['expires_at', 1_000],
      ['expires_at', Date.now() * 1000],
      ['metadata', 'x'],
      ['metadata', entries(17)],
      ['metadata', longNumber],
      ['limits', longNumber],
      ['name', 'a\nb'],
      ['digest', 'x'],
      ['key', 'sk-mine'],
    ]
    for (const [param, value] of bad) {
      const field = param.split(/[.[]/)[0] ?? ''
      const wanted = { param, status: 400 }
      expect({ value, ...errorOf(await change(id, { [field]: value })) }).toMatchObject({ value, ...wanted })
      const made = await operator.call('POST', '/admin/keys', { account: 'demo', [field]: value })
      expect({ value, ...errorOf(made) }).toMatchObject({ value, ...wanted })
    }
    const nobody = await operator.call('POST', '/admin/keys', { account: 'nobody' })
    expect(errorOf(nobody)).toMatchObject({ status: 400, param: 'account', code: 'account_not_found' })
    expect(nobody.body).toMatchObject({ error: { message: 'There is no such account. Give its id or its name.' } })
    expect(errorOf(await change('key_none', { name: 'x' }))).toMatchObject({ status: 404, code: 'key_not_found' })
    expect((await operator.call('DELETE', '/admin/keys/key_none')).status).toBe(404)
  })

  test("a key's name that is too long, or no text, is refused with the rule for names", async () => {
    const messageFor = async (name: unknown): Promise<unknown> => {
      const { status, body } = await operator.call('POST', '/admin/keys', { account: 'demo', name })
      return status === 400 ? body : undefined
    }
    const rule = "Invalid 'name': 1 to 100 characters, and no control characters."
    expect(await messageFor('x'.repeat(101))).toMatchObject({ error: { message: rule, code: 'invalid_value' } })
    const noText = "Invalid 'name': expected string, received null."
    expect(await messageFor(null)).toMatchObject({ error: { message: noText, code: 'invalid_type' } })
    expect((await operator.call('POST', '/admin/keys', { account: 'demo', name: '' })).status).toBe(200)
  })

  test('the limits of a key also count reads of models, balance and usage, and are in the headers', async () => {
    const { key } = await make({ limits: { requests_per_minute: 3, tokens_per_minute: 1_000 } })
    const customer = jsonClient(gateway.url, key)
    const asked = [await customer.call('GET', '/v1/models'), await customer.call('GET', '/v1/balance')]
    asked.push(await customer.call('GET', '/v1/usage'), await customer.call('GET', '/v1/usage'))
    expect(asked.map(({ status }) => status)).toEqual([200, 200, 200, 429])
    expect(asked.map(({ headers }) => headers.get('x-ratelimit-remaining-requests'))).toEqual(['2', '1', '0', '0'])
    expect(asked[0]?.headers.get('x-ratelimit-limit-tokens')).toBe('1000')
    expect(asked[3]?.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(asked[3]?.headers.get('x-ratelimit-limit-requests')).toBe('3')
  })

  test('a concurrent place is free again after a read of the usage, answered or refused', async () => {
    const { key } = await make({ limits: { concurrent: 1 } })
    const customer = jsonClient(gateway.url, key)
    for (let i = 0; i < 3; i++) {
      expect((await customer.call('GET', '/v1/usage?group_by=day')).status).toBe(200)
      expect((await customer.call('GET', '/v1/usage?group_by=nothing')).status).toBe(400)
    }
    expect((await customer.call('POST', '/v1/chat/completions', says('Hi'))).status).toBe(200)
  })

  test('keys are listed for one account, by its name or id', async () => {
    const other = await gateway.account()
    expect((await operator.all<Key>(`/admin/keys?account=${other.id}`)).map(({ id }) => id)).toEqual([other.keyId])
    const whole = await operator.all<Key>('/admin/keys?account=demo')
    expect(await operator.all<Key>('/admin/keys?account=demo', 3)).toEqual(whole)
    expect(new Set(whole.map(({ account }) => account))).toEqual(new Set([gateway.accountId]))
    const nobody = errorOf(await operator.call('GET', '/admin/keys?account=nobody'))
    expect(nobody).toMatchObject({ status: 400, param: 'account' })
  })

  test('keys of the other mode are listed only by the id of their account', async () => {
    const { id: accountId, keyId } = await gateway.account()
    await gateway.store.db.updateTable('account').set({ mode: 'real' }).where('id', '=', accountId).execute()
    const whole = await operator.all<Key>('/admin/keys')
    expect(whole.map(({ id }) => id)).not.toContain(keyId)
    expect(await operator.all<Key>(`/admin/keys?account=${accountId}`)).toMatchObject([{ id: keyId }])
    await gateway.store.db.updateTable('account').set({ mode: 'sandbox' }).where('id', '=', accountId).execute()
  })

  test('a revoked key stays in the list and cannot be enabled again', async () => {
    const { id, key } = await make()
    expect((await operator.call('DELETE', `/admin/keys/${id}`)).body).toEqual({ id, revoked: true })
    expect((await operator.call('DELETE', `/admin/keys/${id}`)).body).toEqual({ id, revoked: true })
    expect((await change(id, { enabled: true })).status).toBe(404)
    expect(await operator.all<Key>('/admin/keys')).toContainEqual(
      expect.objectContaining({ id, state: 'revoked', enabled: false }) as never,
    )
    await until(async () => (await jsonClient(gateway.url, key).call('GET', '/v1/balance')).status === 401)
  })
})

test('a revoked key is soon refused on every node', async () => {
  const postgres = await sharedPostgres()
  const databaseUrl = await postgres.freshDatabase()
  const one = await startTestGateway({ databaseUrl })
  const other = await startTestGateway({ databaseUrl })
  try {
    const operator = operatorOf(one)
    const { id, key } = await operator.post<Key>('/admin/keys', { account: 'demo' })
    const seenBy = async (node: TestGateway) => (await jsonClient(node.url, key).call('GET', '/v1/balance')).status
    await until(async () => (await seenBy(one)) === 200 && (await seenBy(other)) === 200)
    await operator.call('DELETE', `/admin/keys/${id}`)
    // Each node looks for changes once a second (`src/keys/key-ring.test.ts`) and trusts its cache for a minute.
    await until(async () => (await seenBy(one)) === 401 && (await seenBy(other)) === 401)
    // The operator's key of one node works at the other: they share a database.
    expect((await jsonClient(other.adminUrl, one.adminKey).call('GET', '/admin/keys')).status).toBe(200)
  } finally {
    await one.close()
    await other.close()
    await postgres.dropDatabase(databaseUrl)
  }
}, 120_000)
