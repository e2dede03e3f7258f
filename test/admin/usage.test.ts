import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { formatDollars, nano, parseDollars } from '../../src/base/money.ts'
import { balance as balanceSchema, usageReport } from '../../src/http/openapi/usage-schema.ts'
import { Random } from '../simulation/random.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { movableClock } from '../support/movable-clock.ts'
import { errorOf, operatorOf, jsonClient, type JsonClient } from '../support/operator.ts'
import { coldStartMs } from '../support/postgres.ts'
import { says } from '../support/streams.ts'

type Sum = Record<string, string | number> & { requests: number; cost: string; input_tokens: number }
type Shown = {
  id: string
  account: string
  key: string
  model: string
  capability: string
  status: number
  cost: string
  usage: Record<string, number> | null
  created_at: number
  attempts?: Record<string, unknown>[]
}

const hour = 3_600
const day = 24 * hour

function dollars(amounts: readonly string[]): string {
  return formatDollars(nano(amounts.reduce((sum, amount) => sum + (parseDollars(amount) ?? 0n), 0n)))
}

const summed = async (asked: Promise<{ data: Sum[] }>) => (await asked).data[0]?.requests
const listed = async (asked: Promise<{ data: Shown[] }>) => (await asked).data.length

describe.each([
  ['SQLite, leased', 'sqlite', 'leased'],
  ['SQLite, booked at once', 'sqlite', 'strict'],
  ['PostgreSQL, leased', 'postgres', 'leased'],
  ['PostgreSQL, booked at once', 'postgres', 'strict'],
] as const)('usage on %s', (_name, engine, mode) => {
  const clock = movableClock()
  let gateway: TestGateway
  let operator: JsonClient
  let customers: { id: string; keyId: string; key: string }[]
  let firstHour: number

  /** Traffic of three customers over two days, a fifth of it failing in one way or another. */
  async function traffic(random: Random): Promise<void> {
    const models = ['gpt-4o-mini', 'gpt-4o', 'deepseek-chat', 'o3']
    const words = [
      'Hi',
      'Hello there',
      'sandbox:fail=server_error',
      'sandbox:status=400',
      'sandbox:cut=2',
      'Hi',
      'Hi',
      'Hi',
    ]
    for (let round = 0; round < 4; round++) {
      const calls = Array.from({ length: 12 }, () => {
        const { key } = random.pick(customers)
        const body = says(random.pick(words), { model: random.pick(models), stream: random.chance(0.3) })
        return jsonClient(gateway.url, key)
          .call('POST', '/v1/chat/completions', JSON.stringify(body), { 'content-type': 'application/json' })
          .catch(() => undefined)
      })
      await Promise.all(calls)
      clock.advance(7 * hour * 1000)
    }
    await until(() => gateway.openHolds() === 0)
  }

  beforeAll(async () => {
    gateway = await startTestGateway({ engine, mode, clock })
    operator = operatorOf(gateway)
    customers = await Promise.all(Array.from({ length: 3 }, () => gateway.account({ dollars: '20' })))
    firstHour = Math.ceil(clock.now() / 1000 / hour) * hour
    // A minute into the hour, which then does not end before the first requests.
    clock.advance((firstHour + 60) * 1000 - clock.now())
    await traffic(new Random(engine.length + mode.length))
  }, coldStartMs)
  afterAll(async () => {
    await gateway.assertBooks()
    await gateway.close()
  })

  const requests = (query = '') => operator.all<Shown>(`/admin/requests${query}`, 7)
  const usage = (query: string) => operator.all<Sum>(`/admin/usage${query}`)
  const bad = async (query: string) => errorOf(await operator.call('GET', `/admin/usage?${query}`))
  const as = (index: number) => jsonClient(gateway.url, customers[index]?.key ?? '')

  test('the sums equal the sums of the requests in every grouping', async () => {
    const all = await requests()
    expect(all.length).toBeGreaterThan(40)
    expect(new Set(all.map(({ status }) => status)).size).toBeGreaterThan(1)
    const [total] = await usage('')
    expect(total).toMatchObject({
      requests: all.length,
      cost: dollars(all.map(({ cost }) => cost)),
      input_tokens: all.reduce((sum, { usage }) => sum + (usage?.['input_tokens'] ?? 0), 0),
      output_tokens: all.reduce((sum, { usage }) => sum + (usage?.['output_tokens'] ?? 0), 0),
    })
    const groupOf: Record<string, (request: Shown) => string | number> = {
      hour: ({ created_at: at }) => Math.floor(at / hour) * hour,
      day: ({ created_at: at }) => Math.floor(at / day) * day,
      model: ({ model }) => model,
      key: ({ key }) => key,
      account: ({ account }) => account,
      capability: ({ capability }) => capability,
    }
    for (const [by, group] of Object.entries(groupOf)) {
      const sums = await usage(`?group_by=${by}`)
      const expected = Map.groupBy(all, group)
      expect(sums.map((sum) => sum[by])).toEqual([...expected.keys()].toSorted((a, b) => (a < b ? -1 : 1)) as never)
      for (const sum of sums) {
        const members = expected.get(sum[by] ?? '') ?? []
        expect({ by, requests: sum.requests, cost: sum.cost }).toEqual({
          by,
          requests: members.length,
          cost: dollars(members.map(({ cost }) => cost)),
        })
      }
      expect(await operator.all<Sum>(`/admin/usage?group_by=${by}`, 1)).toEqual(sums)
    }
  })

  test("the sums of vendors' costs equal the sums of the attempts", async () => {
    const shown = await Promise.all((await requests()).map(({ id }) => operator.get<Shown>(`/admin/requests/${id}`)))
    const costs = shown.flatMap(({ attempts = [] }) => attempts.map((attempt) => String(attempt['vendor_cost'])))
    const byVendor = await usage('?group_by=vendor')
    expect(dollars(byVendor.map((sum) => String(sum['vendor_cost'])))).toBe(dollars(costs))
    expect(byVendor.map(({ vendor }) => vendor)).toContain('deepseek')
    expect(Object.keys(shown.find(({ attempts }) => attempts?.length)?.attempts?.[0] ?? {})).toEqual([
      'id',
      'channel',
      'vendor',
      'upstream_model',
      'status',
      'vendor_cost',
    ])
  })

  test('periods are rounded to whole hours, and their parts add up', async () => {
    const [total] = await usage('')
    // Cuts inside an hour, at an hour, and at midnight.
    for (const cut of [
      firstHour + 7 * hour + 59,
      firstHour + 14 * hour,
      Math.ceil(firstHour / day) * day,
      firstHour - day,
    ]) {
      const before = await operator.get<{ data: Sum[]; to: number }>(`/admin/usage?to=${cut}`)
      const after = await operator.get<{ data: Sum[] }>(`/admin/usage?from=${before.to}`)
      expect(before.to).toBe(Math.ceil(cut / hour) * hour)
      expect(dollars([...before.data, ...after.data].map(({ cost }) => cost))).toBe(total?.cost ?? '')
      const listed = await requests(`?from=${before.to}`)
      expect(after.data[0]?.requests).toBe(listed.length)
    }
    const dated = new Date(firstHour * 1000).toISOString()
    const narrow = await operator.get<{ data: Sum[]; from: number; to: number }>(
      `/admin/usage?from=${dated}&to=${firstHour + hour}&group_by=hour`,
    )
    expect(narrow).toMatchObject({ from: firstHour, to: firstHour + hour })
    expect(narrow.data.map((sum) => sum['hour'])).toEqual([firstHour])
    // As programs write it, to the microsecond and with a zone in digits.
    const finely = dated.replace('000Z', '000001+00:00')
    const fine = await operator.get(`/admin/usage?from=${encodeURIComponent(finely)}`)
    expect(fine).toMatchObject({ from: firstHour })
    expect(await operator.get(`/admin/usage?from=${firstHour + hour - 1}`)).toMatchObject({ from: firstHour })
  })

  test('filters by account name or id, key and model are exact', async () => {
    const [one] = customers as [(typeof customers)[0]]
    const all = await requests()
    const own = all.filter(({ account }) => account === one.id)
    expect(await requests(`?account=${one.id}`)).toEqual(own)
    expect(await requests(`?key=${one.keyId}&model=gpt-4o`)).toEqual(own.filter(({ model }) => model === 'gpt-4o'))
    expect(await requests(`?account=${one.id}&model=gpt-4o`)).toEqual(own.filter(({ model }) => model === 'gpt-4o'))
    expect((await usage(`?account=${one.id}&model=gpt-4o`))[0]?.requests).toBe(
      own.filter(({ model }) => model === 'gpt-4o').length,
    )
    await operator.patch(`/admin/accounts/${one.id}`, { name: `named ${engine}` })
    expect(await requests(`?account=named%20${engine}`)).toEqual(own)
  })

  test.each(['%'.repeat(200), '_'.repeat(200), '*', "' or 1=1 --", 'gpt-4%', '\\'])(
    'the wildcard %p in a filter is an ordinary character',
    async (text) => {
      const value = encodeURIComponent(text)
      for (const path of ['usage?group_by=model&', 'requests?', 'keys?']) {
        for (const filter of path === 'keys?' ? ['account'] : ['account', 'key', 'model']) {
          const told = await operator.call('GET', `/admin/${path}${filter}=${value}`)
          if (filter === 'model') expect(told).toMatchObject({ status: 200, body: { data: [] } })
          else expect(errorOf(told)).toMatchObject({ status: 400, param: filter, code: `${filter}_not_found` })
        }
      }
    },
  )

  test('an unknown account or key in a filter is a 400 and not an empty result', async () => {
    for (const path of ['usage', 'requests', 'keys', 'tasks', 'webhooks']) {
      const told = errorOf(await operator.call('GET', `/admin/${path}?account=nope`))
      expect({ path, ...told }).toMatchObject({ path, status: 400, param: 'account', code: 'account_not_found' })
      expect((await operator.call('GET', `/admin/${path}?account=${gateway.accountId}`)).status).toBe(200)
    }
    for (const path of ['usage', 'requests']) {
      const told = errorOf(await operator.call('GET', `/admin/${path}?key=key_nope`))
      expect({ path, ...told }).toMatchObject({ path, status: 400, param: 'key', code: 'key_not_found' })
    }
  })

  test('an invalid filter is refused with its name', async () => {
    expect(await bad('group_by=month')).toMatchObject({ status: 400, param: 'group_by' })
    expect(await bad('from=yesterday')).toMatchObject({ status: 400, param: 'from' })
    expect(await bad('from=2027-02-30')).toMatchObject({ status: 400, param: 'from' })
    // A date, a month or a year without its dashes, which would be some day of 1970; and milliseconds.
    for (const unclear of ['20270131', '202701', '2027', '1801353600000']) {
      expect(await bad(`from=${unclear}`)).toMatchObject({ status: 400, param: 'from' })
    }
    for (const path of ['usage', 'requests', 'tasks', 'webhooks']) {
      const empty = await operator.call('GET', `/admin/${path}?from=2027-01-01&to=2027-01-01`)
      expect({ path, ...errorOf(empty) }).toMatchObject({ path, status: 400, param: 'to' })
    }
    expect(await bad('model=gpt-4o&model=gpt-4o-mini')).toMatchObject({ status: 400, param: 'model' })
    expect(await bad('model=%00')).toMatchObject({ status: 400, param: 'model' })
    expect(await bad(`account=${'x'.repeat(201)}`)).toMatchObject({ status: 400, param: 'account' })
    expect(await bad('after=x&group_by=day')).toMatchObject({ status: 400, param: 'after' })
    expect(await bad('after=x')).toMatchObject({ status: 400, param: 'after' })
    expect(await bad('mode=real')).toMatchObject({ status: 400, param: 'mode' })
  })

  test('a record has the fields that the contract names, and never the prompt', async () => {
    const { key, keyId, id: account } = await gateway.account()
    const secret = 'canary-in-a-prompt'
    const answer = await jsonClient(gateway.url, key).call('POST', '/v1/chat/completions', says(secret))
    const shown = await operator.get<Shown>(`/admin/requests/${answer.headers.get('x-request-id')}`)
    expect(shown).toEqual({
      id: answer.headers.get('x-request-id') ?? '',
      account,
      key: keyId,
      model: 'gpt-4o-mini',
      capability: 'chat',
      status: 200,
      cost: answer.headers.get('x-turnpike-cost') ?? '',
      basis: 'vendor',
      usage: { input_tokens: expect.any(Number), output_tokens: expect.any(Number) },
      streamed: false,
      duration_ms: expect.any(Number),
      created_at: expect.any(Number),
      attempts: [expect.objectContaining({ upstream_model: 'gpt-4o-mini', status: 200, vendor_cost: shown.cost })],
    } as never)
    expect(JSON.stringify(shown)).not.toContain(secret)
    expect(errorOf(await operator.call('GET', '/admin/requests/req_0'))).toMatchObject({ code: 'request_not_found' })
  })

  describe('usage as a customer sees it', () => {
    test('a customer sees its own sums and records and no others', async () => {
      const all = await requests()
      for (const [index, { id, keyId }] of customers.entries()) {
        const own = all.filter(({ account }) => account === id)
        const { data } = await as(index).get<{ data: Sum[] }>('/v1/usage')
        expect(data).toMatchObject([{ requests: own.length, cost: dollars(own.map(({ cost }) => cost)) }])
        const records = await as(index).all<Shown>('/v1/usage?records=true', 4)
        expect(records.map(({ id }) => id)).toEqual(own.map(({ id }) => id))
        expect(new Set(records.map(({ key }) => key))).toEqual(new Set([keyId]))
        for (const record of records) {
          expect(Object.keys(record)).not.toContain('attempts')
          expect(Object.keys(record)).not.toContain('account')
        }
        for (const by of ['day', 'hour', 'model', 'key', 'capability', 'account']) {
          const sums = await as(index).all<Sum>(`/v1/usage?group_by=${by}`)
          expect(sums.reduce((sum, { requests }) => sum + requests, 0)).toBe(own.length)
          expect(JSON.stringify(sums)).not.toContain('vendor')
        }
      }
    })

    test("no parameter gives access to another customer's usage", async () => {
      const [one, two] = customers as [(typeof customers)[0], (typeof customers)[0]]
      const [foreign] = await requests(`?account=${two.id}`)
      for (const query of [`account=${two.id}`, `key=${two.keyId}`, 'group_by=vendor', 'mode=real']) {
        const told = await jsonClient(gateway.url, one.key).call('GET', `/v1/usage?${query}`)
        expect({ query, status: told.status }).toEqual({ query, status: 400 })
      }
      const paged = await jsonClient(gateway.url, one.key).call('GET', `/v1/usage?records=true&after=${foreign?.id}`)
      expect(errorOf(paged)).toMatchObject({ status: 400, param: 'after' })
    })

    test('a customer can ask for the usage of the calling key alone', async () => {
      const [one] = customers as [(typeof customers)[0]]
      const second = await operator.post<{ key: string; id: string }>('/admin/keys', { account: one.id })
      const customer = jsonClient(gateway.url, second.key)
      const before = await customer.get<{ data: Sum[] }>('/v1/usage?key=self')
      expect(before.data).toMatchObject([{ requests: 0, cost: '0' }])
      const { headers } = await customer.call('POST', '/v1/chat/completions', says('Hi'))
      const whole = await customer.get<{ data: Sum[] }>('/v1/usage?group_by=key')
      expect(whole.data.map((sum) => sum['key'])).toEqual([one.keyId, second.id].toSorted())
      const after = await customer.get<{ data: Sum[] }>('/v1/usage?key=self&group_by=key')
      expect(after.data).toMatchObject([{ key: second.id, requests: 1, cost: headers.get('x-turnpike-cost') ?? '' }])
      const records = await customer.all<Shown>('/v1/usage?key=self&records=true')
      expect(records.map(({ id }) => id)).toEqual([headers.get('x-request-id') ?? ''])
    })

    test('every report has a request as soon as it was answered', async () => {
      const { key, keyId, id } = await gateway.account()
      const customer = jsonClient(gateway.url, key)
      const reports = [
        () => summed(operator.get(`/admin/usage?key=${keyId}`)),
        () => listed(operator.get(`/admin/requests?account=${id}`)),
        () => summed(customer.get('/v1/usage')),
        () => listed(customer.get('/v1/usage?records=true')),
      ]
      for (const [before, report] of reports.entries()) {
        await customer.post('/v1/chat/completions', says('Hi'))
        expect(await report()).toBe(before + 1)
      }
    })

    test('answers match the schemas of the reference, and invalid parameters are refused', async () => {
      usageReport.parse(await as(0).get('/v1/usage?group_by=model'))
      usageReport.parse(await as(0).get('/v1/usage?records=true'))
      balanceSchema.parse(await as(0).get('/v1/balance'))
      const odd = await as(0).call('GET', '/v1/usage?records=maybe')
      expect(errorOf(odd)).toMatchObject({ param: 'records' })
      expect(odd.body).toMatchObject({ error: { message: "Invalid 'records': expected one of 'true' or 'false'." } })
      expect(errorOf(await as(0).call('GET', '/v1/usage?records=true&group_by=day'))).toMatchObject({
        param: 'group_by',
      })
    })

    test.each(['group_by=day', 'model=gpt-4o-mini'])(
      'a refusal of records with %s gives the reason',
      async (beside) => {
        const [name = ''] = beside.split('=')
        expect((await as(0).call('GET', `/v1/usage?records=true&${beside}`)).body).toMatchObject({
          error: { message: `Invalid '${name}': it is for totals, not for single requests.`, param: name },
        })
      },
    )
  })
})

