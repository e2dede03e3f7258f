import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Client } from 'pg'
import { makeAdminRoutes, type AdminParts } from '../../src/admin/routes.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { errorOf, operatorOf, jsonClient, type JsonClient, type Told } from '../support/operator.ts'
import { channelsAt, isTold, startOwnGateway, type OwnGateway } from '../support/own-gateway.ts'
import { coldStartMs, sharedPostgres } from '../support/postgres.ts'
import { says } from '../support/streams.ts'
import { tapPostgres, type TappedPostgres } from '../support/tapped-postgres.ts'

// B-20. There is no search: every filter is compared as it is, so that there is no pattern to abuse. What is tried is
// that this is so, that no page is longer than it may be, and that no list keeps the database for long.

type Who = 'operator' | 'customer'
/** A list, what it may be filtered by with any text, and the table that it is read from. */
type List = { readonly who: Who; readonly path: string; readonly filters: readonly string[]; readonly table?: string }

const lists: readonly List[] = [
  { who: 'operator', path: '/admin/accounts', filters: ['after'], table: 'account' },
  { who: 'operator', path: '/admin/keys', filters: ['account', 'after'], table: 'api_key' },
  { who: 'operator', path: '/admin/usage', filters: ['account', 'key', 'model'] },
  { who: 'operator', path: '/admin/usage?group_by=model', filters: ['account', 'key', 'model', 'after'] },
  { who: 'operator', path: '/admin/requests', filters: ['account', 'key', 'model', 'after'], table: 'request' },
  { who: 'operator', path: '/admin/tasks', filters: ['account', 'model', 'after'], table: 'task' },
  { who: 'operator', path: '/admin/webhooks', filters: ['account', 'task', 'after'], table: 'webhook_event' },
  { who: 'operator', path: '/admin/audit', filters: ['after'], table: 'audit' },
  { who: 'operator', path: '/admin/models', filters: ['after'] },
  { who: 'operator', path: '/admin/channels', filters: ['after'] },
  { who: 'customer', path: '/v1/usage', filters: ['model'], table: 'usage_day' },
  { who: 'customer', path: '/v1/usage?group_by=model', filters: ['model', 'after'], table: 'usage_day' },
  { who: 'customer', path: '/v1/usage?records=true', filters: ['after'], table: 'request' },
  { who: 'customer', path: '/v1/videos/generations', filters: ['model', 'after'], table: 'task' },
]

test("the table has every list of the operator's API", () => {
  const paths = makeAdminRoutes({} as AdminParts).filter(({ method, auth }) => method === 'GET' && auth === 'admin')
  const listed = paths.map(({ path }) => path).filter((path) => !path.includes('{') && path.startsWith('/admin/'))
  const known = lists.filter(({ who }) => who === 'operator').map(({ path }) => path.replace(/\?.*/, ''))
  expect(listed.toSorted()).toEqual([...new Set(known)].toSorted())
})

const joined = (path: string, query: string) => `${path}${path.includes('?') ? '&' : '?'}${query}`

/** Names that a pattern would take for one another. */
const names = ['a_b', 'aXb', 'a%b', 'a%', '%', '_', 'a\\_b', '%%', "a'b", 'A_B']

