import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { makeAdminRoutes, type AdminParts } from '../../src/admin/routes.ts'
import { makeCli } from '../support/cli.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { movableClock } from '../support/movable-clock.ts'
import { errorOf, operatorOf, jsonClient } from '../support/operator.ts'
import { lines, sendRaw } from '../support/raw-socket.ts'

const clock = movableClock()
let gateway: TestGateway

beforeAll(async () => {
  gateway = await startTestGateway({
    clock,
    yaml: 'trustedProxies: ["127.0.0.1"]\nlimits: { authFailuresPerMinute: 20 }',
  })
})
afterAll(async () => {
  await gateway.assertBooks()
  await gateway.close()
})

const refused = { status: 401, type: 'invalid_request_error', param: null, code: 'invalid_api_key' }
const routes = makeAdminRoutes({} as AdminParts)

describe('every route of the operator', () => {
  test('the route table matches the contract, and only health is open', () => {
    expect(routes.map(({ method, path, auth }) => `${method} ${path} ${auth}`)).toEqual([
      'POST /admin/accounts admin',
      'GET /admin/accounts admin',
      'GET /admin/accounts/{id} admin',
      'PATCH /admin/accounts/{id} admin',
      'POST /admin/accounts/{id}/credits admin',
      'GET /admin/accounts/{id}/credits admin',
      'POST /admin/accounts/{id}/webhook-secret admin',
      'POST /admin/keys admin',
      'GET /admin/keys admin',
      'PATCH /admin/keys/{id} admin',
      'DELETE /admin/keys/{id} admin',
      'GET /admin/usage admin',
      'GET /admin/requests admin',
      'GET /admin/requests/{id} admin',
      'GET /admin/tasks admin',
      'GET /admin/tasks/{id} admin',
      'GET /admin/webhooks admin',
      'POST /admin/webhooks/{id}/resend admin',
      'GET /admin/audit admin',
      'GET /admin/models admin',
      'GET /admin/channels admin',
      'GET /metrics admin',
      'GET /healthz open',
    ])
  })

  test.each(routes.filter(({ auth }) => auth === 'admin').map(({ method, path }) => [method, path] as const))(
    "%s %s refuses every key but the operator's, and changes nothing",
    async (method, path) => {
      const real = path.replace('{id}', gateway.accountId)
      const body = method === 'POST' || method === 'PATCH' ? { name: 'mallory', amount: '1' } : undefined
      const before = await operatorOf(gateway).all('/admin/audit')
      for (const key of [undefined, gateway.key, `${gateway.adminKey}x`, gateway.adminKey.toUpperCase()]) {
        const told = await jsonClient(gateway.adminUrl, key).call(method, real, body)
        expect(errorOf(told)).toEqual(refused)
        expect(told.headers.get('www-authenticate')).toStartWith('Bearer')
        expect(told.headers.get('x-request-id')).toStartWith('req_')
      }
      expect(await operatorOf(gateway).all('/admin/audit')).toEqual(before)
    },
  )

  test("the operator's key is refused on the public port, and customers' paths are unknown on the admin port", async () => {
    const lost = jsonClient(gateway.url, gateway.adminKey)
    for (const path of ['/v1/models', '/v1/usage', '/v1/balance']) {
      expect(errorOf(await lost.call('GET', path))).toEqual(refused)
    }
    const operator = operatorOf(gateway)
    expect((await operator.call('GET', '/v1/models')).status).toBe(404)
    expect((await jsonClient(gateway.url, gateway.adminKey).call('GET', '/admin/accounts')).status).toBe(404)
  })

  test('health is open; other paths, methods and hosts are refused in the same shape', async () => {
    const stranger = jsonClient(gateway.adminUrl, undefined)
    expect(await stranger.get('/healthz')).toEqual({ status: 'ok' })
    const operator = operatorOf(gateway)
    expect(errorOf(await operator.call('GET', '/admin/nothing'))).toMatchObject({ status: 404, code: 'unknown_url' })
    const wrong = await operator.call('DELETE', '/admin/usage')
    expect(errorOf(wrong)).toMatchObject({ status: 405, code: 'method_not_supported' })
    expect(wrong.headers.get('allow')).toBe('GET, HEAD')
    const odd = await sendRaw(gateway.adminUrl, lines('GET /admin/keys HTTP/1.1', 'Host: localhost/#@evil'))
    expect(odd.status).toBe(400)
  })

  test.each(['%00', '%2e%2e', '..%2f', 'acc_%25', encodeURIComponent("' or '1'='1"), 'x'.repeat(500)])(
    'the id %s is a 404',
    async (id) => {
      const operator = operatorOf(gateway)
      for (const path of [`/admin/accounts/${id}`, `/admin/requests/${id}`]) {
        expect((await operator.call('GET', path)).status).toBe(404)
      }
      expect((await operator.call('DELETE', `/admin/keys/${id}`)).status).toBe(404)
    },
  )
})

