import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { Client } from 'pg'
import { nano } from '../../src/base/money.ts'
import { checkLedger } from '../../src/store/check.ts'
import { openStore } from '../../src/store/open.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { lastText, rpc, sendRpc, type Result } from '../support/mcp.ts'
import { sharedPostgres } from '../support/postgres.ts'
import { lines, openSocket } from '../support/raw-socket.ts'

// Whatever a client waits for when the drain is over, it gets an answer in its protocol and pays nothing.

let databaseUrl: string
let silent: ReturnType<typeof Bun.serve>
/** How many requests the server that never answers has had. */
let asked = 0

beforeEach(async () => {
  databaseUrl = await (await sharedPostgres()).freshDatabase()
  asked = 0
  silent = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    fetch: () => {
      asked++
      return new Promise<Response>(() => {})
    },
  })
})
afterEach(async () => {
  await silent.stop(true)
  await (await sharedPostgres()).dropDatabase(databaseUrl)
})

/** Every request on record after the gateway has stopped; no account may have money on hold. */
async function records() {
  const store = await openStore({ url: databaseUrl })
  expect(await checkLedger(store)).toEqual([])
  const charged = await store.db.selectFrom('account').select('id').where('held', '!=', nano(0n)).execute()
  expect(charged).toEqual([])
  const found = await store.db.selectFrom('request').select(['status', 'cost']).execute()
  await store.close()
  return found
}

async function toldToComeAgain(answer: Response) {
  expect([answer.status, answer.headers.get('x-should-retry'), answer.headers.get('retry-after')]).toEqual([
    503,
    null,
    '5',
  ])
  expect(await answer.json()).toMatchObject({ error: { message: 'The gateway is being stopped.' } })
}

const link = () => `${silent.url.origin}/artifacts/a.png`

/** A request to a model whose vendor fetches no links itself. */
const asking = (...content: object[]) => ({
  model: 'gemini-2.5-flash',
  max_tokens: 10,
  messages: [{ role: 'user', content }],
})

describe("a stop while a client's link is fetched", () => {
  test.each([
    ['/v1/chat/completions', () => asking({ type: 'image_url', image_url: { url: link() } })],
    ['/v1/messages', () => asking({ type: 'image', source: { type: 'url', url: link() } })],
    ['/v1/images/generations', () => ({ model: 'gemini-2.5-flash-image', prompt: 'Night.', image: [link()] })],
  ])('a request to %s gets a 503 that may be retried, and pays nothing', async (path, body) => {
    // What the gateway itself gave out may be on this machine: the one address that a test can have it fetch from.
    const gateway = await startTestGateway({ databaseUrl, yaml: `publicUrl: ${silent.url.origin}` })
    const answer = gateway.post(path, body())
    await until(() => asked === 1)
    const closing = gateway.close({ drainMs: 50 })
    await toldToComeAgain(await answer)
    await closing
    expect(await records()).toEqual([{ status: 503, cost: nano(0n) }])
  })
})

test('a stop while a paid image is fetched to be kept gives a final 503', async () => {
  const vendor = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () =>
      Response.json({ created: 1, data: [{ url: `${silent.url.origin}/a.png` }], usage: { generated_images: 1 } }),
  })
  const gateway = await startTestGateway({
    databaseUrl,
    yaml: `
artifacts: { keep: true }
channels: [{ id: one, vendor: ark, keys: [k], baseUrl: "${vendor.url.origin}" }]`,
  })
  const answer = gateway.post('/v1/images/generations', { model: 'doubao-seedream-4-0', prompt: 'A fox' })
  await until(() => asked === 1)
  const closing = gateway.close({ drainMs: 50 })
  const { status, headers } = await answer
  expect([status, headers.get('x-should-retry')]).toEqual([503, 'false'])
  await closing
  await vendor.stop(true)
  expect(await records()).toEqual([{ status: 503, cost: nano(0n) }])
})

/** The result of a tool, and what is said about it. */
async function callTool(gateway: TestGateway, prompt: string): Promise<Result & { readonly _meta?: object }> {
  const call = rpc('tools/call', { name: 'chat', arguments: { model: 'gpt-4o-mini', prompt } })
  return (await sendRpc(gateway, gateway.key, call)).answer['result'] as Result
}

describe.each([
  ['on the public port', ''],
  ['on a port of its own', 'mcp: { port: 0 }'],
])('a tool %s', (_, yaml) => {
  test('a call whose vendor has begun gets a 503 without a time to retry', async () => {
    const gateway = await startTestGateway({ databaseUrl, yaml })
    const told = callTool(gateway, 'sandbox:delay=60000')
    await until(async () => (await gateway.calls()).length === 1)
    const closing = gateway.close({ drainMs: 50 })
    const result = await told
    await closing
    expect(lastText(result)).toMatchObject({ error: { message: 'The gateway is being stopped.' } })
    expect(result._meta).toMatchObject({ 'turnpike/status': 503 })
    expect(result._meta).not.toHaveProperty(['turnpike/retry_after'])
    expect(await records()).toEqual([{ status: 503, cost: nano(0n) }])
  })
})