describe.each(['sqlite', 'postgres'] as const)('lists on %s', (engine) => {
  let gateway: TestGateway
  let databaseUrl: string | undefined
  let tapped: TappedPostgres | undefined
  let speakers: Readonly<Record<Who, JsonClient>>

  beforeAll(async () => {
    if (engine === 'postgres') {
      databaseUrl = await (await sharedPostgres()).freshDatabase()
      tapped = await tapPostgres(databaseUrl)
    }
    gateway = await startTestGateway(tapped === undefined ? {} : { databaseUrl: tapped.url, impatient: true })
    speakers = { operator: operatorOf(gateway), customer: jsonClient(gateway.url, gateway.key) }
    for (const name of names) {
      await speakers.operator.post('/admin/accounts', { name, credit: '1' })
      const { key } = await speakers.operator.post<{ key: string }>('/admin/keys', { account: name })
      const response = await gateway.post('/v1/chat/completions', says('Hi'), { authorization: `Bearer ${key}` })
      expect(response.status).toBe(200)
    }
  }, coldStartMs)
  afterAll(async () => {
    await gateway.assertBooks()
    await gateway.close()
    await tapped?.close()
    if (databaseUrl !== undefined) await (await sharedPostgres()).dropDatabase(databaseUrl)
  })

  const get = ({ who, path }: List, query: string): Promise<Told> => speakers[who].call('GET', joined(path, query))

  test.each(lists)('$path: a limit from 1 to 100 is accepted, and any other value is a 400', async (list) => {
    for (const limit of [
      '0',
      '101',
      '999',
      '1000',
      '-1',
      '+5',
      '1.5',
      '1e2',
      '0x10',
      'ten',
      '',
      '%25',
      '٣',
      '9'.repeat(400),
    ]) {
      const told = await get(list, `limit=${encodeURIComponent(limit)}`)
      expect({ limit, ...errorOf(told) }).toMatchObject({ limit, status: 400, param: 'limit' })
    }
    for (const limit of [1, 2, 100]) {
      const { status, body } = await get(list, `limit=${limit}`)
      expect(status).toBe(200)
      expect((body['data'] as unknown[]).length).toBeLessThanOrEqual(limit)
    }
  })

  test('a page has the length that was asked for, and 20 by default', async () => {
    for (let at = 0; at < 20; at++) await speakers.operator.post('/admin/accounts', { name: `one of many ${at}` })
    const lengths = ['', '?limit=7', '?limit=100'].map(async (query) => {
      const { data } = await speakers.operator.get<{ data: unknown[] }>(`/admin/accounts${query}`)
      return data.length
    })
    expect(await Promise.all(lengths)).toEqual([20, 7, names.length + 21])
  })

  test.each(lists)('$path: parameters to search, sort or skip are refused', async (list) => {
    for (const name of ['q', 'search', 'name', 'name_like', 'sort', 'order_by', 'offset', 'page', 'limit[]', 'where']) {
      // None of these is a parameter of any list.
      expect(errorOf(await get(list, `${encodeURIComponent(name)}=%25`))).toMatchObject({ status: 400, param: name })
    }
  })

  const wild = [
    '%',
    '%%',
    '_',
    '%'.repeat(200),
    '_'.repeat(200),
    'a%',
    'a_b%',
    '\\',
    '\\%',
    "'",
    "' or '1'='1",
    '*',
    '.*',
    '日本',
    '\ufffd',
  ]
  const broken = ['\0', 'a\0b', '\n', '\u007f', '\u0085', 'x'.repeat(201), '%'.repeat(5_000)]

  test.each(lists)('$path: filters compare text literally, without patterns', async (list) => {
    for (const filter of list.filters) {
      for (const text of wild) {
        const told = await get(list, `${filter}=${encodeURIComponent(text)}`)
        // An unknown place in the list, account or key is refused by the name of its parameter.
        const isNamed = filter === 'after' || filter === 'account' || filter === 'key'
        if (isNamed && told.status === 400 && !(filter === 'account' && names.includes(text))) {
          expect(errorOf(told).param).toBe(filter)
          continue
        }
        expect({ filter, text, status: told.status }).toEqual({ filter, text, status: 200 })
        if (filter === 'after' || names.includes(text)) continue
        expect({ filter, text, found: foundIn(told.body) }).toEqual({ filter, text, found: 0 })
      }
      for (const text of broken) {
        const told = errorOf(await get(list, `${filter}=${encodeURIComponent(text)}`))
        expect(told).toMatchObject({ status: 400, param: filter })
      }
    }
  })

  test('an account is found by its exact name only', async () => {
    for (const name of names) {
      const by = `account=${encodeURIComponent(name)}`
      const keys = await speakers.operator.all<{ account: { name: string } }>(`/admin/keys?${by}`)
      const requests = await speakers.operator.all(`/admin/requests?${by}`)
      const [sum] = await speakers.operator.all<{ requests: number }>(`/admin/usage?${by}`)
      expect({ name, keys: keys.length, requests: requests.length, used: sum?.requests }).toEqual({
        name,
        keys: 1,
        requests: 1,
        used: 1,
      })
    }
  })

  if (engine === 'postgres') {
    test('no SQL statement has a pattern in it', () => {
      const said = [...(tapped?.statements() ?? [])]
      expect(said.length).toBeGreaterThan(20)
      expect(said.filter((text) => /\b(?:i?like|similar to|regexp\w*)\b|[^<>!=]~/i.test(text))).toEqual([])
    })
  }
})