test('repeated wrong keys from one address end in a 429, and a good key still works there', async () => {
  const from = { 'x-forwarded-for': '203.0.113.5' }
  const guess = (n: number) => jsonClient(gateway.adminUrl, `adm-${String(n).padStart(40, 'g')}`)
  for (let n = 0; n < 20; n++) expect((await guess(n).call('GET', '/admin/keys', undefined, from)).status).toBe(401)
  const limited = await guess(99).call('GET', '/admin/keys', undefined, from)
  expect(errorOf(limited)).toMatchObject({ status: 429, code: 'rate_limit_exceeded' })
  expect(Number(limited.headers.get('retry-after'))).toBeWithin(1, 61)
  expect((await operatorOf(gateway).call('GET', '/admin/keys', undefined, from)).status).toBe(200)
  clock.advance(61_000)
  expect((await guess(100).call('GET', '/admin/keys', undefined, from)).status).toBe(401)
})

test("an operator's key from the environment also works at an address that is limited for guessing", async () => {
  const chosen = `adm-${'c'.repeat(40)}`
  const other = await startTestGateway({
    yaml: 'trustedProxies: ["127.0.0.1"]\nlimits: { authFailuresPerMinute: 2 }',
    environment: { TURNPIKE_ADMIN_KEY: chosen },
  })
  try {
    const statusOf = async (key: string) =>
      (
        await jsonClient(other.adminUrl, key).call('GET', '/admin/keys', undefined, {
          'x-forwarded-for': '203.0.113.5',
        })
      ).status
    expect(await statusOf(chosen)).toBe(200)
    for (const status of [401, 401, 429]) expect(await statusOf(`adm-${'g'.repeat(40)}`)).toBe(status)
    expect(await statusOf(chosen)).toBe(200)
  } finally {
    await other.close()
  }
})

test('malformed, mistyped, oversized and incomplete bodies are refused', async () => {
  const operator = operatorOf(gateway)
  const make = (body: unknown, headers = {}) => operator.call('POST', '/admin/accounts', body, headers)
  expect(errorOf(await make('{"name":'))).toMatchObject({ status: 400, code: 'invalid_json' })
  expect(errorOf(await make('[]'))).toMatchObject({ status: 400 })
  expect(errorOf(await make({ name: 'x', 'content-type': 1 }))).toMatchObject({ status: 400, param: 'content-type' })
  expect(errorOf(await make('name=x', { 'content-type': 'text/plain' }))).toMatchObject({ status: 415 })
  expect(errorOf(await make({ name: 'x'.repeat(70_000) }))).toMatchObject({ status: 413 })
  expect(errorOf(await make({}))).toMatchObject({ status: 400, param: 'name', code: 'missing_required_parameter' })
})

test('an admin port in use fails the start with one line that names the setting', async () => {
  const cli = makeCli()
  const other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('') })
  try {
    const taken = String(other.port)
    const { code, out, err } = await cli.run(['serve'], { ADMIN_PORT: taken })
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toBe(
      `turnpike: port ${taken} of 127.0.0.1 is in use: give another as ADMIN_PORT, or 0 for a free one\n`,
    )
  } finally {
    await other.stop(true)
    await cli.close()
  }
}, 120_000)