test('usage, requests and tasks of the other mode are listed only by the id of their account or key', async () => {
  const gateway = await startTestGateway()
  try {
    const { id, key, keyId } = await gateway.account({ dollars: '5' })
    const customer = jsonClient(gateway.url, key)
    await customer.post('/v1/chat/completions', says('Hi'))
    await customer.post('/v1/videos/generations?wait=true', {
      model: 'wan2.6-t2v',
      duration: 5,
      input: { prompt: 'A fox.' },
    })
    const operator = operatorOf(gateway)
    const found = async () => ({
      used: (await operator.all<{ account: string }>('/admin/usage?group_by=account')).length,
      asked: (await operator.all<object>('/admin/requests')).length,
      ordered: (await operator.all<object>('/admin/tasks')).length,
    })
    expect(await found()).toEqual({ used: 1, asked: 2, ordered: 1 })
    const become = (mode: 'real' | 'sandbox') =>
      gateway.store.db.updateTable('account').set({ mode }).where('id', '=', id).execute()
    await become('real')
    expect(await found()).toEqual({ used: 0, asked: 0, ordered: 0 })
    expect(await operator.all(`/admin/tasks?account=${id}`)).toHaveLength(1)
    for (const whose of [`account=${id}`, `key=${keyId}`, `account=${id}&key=${keyId}`]) {
      const { data } = await operator.get<{ data: Sum[] }>(`/admin/usage?${whose}`)
      expect({ whose, data }).toMatchObject({ whose, data: [{ requests: 2 }] })
      expect(await operator.all(`/admin/requests?${whose}`)).toHaveLength(2)
    }
    expect(await operator.all(`/admin/requests?account=${gateway.accountId}&key=${keyId}`)).toEqual([])
    await become('sandbox')
    await gateway.assertBooks()
  } finally {
    await gateway.close()
  }
}, 120_000)