/** Rows, or what a sum of them comes to. */
function foundIn(body: Record<string, unknown>): number {
  const data = body['data'] as { requests?: number }[]
  const sums = data.map(({ requests }) => requests)
  return sums.every((sum) => sum === 0) ? 0 : data.length
}

// The database gives up a statement of a request after a second, and of a customer's sums after two.
describe('a list whose table is locked', () => {
  const lateMs = 15_000
  let gateway: TestGateway
  let databaseUrl: string
  let locker: Client

  beforeAll(async () => {
    databaseUrl = await (await sharedPostgres()).freshDatabase()
    gateway = await startTestGateway({ databaseUrl, impatient: true })
    locker = new Client({ connectionString: databaseUrl })
    await locker.connect()
    // Both keys are cached from now on, so that neither has to be looked up behind a lock.
    await jsonClient(gateway.url, gateway.key).get('/v1/balance')
    await operatorOf(gateway).get('/admin/accounts')
  }, coldStartMs)
  afterAll(async () => {
    await locker.end()
    await gateway.close()
    await (await sharedPostgres()).dropDatabase(databaseUrl)
  })

  test.each(lists.filter(({ table }) => table !== undefined && table !== 'account' && table !== 'api_key'))(
    '$path is a 503 in time, and works again afterwards',
    async ({ who, path, table }) => {
      const asker = who === 'operator' ? operatorOf(gateway) : jsonClient(gateway.url, gateway.key)
      await locker.query('begin')
      await locker.query(`lock table ${table} in access exclusive mode`)
      const startedAt = performance.now()
      try {
        expect((await asker.call('GET', path)).status).toBe(503)
        // Reports of an operator would have a minute.
        expect(performance.now() - startedAt).toBeLessThan(lateMs)
      } finally {
        await locker.query('rollback')
      }
      expect((await asker.call('GET', path)).status).toBe(200)
    },
    coldStartMs,
  )
})

describe.skipIf(!isTold)("lists on SQLite, where queries run in the gateway's own thread", () => {
  const stallMsMax = 50
  let gateway: OwnGateway
  let operator: JsonClient

  beforeAll(async () => {
    gateway = await startOwnGateway(channelsAt(() => 'http://127.0.0.1:9'))
    const [, url = ''] = /operator's API is at (http:\S+)\/admin/.exec(gateway.output()) ?? []
    const [, key = ''] = /^ {2}(adm-\S+)$/m.exec(gateway.output()) ?? []
    operator = jsonClient(url, key)
    for (let at = 0; at < 100; at++)
      await operator.post('/admin/accounts', { name: `${'a'.repeat(60)}${at}`, credit: '1' })
  }, coldStartMs)
  afterAll(() => gateway?.close())

  test.each(lists)('$path does not stall the loop for any filter', async ({ who, path, filters }) => {
    const asker = who === 'operator' ? operator : jsonClient(gateway.url, gateway.key)
    for (const filter of filters) {
      for (const text of ['%'.repeat(200), '%a'.repeat(100), '_%'.repeat(100), `${'a'.repeat(199)}!`]) {
        const query = joined(path, `limit=100&${filter}=${encodeURIComponent(text)}`)
        const { result, stallMs } = await gateway.stallOf(() => asker.call('GET', query), stallMsMax)
        expect([200, 400]).toContain(result.status)
        expect(stallMs).toBeLessThan(stallMsMax)
      }
    }
  })
})
