import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { formatDollars, nano, parseDollars, zeroNano } from '../../src/base/money.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { errorOf, operatorOf, jsonClient, type JsonClient } from '../support/operator.ts'
import { coldStartMs } from '../support/postgres.ts'
import { says } from '../support/streams.ts'

type Account = { id: string; name: string; balance: string; held: string; cap: unknown; created_at: number }

const bad = (param: string) => ({ status: 400, param })

describe.each([
  ['SQLite, leased', 'sqlite', 'leased'],
  ['PostgreSQL, booked at once', 'postgres', 'strict'],
] as const)('accounts on %s', (_name, engine, mode) => {
  let gateway: TestGateway
  let operator: JsonClient
  let names = 0
  const make = (more: Record<string, unknown> = {}) =>
    operator.post<Account>('/admin/accounts', { name: `account ${++names}`, ...more })
  const credit = (id: string, body: unknown, key?: string) =>
    operator.call('POST', `/admin/accounts/${id}/credits`, body, key === undefined ? {} : { 'idempotency-key': key })

  beforeAll(async () => {
    gateway = await startTestGateway({ engine, mode })
    operator = operatorOf(gateway)
  }, coldStartMs)
  afterAll(async () => {
    await gateway.assertBooks()
    await gateway.close()
  })

  test('an account is created, read, changed and listed', async () => {
    const made = await operator.post<Account>('/admin/accounts', { name: '  acme ', credit: '12.000000001' })
    expect(made).toEqual({
      id: expect.stringMatching(/^acc_[0-9a-f]{32}$/),
      name: 'acme',
      mode: 'sandbox',
      balance: '12.000000001',
      held: '0',
      unlimited: false,
      enabled: true,
      cap: null,
      created_at: expect.any(Number),
    } as never)
    expect(Math.abs(made.created_at - Date.now() / 1000)).toBeLessThan(60)
    expect(await operator.get<Account>(`/admin/accounts/${made.id}`)).toEqual(made)

    const cap = { amount: '0.5', period: 'day' }
    const changed = await operator.patch<Account>(`/admin/accounts/${made.id}`, { name: 'acme 2', cap, enabled: false })
    expect(changed).toEqual({ ...made, name: 'acme 2', cap, enabled: false } as never)
    expect(await operator.patch(`/admin/accounts/${made.id}`, {})).toEqual(changed as never)
    expect(await operator.patch(`/admin/accounts/${made.id}`, { cap: null })).toMatchObject({ cap: null })
    expect(await operator.all('/admin/accounts')).toContainEqual({ ...changed, cap: null } as never)
    expect(await operator.all('/admin/accounts?mode=real')).toEqual([])
  })

  test('invalid values are refused with the name of the field', async () => {
    const { id, name } = await make({ credit: '1' })
    const create = (body: unknown) => operator.call('POST', '/admin/accounts', body)
    const change = (body: unknown) => operator.call('PATCH', `/admin/accounts/${id}`, body)
    expect(errorOf(await create({ name: '' }))).toMatchObject(bad('name'))
    expect(errorOf(await create({ name: 'a\u0000b' }))).toMatchObject(bad('name'))
    expect(errorOf(await create({ name: 'x', credit: 1 }))).toMatchObject(bad('credit'))
    expect(errorOf(await create({ name: 'x', credit: '-1' }))).toMatchObject(bad('credit'))
    expect(errorOf(await create({ name: 'x', credit: '1e3' }))).toMatchObject(bad('credit'))
    expect(errorOf(await create({ name: 'x', credit: '0.0000000001' }))).toMatchObject(bad('credit'))
    expect(errorOf(await create({ name: 'x', credit: '1000000.000000001' }))).toMatchObject(bad('credit'))
    expect(errorOf(await create({ name: 'x', admin: true }))).toMatchObject({
      ...bad('admin'),
      code: 'unknown_parameter',
    })
    const taken = await create({ name })
    expect(errorOf(taken)).toMatchObject({ status: 409, code: 'name_taken' })
    expect(taken.headers.get('x-should-retry')).toBe('false')
    const { name: other } = await make({})
    expect(errorOf(await change({ name: other }))).toMatchObject({ status: 409, code: 'name_taken' })
    expect(errorOf(await change({ cap: { amount: '1', period: 'week' } }))).toMatchObject(bad('cap.period'))
    expect(errorOf(await change({ cap: { amount: '-1', period: 'day' } }))).toMatchObject(bad('cap.amount'))
    expect(errorOf(await change({ cap: { amount: '1', period: 'day', of: 'x' } }))).toMatchObject(bad('cap.of'))
    expect(errorOf(await change({ balance: '100' }))).toMatchObject(bad('balance'))
    expect(errorOf(await change({ enabled: 'no' }))).toMatchObject(bad('enabled'))
    expect(errorOf(await operator.call('GET', '/admin/accounts/acc_none'))).toMatchObject({
      status: 404,
      code: 'account_not_found',
    })
    expect((await operator.call('PATCH', '/admin/accounts/acc_none', { name: 'x' })).status).toBe(404)
    expect((await credit('acc_none', { amount: '1' })).status).toBe(404)
    expect(await operator.get<Account>(`/admin/accounts/${id}`)).toMatchObject({ name, balance: '1', cap: null })
  })

  test('credits are exact to the nano-dollar and never take the balance below zero', async () => {
    const { id } = await make({ credit: '0.1' })
    expect((await credit(id, { amount: '0.2', note: 'paid' })).body).toMatchObject({ balance: '0.3' })
    expect((await credit(id, { amount: '0.000000001' })).body).toMatchObject({ balance: '0.300000001' })
    const deep = await credit(id, { amount: '-0.300000002' })
    expect(errorOf(deep)).toMatchObject({ status: 400, param: 'amount', code: 'below_zero' })
    expect(JSON.stringify(deep.body)).toContain('Only $0.300000001 can be taken')
    expect((await credit(id, { amount: '-0.300000001' })).body).toMatchObject({ balance: '0' })
    for (const amount of ['0', '', '1.0000000001', 'ten', '1000001', 5, null]) {
      expect(errorOf(await credit(id, { amount }))).toMatchObject({ status: 400, param: 'amount' })
    }
  })

  test('the credits of an account are listed newest first, page by page, without its charges', async () => {
    type Shown = { id: string; amount: string; source: string; note: string | null; created_at: number }
    const { id } = await make({ credit: '1' })
    await credit(id, { amount: '2', note: 'invoice 17' })
    await credit(id, { amount: '-0.5' })
    const { key } = await operator.post<{ key: string }>('/admin/keys', { account: id })
    const asked = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hi' }] }
    const spent = await gateway.post('/v1/chat/completions', asked, { authorization: `Bearer ${key}` })
    expect(spent.status).toBe(200)
    await spent.text()
    await gateway.settleBooks()
    await credit(id, { amount: '3' })
    const path = `/admin/accounts/${id}/credits`
    const all = await operator.all<Shown>(path)
    expect(all.map(({ amount, source, note }) => [amount, source, note])).toEqual([
      ['3', 'promo', null],
      ['-0.5', 'promo', null],
      ['2', 'promo', 'invoice 17'],
      ['1', 'promo', null],
    ])
    expect(await operator.all<Shown>(path, 1)).toEqual(all)
    expect(Math.abs((all[0]?.created_at ?? 0) * 1000 - Date.now())).toBeLessThan(60_000)
    const other = await make({ credit: '7' })
    expect(await operator.all<Shown>(`/admin/accounts/${other.id}/credits`)).toHaveLength(1)
    // A cursor of another account's list is refused.
    const foreign = await operator.call('GET', `/admin/accounts/${other.id}/credits?after=${all[0]?.id}`)
    expect(errorOf(foreign)).toMatchObject({ status: 400, param: 'after' })
    expect(errorOf(await operator.call('GET', `${path}?after=nobody`))).toMatchObject({ status: 400, param: 'after' })
    expect(errorOf(await operator.call('GET', `${path}?limit=0`))).toMatchObject({ status: 400, param: 'limit' })
    expect((await operator.call('GET', '/admin/accounts/acc_nobody/credits')).status).toBe(404)
  })

  test('forty concurrent withdrawals book only what the balance covers', async () => {
    const { id } = await make({ credit: '1' })
    const told = await Promise.all(Array.from({ length: 40 }, () => credit(id, { amount: '-0.1' })))
    expect(told.filter(({ status }) => status === 200)).toHaveLength(10)
    expect(await operator.get<Account>(`/admin/accounts/${id}`)).toMatchObject({ balance: '0', held: '0' })
  })

  test('a credit with an idempotency key is booked once, and another body is a 422', async () => {
    const { id } = await make()
    const told = await Promise.all(
      Array.from({ length: 20 }, () => credit(id, { amount: '3.5', note: 'n' }, 'topup-1')),
    )
    expect(new Set(told.map(({ status, body }) => JSON.stringify([status, body]))).size).toBe(1)
    expect(told[0]).toMatchObject({ status: 200, body: { balance: '3.5' } })
    expect(told.filter(({ headers }) => headers.has('idempotent-replayed'))).toHaveLength(19)

    await credit(id, { amount: '1' })
    expect((await credit(id, { amount: '3.5', note: 'n' }, 'topup-1')).body).toEqual(told[0]?.body as never)
    for (const other of [{ amount: '4', note: 'n' }, { amount: '3.5' }]) {
      expect(errorOf(await credit(id, other, 'topup-1'))).toMatchObject({ status: 422, code: 'idempotency_mismatch' })
    }
    expect(await operator.get<Account>(`/admin/accounts/${id}`)).toMatchObject({ balance: '4.5' })
    // The same key for another account is another credit; a refused one frees its key.
    const other = await make()
    expect(errorOf(await credit(other.id, { amount: '-1' }, 'topup-1'))).toMatchObject({ code: 'below_zero' })
    expect((await credit(other.id, { amount: '2' }, 'topup-1')).body).toMatchObject({ balance: '2' })
    expect(errorOf(await credit(other.id, { amount: '2' }, 'k'.repeat(256)))).toMatchObject({ status: 400 })
  })

  test('a credit whose answer was lost in a crash is still booked once', async () => {
    const { id } = await make()
    await credit(id, { amount: '5' }, 'lost')
    // The state that the next start finds after a crash in the middle of the request.
    await gateway.store.db.deleteFrom('idempotency').where('account_id', '=', id).execute()
    expect((await credit(id, { amount: '5' }, 'lost')).body).toMatchObject({ balance: '5' })
    expect(errorOf(await credit(id, { amount: '6' }, 'lost'))).toMatchObject({ status: 422 })
    await gateway.store.db.deleteFrom('idempotency').where('account_id', '=', id).execute()
    expect(errorOf(await credit(id, { amount: '6' }, 'lost'))).toMatchObject({ status: 422 })
    expect(await operator.get<Account>(`/admin/accounts/${id}`)).toMatchObject({ balance: '5' })
    // Or the request had begun and its outcome is unknown: one was booked, the other was not.
    for (const key of ['known', 'unknown']) {
      const { id } = await make()
      await credit(id, { amount: '5' }, 'known')
      const kept = gateway.store.db.updateTable('idempotency').where('account_id', '=', id)
      await kept.set({ state: 'done', status: 500, sealed_body: null }).execute()
      expect((await credit(id, { amount: '5' }, key)).body).toMatchObject({ balance: key === 'known' ? '5' : '10' })
    }
  })

  test('the balance and the held amount are exact at once, despite leases and batched bookings', async () => {
    const { id, key } = await gateway.account({ dollars: '2' })
    const customer = jsonClient(gateway.url, key)
    const cost = async () =>
      Number((await customer.call('POST', '/v1/chat/completions', says('Hi'))).headers.get('x-turnpike-cost'))
    let spent = 0
    for (let i = 0; i < 3; i++) {
      spent += await cost()
      const { balance, held } = await operator.get<Account>(`/admin/accounts/${id}`)
      expect(Number(balance)).toBeCloseTo(2 - spent, 9)
      expect(held).toBe('0')
    }
    // The list is exact too, without a read of the account first.
    spent += await cost()
    const listed = (await operator.all<Account>('/admin/accounts')).find((account) => account.id === id)
    expect(Number(listed?.balance)).toBeCloseTo(2 - spent, 9)
    expect(listed?.held).toBe('0')
    // All of it can be withdrawn: an idle lease does not block it.
    const { balance } = await operator.get<Account>(`/admin/accounts/${id}`)
    expect((await credit(id, { amount: `-${balance}` })).body).toMatchObject({ balance: '0', held: '0' })
    expect((await customer.call('POST', '/v1/chat/completions', says('Hi'))).status).toBe(402)
  })

  test('leased money that a node has not used can be withdrawn without a read of the balance first', async () => {
    const { id, key } = await gateway.account({ dollars: '2' })
    const { headers } = await jsonClient(gateway.url, key).call('POST', '/v1/chat/completions', says('Hi'))
    const cost = parseDollars(headers.get('x-turnpike-cost') ?? '') ?? zeroNano
    const left = formatDollars(nano(2_000_000_000n - cost))
    expect((await credit(id, { amount: `-${left}` })).body).toMatchObject({ balance: '0', held: '0' })
  })

  test('the hold of a video is shown as held until its task ends', async () => {
    const { id, key } = await gateway.account({ dollars: '5' })
    const video = { model: 'wan2.6-t2v', duration: 5, input: { prompt: 'A fox. sandbox:queued=60000' } }
    const customer = jsonClient(gateway.url, key)
    const { id: task } = (await customer.call('POST', '/v1/videos/generations', video)).body as { id: string }
    const { amount } = await gateway.store.db
      .selectFrom('hold')
      .select('amount')
      .where('account_id', '=', id)
      .executeTakeFirstOrThrow()
    const account = () => operator.get<Account>(`/admin/accounts/${id}`)
    expect(await account()).toMatchObject({ balance: '5', held: formatDollars(amount) })
    expect((await customer.call('DELETE', `/v1/videos/generations/${task}`)).status).toBe(200)
    expect(await account()).toMatchObject({ balance: '5', held: '0' })
  })

  // The account never stops spending during the reads, so a read that waited for that would never end.
  test('the balance can be read while the account keeps spending', async () => {
    const { id, key } = await gateway.account({ dollars: '50' })
    const customer = jsonClient(gateway.url, key)
    const over = new AbortController()
    const spending = Promise.all(
      Array.from({ length: 8 }, async () => {
        while (!over.signal.aborted) await customer.call('POST', '/v1/chat/completions', says('Hi'))
      }),
    )
    const told: number[] = []
    // At least twenty times, and until something was spent.
    for (let i = 0; i < 20 || (i < 1_000 && told.at(-1) === told[0]); i++) {
      told.push(Number((await operator.get<Account>(`/admin/accounts/${id}`)).balance))
    }
    over.abort()
    await spending
    expect(told).toEqual(told.toSorted((a, b) => b - a))
    expect(told.at(-1)).toBeLessThan(told[0] ?? 0)
  })

  test('an unlimited account may owe, and cannot be limited while it does', async () => {
    const { id } = await make({ unlimited: true })
    const { key } = await operator.post<{ key: string }>('/admin/keys', { account: id })
    expect((await jsonClient(gateway.url, key).call('POST', '/v1/chat/completions', says('Hi'))).status).toBe(200)
    const owing = await operator.get<Account>(`/admin/accounts/${id}`)
    expect(owing.balance).toStartWith('-0.')
    const limited = await operator.call('PATCH', `/admin/accounts/${id}`, { unlimited: false })
    expect(errorOf(limited)).toMatchObject({ status: 400, param: 'unlimited', code: 'below_zero' })
    await credit(id, { amount: owing.balance.slice(1) })
    expect(await operator.patch(`/admin/accounts/${id}`, { unlimited: false })).toMatchObject({ balance: '0' })
  })

  test('an unlimited account that owes nothing can be limited at once, despite what a node has leased', async () => {
    // The hold on an answer is ten times this, and the lease that it was taken from is idle for a while.
    const { id } = await make({ unlimited: true, credit: '0.001' })
    const { key } = await operator.post<{ key: string }>('/admin/keys', { account: id })
    expect((await jsonClient(gateway.url, key).call('POST', '/v1/chat/completions', says('Hi'))).status).toBe(200)
    const limited = { unlimited: false, held: '0', balance: expect.stringMatching(/^0\.000/) }
    expect(await operator.patch(`/admin/accounts/${id}`, { unlimited: false })).toMatchObject(limited)
  })

  test('an unlimited account that owes nothing is told what is held if that keeps it from being limited', async () => {
    const { id } = await make({ unlimited: true, credit: '0.001' })
    const { key } = await operator.post<{ key: string }>('/admin/keys', { account: id })
    const customer = jsonClient(gateway.url, key)
    const running = customer.call('POST', '/v1/chat/completions', says('Hi sandbox:delay=1000'))
    await until(async () => (await operator.get<Account>(`/admin/accounts/${id}`)).held !== '0')
    const { held } = await operator.get<Account>(`/admin/accounts/${id}`)
    const limited = await operator.call('PATCH', `/admin/accounts/${id}`, { unlimited: false })
    expect(errorOf(limited)).toMatchObject({ status: 400, param: 'unlimited', code: 'below_zero' })
    const message = `The balance is $0.001, and $${held} is held: wait until less is held, or credit the account first.`
    expect(limited.body).toMatchObject({ error: { message } })
    expect((await running).status).toBe(200)
  })

  test('the keys of a disabled account are refused until it is enabled again', async () => {
    const { id, key } = await gateway.account()
    const customer = jsonClient(gateway.url, key)
    const status = async () => (await customer.call('GET', '/v1/balance')).status
    expect(await status()).toBe(200)
    await operator.patch(`/admin/accounts/${id}`, { enabled: false })
    await until(async () => (await status()) === 401)
    await operator.patch(`/admin/accounts/${id}`, { enabled: true })
    await until(async () => (await status()) === 200)
  })

  test('lists come in pages without gaps, and invalid limits and cursors are refused', async () => {
    for (let i = 0; i < 3; i++) await make()
    const whole = await operator.all<Account>('/admin/accounts', 100)
    expect(await operator.all<Account>('/admin/accounts', 2)).toEqual(whole)
    const plain = await operator.get<{ data: Account[] }>('/admin/accounts')
    expect(plain.data).toEqual(whole.slice(0, 20))
    for (const path of ['accounts', 'keys', 'requests', 'usage', 'audit', 'models', 'channels']) {
      for (const limit of ['0', '101', '-1', '1.5', 'ten', '', '1e1', '%20']) {
        const told = await operator.call('GET', `/admin/${path}?limit=${limit}`)
        expect({ path, limit, ...errorOf(told) }).toMatchObject({ path, limit, status: 400, param: 'limit' })
      }
      expect(errorOf(await operator.call('GET', `/admin/${path}?limt=3`))).toMatchObject({ status: 400, param: 'limt' })
      expect(errorOf(await operator.call('GET', `/admin/${path}?limit=3&limit=4`))).toMatchObject({ param: 'limit' })
    }
    for (const path of ['accounts', 'keys', 'requests', 'tasks', 'webhooks', 'audit']) {
      const told = errorOf(await operator.call('GET', `/admin/${path}?after=nobody`))
      expect({ path, ...told }).toMatchObject({ path, status: 400, param: 'after' })
    }
  })

  test('the audit has every change with its actor, and nothing else', async () => {
    const before = (await operator.all('/admin/audit')).length
    const { id } = await make({ credit: '1' })
    await credit(id, { amount: '2', note: 'paid by card' }, 'audited')
    await credit(id, { amount: '2', note: 'paid by card' }, 'audited')
    await credit(id, { amount: '-9' })
    await operator.patch(`/admin/accounts/${id}`, { cap: { amount: '7', period: 'month' } })
    await operator.patch(`/admin/accounts/${id}`, {})
    const { id: keyId, key } = await operator.post<{ id: string; key: string }>('/admin/keys', { account: id })
    await operator.patch(`/admin/keys/${keyId}`, { name: 'renamed', models: ['gpt-*'] })
    expect(await operator.patch(`/admin/keys/${keyId}`, {})).toMatchObject({ name: 'renamed' })
    await operator.call('DELETE', `/admin/keys/${keyId}`)
    await operator.call('DELETE', `/admin/keys/${keyId}`)

    const audit = await operator.all<Record<string, unknown>>('/admin/audit', 3)
    const fresh = audit.slice(0, audit.length - before)
    const actor = `admin:${gateway.adminKey.slice(-4)}`
    expect(fresh.map(({ action, subject, actor }) => [action, subject, actor])).toEqual([
      ['key.revoke', keyId, actor],
      ['key.change', keyId, actor],
      ['key.create', keyId, actor],
      ['account.change', id, actor],
      ['account.credit', id, actor],
      ['account.create', id, actor],
    ])
    expect(fresh[1]).toMatchObject({ detail: { name: 'renamed', models: ['gpt-*'] } })
    expect(fresh[3]).toMatchObject({ detail: { cap: { amount: '7', period: 'month' } } })
    expect(fresh[4]).toMatchObject({ detail: { amount: '2', note: 'paid by card' } })
    expect(fresh[5]).toMatchObject({ detail: { credit: '1' }, created_at: expect.any(Number) })
    for (const secret of [key, gateway.adminKey, gateway.key]) {
      expect(JSON.stringify(audit)).not.toContain(secret.slice(0, 12))
    }
  })
})