describe.each([
  ['a short body', 1_000],
  ['a long body', 1_000_000],
])('a stop while a body is still arriving: %s', (_, length) => {
  test.each([
    ['/v1/chat/completions', '"type":"overloaded_error"'],
    ['/v1/messages', '"type":"error"'],
  ])('a request to %s gets a 503 that may be retried', async (path, shape) => {
    const gateway = await startTestGateway({ databaseUrl })
    const socket = await openSocket(gateway.url)
    let text = ''
    socket.on('data', (bytes: Buffer) => (text += bytes.toString()))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    const authorization = `Authorization: Bearer ${gateway.key}`
    const head = [`POST ${path} HTTP/1.1`, 'Host: x', authorization, 'Content-Type: application/json']
    socket.write(`${lines(...head, `Content-Length: ${length}`, 'Idempotency-Key: one')}{"model":`)
    // Nothing shows that a body has begun, but a request that came after it has been answered.
    expect((await gateway.post('/v1/chat/completions', {})).status).toBe(400)
    const closing = gateway.close({ drainMs: 50 })
    await closed
    await closing
    expect(text).toStartWith('HTTP/1.1 503 ')
    expect(text).toContain('The gateway is being stopped.')
    expect(text).toContain(shape)
    expect(text).not.toContain('x-should-retry')
    expect(await records()).toEqual([])
  })
})

describe('a stop while the database does not answer', () => {
  let gateway: TestGateway
  let bystander: Client
  beforeEach(async () => {
    gateway = await startTestGateway({ databaseUrl })
    bystander = new Client({ connectionString: databaseUrl })
    await bystander.connect()
    await bystander.query('begin')
  })
  afterEach(() => bystander.end())

  const someWait = async () => {
    const { rows } = await bystander.query(
      'select 1 from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))',
    )
    return rows.length > 0
  }

  test('a usage report gets a 503 that may be retried', async () => {
    await bystander.query('lock table usage_day in access exclusive mode')
    const answer = fetch(`${gateway.url}/v1/usage`, { headers: { authorization: `Bearer ${gateway.key}` } })
    await until(someWait)
    const closing = gateway.close({ drainMs: 50 })
    await toldToComeAgain(await answer)
    await bystander.query('rollback')
    await closing
  })

  test('a request that waits for its hold gets a 503, and its Idempotency-Key stays free', async () => {
    await bystander.query('select 1 from account for update')
    const messages = [{ role: 'user', content: 'Hello!' }]
    const asked = { model: 'gpt-4o-mini', max_tokens: 10, messages }
    const answer = gateway.post('/v1/chat/completions', asked, { 'idempotency-key': 'one' })
    await until(someWait)
    const closing = gateway.close({ drainMs: 50 })
    await toldToComeAgain(await answer)
    await bystander.query('rollback')
    await closing
    expect(await records()).toEqual([{ status: 503, cost: nano(0n) }])
    const kept = await openStore({ url: databaseUrl })
    expect(await kept.db.selectFrom('idempotency').selectAll().execute()).toEqual([])
    await kept.close()
  })

  test('a tool call that waits for its hold gets a 503 with a time to retry', async () => {
    await bystander.query('select 1 from account for update')
    const told = callTool(gateway, 'Hello!')
    await until(someWait)
    const closing = gateway.close({ drainMs: 50 })
    const result = await told
    await bystander.query('rollback')
    await closing
    expect(lastText(result)).toMatchObject({ error: { message: 'The gateway is being stopped.' } })
    expect(result._meta).toMatchObject({ 'turnpike/status': 503, 'turnpike/retry_after': 5 })
    expect(await records()).toEqual([{ status: 503, cost: nano(0n) }])
  })

  test("an operator's request is completed", async () => {
    await bystander.query('lock table usage_day in access exclusive mode')
    const headers = { authorization: `Bearer ${gateway.adminKey}` }
    const answer = fetch(`${gateway.adminUrl}/admin/usage`, { headers })
    await until(someWait)
    const closing = gateway.close({ drainMs: 0 })
    const isPublic = () => fetch(`${gateway.url}/healthz`, { keepalive: false }).then(Boolean, () => false)
    await until(async () => !(await isPublic()))
    await bystander.query('rollback')
    expect((await answer).status).toBe(200)
    await closing
  })

  test('a request that waits for its settlement gets a final 503', async () => {
    const messages = [{ role: 'user', content: 'sandbox:delay=5000' }]
    const answer = gateway.post('/v1/chat/completions', { model: 'gpt-4o-mini', max_tokens: 10, messages })
    await until(async () => (await gateway.calls()).length === 1)
    await bystander.query('select 1 from account for update')
    await until(someWait)
    const closing = gateway.close({ drainMs: 50 })
    const { status, headers } = await answer
    expect([status, headers.get('x-should-retry')]).toEqual([503, 'false'])
    await bystander.query('rollback')
    await closing
  })
})
