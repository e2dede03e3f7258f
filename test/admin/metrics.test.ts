import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse as parseYaml } from 'yaml'
import { makeAdminRoutes, type AdminParts } from '../../src/admin/routes.ts'
import { readEnvironment } from '../../src/config/environment.ts'
import { metrics, tokenKinds } from '../../src/telemetry/names.ts'
import { type Exposition, readExposition } from '../support/exposition.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { errorOf, operatorOf, jsonClient } from '../support/operator.ts'
import { coldStartMs, sharedPostgres } from '../support/postgres.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { says } from '../support/streams.ts'
import { tapPostgres } from '../support/tapped-postgres.ts'

async function scrape({ adminUrl, adminKey }: Pick<TestGateway, 'adminUrl' | 'adminKey'>): Promise<Exposition> {
  const response = await fetch(`${adminUrl}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  return readExposition(await response.text())
}

function add(sum: Record<string, number>, key: string, amount: number): void {
  if (amount > 0) sum[key] = (sum[key] ?? 0) + amount
}

function nanos(dollars: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(dollars).map(([key, amount]) => [key, Math.round(amount * 1e9)]))
}

const chat = '/v1/chat/completions'
const videos = '/v1/videos/generations'
const video = { model: 'wan2.6-t2v', duration: 5, resolution: '720p' }

describe.each(['sqlite', 'postgres'] as const)('metrics on %s', (engine) => {
  let gateway: TestGateway
  let receiver: Receiver

  beforeAll(async () => {
    gateway = await startTestGateway({ engine, mode: 'leased' })
    receiver = await startReceiver()
  }, coldStartMs)
  afterAll(async () => {
    await gateway.assertBooks()
    await gateway.close()
    receiver.close()
  })

  async function ask(path: string, body: unknown, status: number, headers: Record<string, string> = {}) {
    const response = await gateway.post(path, body, headers)
    await response.arrayBuffer()
    expect({ path, status: response.status }).toEqual({ path, status })
  }

  /** The sums of everything that was admitted, from the database, under the labels of the metrics. */
  async function books() {
    await until(() => gateway.openHolds() === 0)
    await gateway.settleBooks()
    const requests = await gateway.store.db.selectFrom('request').selectAll().execute()
    const attempts = await gateway.store.db.selectFrom('attempt').selectAll().execute()
    const sums: Record<'requests' | 'tokens' | 'charged' | 'cost' | 'attempts', Record<string, number>> = {
      requests: {},
      tokens: {},
      charged: {},
      cost: {},
      attempts: {},
    }
    for (const { capability, model, status, cost, usage } of requests) {
      const of = `${capability} ${model}`
      add(sums.requests, `${of} ${String(status)[0]}xx`, 1)
      add(sums.charged, of, Number(cost))
      for (const [kind, shown] of Object.entries(tokenKinds)) {
        add(sums.tokens, `${of} ${shown}`, usage?.[kind as keyof typeof tokenKinds] ?? 0)
      }
    }
    for (const { request_id, channel, vendor, status, delivered, vendor_cost } of attempts) {
      const { capability, model } = requests.find(({ id }) => id === request_id) ?? {}
      add(sums.cost, `${capability} ${model}`, Number(vendor_cost))
      add(sums.attempts, `${channel} ${vendor} ${delivered ? 'delivered' : status === 0 ? 'unanswered' : status}`, 1)
    }
    return sums
  }

  test("requests of every capability are counted, and their money equals the ledger's", async () => {
    await ask(chat, says('Hello!'), 200)
    await ask(chat, says('Hello again!'), 200)
    await ask(chat, says('Stream it.', { stream: true }), 200)
    await ask(chat, says('No. sandbox:status=400'), 400)
    await ask('/v1/messages', { ...says('Hello!', { model: 'claude-sonnet-4-5' }), max_tokens: 50 }, 200)
    await ask('/v1/embeddings', { model: 'text-embedding-3-small', input: 'Hello!' }, 200)
    await ask('/v1/images/generations', { model: 'gpt-image-1-mini', prompt: 'A fox.' }, 200)
    await ask('/v1/audio/speech', { model: 'tts-1', voice: 'alloy', input: 'Hello!' }, 200)
    await ask(videos, { ...video, input: { prompt: 'A fox.' }, webhook_url: receiver.url() }, 202)
    await until(() => receiver.received.length === 1)

    const ledger = await books()
    await until(
      async () => (await scrape(gateway)).value('turnpike_webhook_deliveries_total', { outcome: 'delivered' }) === 1,
    )
    const found = await scrape(gateway)
    expect(found.all('turnpike_requests_total')).toEqual({
      'chat gpt-4o-mini 2xx': 3,
      'chat gpt-4o-mini 4xx': 1,
      'chat claude-sonnet-4-5 2xx': 1,
      'embeddings text-embedding-3-small 2xx': 1,
      'images gpt-image-1-mini 2xx': 1,
      'speech tts-1 2xx': 1,
      'video wan2.6-t2v 2xx': 1,
    })
    expect(found.all('turnpike_requests_total')).toEqual(ledger.requests)
    expect(found.all('turnpike_tokens_total')).toEqual(ledger.tokens)
    expect(nanos(found.all('turnpike_charged_dollars_total'))).toEqual(ledger.charged)
    expect(nanos(found.all('turnpike_vendor_cost_dollars_total'))).toEqual(ledger.cost)
    expect(Object.keys(ledger.charged)).toHaveLength(6)
    expect(ledger.attempts).toMatchObject({ 'openai openai 400': 1 })
    const { 'openai openai 400': refused = 0, ...others } = ledger.attempts
    expect(found.all('turnpike_attempts_total')).toEqual({ ...others, 'openai openai refused': refused })

    expect(found.value('turnpike_characters_total', { capability: 'speech', model: 'tts-1' })).toBe('Hello!'.length)
    expect(found.value('turnpike_video_seconds_total', { capability: 'video', model: video.model })).toBe(5)
    expect(found.all('turnpike_video_tasks_ended_total')).toEqual({ [`${video.model} succeeded`]: 1 })
    expect(found.value('turnpike_request_duration_seconds_count', { capability: 'chat', streamed: 'true' })).toBe(1)
    expect(found.value('turnpike_request_duration_seconds_count', { capability: 'chat', streamed: 'false' })).toBe(4)
    // A request that the vendor rejects after it was admitted counts as answered, not as refused.
    expect(found.value('turnpike_http_responses_total', { route: `POST ${chat}`, status: '400' })).toBe(1)
    expect(found.value('turnpike_http_responses_total', { route: `POST ${chat}`, status: '200' })).toBe(3)
    expect(found.all('turnpike_requests_refused_total')).toEqual({})
    expect(found.value('turnpike_open_holds')).toBe(0)
    expect(found.value('turnpike_unposted_endings')).toBe(0)
    expect(found.value('turnpike_database_up')).toBe(1)
    expect(found.value('turnpike_draining')).toBe(0)
    expect(found.value('turnpike_build_info', { version: '1.0.0', mode: 'sandbox' })).toBe(1)
    expect(found.value('turnpike_webhooks_waiting')).toBe(0)
    expect(found.value('process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
    expect(new Set(found.kinds.keys())).toEqual(new Set(Object.values(metrics).map(({ name }) => name)))
  }, 120_000)

  test('requests refused before admission are counted by route and status', async () => {
    const poor = await gateway.account({ dollars: '0.000000001' })
    await ask(chat, says('Hello!'), 401, { authorization: 'Bearer sk-nobody' })
    await ask(chat, says('Hello!'), 402, { authorization: `Bearer ${poor.key}` })
    await ask(chat, says('Hello!', { model: 'nothing-of-ours' }), 404)
    await ask(chat, says('Hello!', { temperature: 9 }), 400)
    await ask(videos, { ...video, duration: 999, input: { prompt: 'A fox.' } }, 400)
    await ask('/v1/nothing', {}, 404)
    // This one had its hold before the vendor rejected it.
    await ask(videos, { ...video, input: { prompt: 'A fox. sandbox:status=400' } }, 400)
    const found = await scrape(gateway)
    expect(found.all('turnpike_requests_refused_total')).toEqual({
      [`POST ${chat} 400`]: 1,
      [`POST ${chat} 401`]: 1,
      [`POST ${chat} 402`]: 1,
      [`POST ${chat} 404`]: 1,
      [`POST ${videos} 400`]: 1,
      'unknown 404': 1,
    })
    expect(found.value('turnpike_http_responses_total', { route: `POST ${videos}`, status: '400' })).toBe(2)
    expect(found.all('turnpike_video_tasks_ended_total')).toMatchObject({ [`${video.model} refused`]: 1 })
    expect(found.all('turnpike_requests_total')).toEqual((await books()).requests)
  })

  test('a thousand unknown models, paths and users add no series', async () => {
    const visit = async (n: number) => {
      await ask(chat, says('Hello!', { model: `made-up-${n}`, user: `user-${n}` }), 404)
      if (n % 10 === 0) await ask(`/v1/made-up/${n}?query=${n}`, {}, 404)
    }
    await visit(0)
    const before = await scrape(gateway)
    for (let n = 1; n <= 1_000; n += 50) await Promise.all(Array.from({ length: 50 }, (_, i) => visit(n + i)))
    const after = await scrape(gateway)
    expect(after.samples.map(({ name, labels }) => ({ name, labels }))).toEqual(
      before.samples.map(({ name, labels }) => ({ name, labels })),
    )
    const refusals = { route: `POST ${chat}`, status: '404' }
    const counted = (found: Exposition) => found.value('turnpike_requests_refused_total', refusals) ?? 0
    expect(counted(after) - counted(before)).toBe(1_000)
    expect(JSON.stringify(after.samples)).not.toContain('made-up')
  }, 120_000)

  test('open holds and open video tasks are shown while they are open', async () => {
    const stream = await fetch(gateway.url + chat, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(says('sandbox:endless sandbox:pace=20', { stream: true, max_tokens: 1_000 })),
    })
    expect(stream.status).toBe(200)
    const order = await gateway.post(videos, { ...video, input: { prompt: 'A fox. sandbox:queued=60000' } })
    const { id } = (await order.json()) as { id: string }
    const found = await scrape(gateway)
    expect(found.value('turnpike_open_holds')).toBe(1)
    expect(found.all('turnpike_video_tasks_open')).toEqual({ creating: 0, submitted: 1, running: 0 })
    // Used to the end: the connection of an answer that nothing refers to any more is closed with it.
    await stream.body?.cancel()
    const headers = { authorization: `Bearer ${gateway.key}` }
    expect((await fetch(`${gateway.url}${videos}/${id}`, { method: 'DELETE', headers })).status).toBe(200)
    await until(() => gateway.openHolds() === 0)
    const after = await scrape(gateway)
    expect(after.value('turnpike_open_holds')).toBe(0)
    expect(after.all('turnpike_video_tasks_open')).toEqual({ creating: 0, submitted: 0, running: 0 })
    expect(after.all('turnpike_video_tasks_ended_total')).toMatchObject({ [`${video.model} cancelled`]: 1 })
    expect(after.all('turnpike_requests_total')).toEqual((await books()).requests)
  }, 120_000)
})

describe('a scrape', () => {
  const opened: TestGateway[] = []
  const start = async (options: Parameters<typeof startTestGateway>[0] = {}) => {
    const gateway = await startTestGateway(options)
    opened.push(gateway)
    return gateway
  }
  afterEach(async () => {
    for (const gateway of opened.splice(0)) await gateway.close()
  })

  test('metrics are served to operators alone, on the admin port', async () => {
    const gateway = await start()
    for (const key of [undefined, gateway.key, `${gateway.adminKey}x`]) {
      expect(errorOf(await jsonClient(gateway.adminUrl, key).call('GET', '/metrics'))).toMatchObject({ status: 401 })
    }
    expect(errorOf(await operatorOf(gateway).call('POST', '/metrics', {}))).toMatchObject({ status: 405 })
    expect(errorOf(await jsonClient(gateway.url, gateway.key).call('GET', '/metrics'))).toMatchObject({ status: 404 })
    const found = await scrape(gateway)
    expect(found.value('turnpike_requests_refused_total', { route: 'GET /metrics', status: '401' })).toBe(3)
  })

  test('the metrics key can scrape and opens nothing else', async () => {
    const key = `mtr-${'m'.repeat(32)}`
    const [gateway, without] = [await start({ environment: { TURNPIKE_METRICS_KEY: key } }), await start()]
    const scraper = jsonClient(gateway.adminUrl, key)
    expect((await scrape({ ...gateway, adminKey: key })).value('turnpike_database_up')).toBe(1)
    for (const almost of [`${key}m`, key.slice(0, -1), key.toUpperCase(), 'mtr-']) {
      expect(errorOf(await jsonClient(gateway.adminUrl, almost).call('GET', '/metrics'))).toMatchObject({ status: 401 })
    }
    const routes = makeAdminRoutes({} as AdminParts).filter(({ auth, path }) => auth === 'admin' && path !== '/metrics')
    expect(routes.length).toBeGreaterThan(15)
    for (const { method, path } of routes) {
      const body = method === 'POST' || method === 'PATCH' ? {} : undefined
      const told = await scraper.call(method, path.replace('{id}', gateway.accountId), body)
      expect({ path, status: told.status }).toEqual({ path, status: 401 })
    }
    expect((await jsonClient(gateway.url, key).call('GET', '/v1/models')).status).toBe(401)
    expect((await jsonClient(without.adminUrl, key).call('GET', '/metrics')).status).toBe(401)
  })

  test('a scrape has only the metrics of its own gateway if two run in one process', async () => {
    const [one, other] = [await start(), await start()]
    await (await one.post(chat, says('Hello!'))).arrayBuffer()
    const [here, there] = await Promise.all([scrape(one), scrape(other)])
    expect(here.all('turnpike_requests_total')).toEqual({ 'chat gpt-4o-mini 2xx': 1 })
    expect(there.all('turnpike_requests_total')).toEqual({})
    expect(there.value('turnpike_http_responses_total', { route: `POST ${chat}`, status: '200' })).toBeUndefined()
  })

  test('unknown task states of a vendor are counted by channel', async () => {
    const gateway = await start()
    const order = { ...video, input: { prompt: 'A fox. sandbox:odd-state=DREAMING sandbox:slow=5000' } }
    expect((await gateway.post(videos, order)).status).toBe(202)
    const name = 'turnpike_unknown_task_states_total'
    await until(async () => ((await scrape(gateway)).value(name, { channel: 'dashscope' }) ?? 0) > 0)
    expect((await scrape(gateway)).value(name, { channel: 'ark' })).toBe(0)
  })

  test('a node that is about to stop is reported as draining', async () => {
    const gateway = await start()
    expect((await scrape(gateway)).value('turnpike_draining')).toBe(0)
    const closed = gateway.close({ drainMs: 1_500 })
    const [ready, found] = await Promise.all([fetch(`${gateway.url}/readyz`), scrape(gateway)])
    expect([ready.status, found.value('turnpike_draining')]).toEqual([503, 1])
    opened.splice(0)
    await closed
  })

  test('a busy event loop is measured as delay', async () => {
    const gateway = await start()
    const late = async () => (await scrape(gateway)).value('turnpike_event_loop_delay_seconds_sum') ?? 0
    const before = await late()
    const busyUntil = performance.now() + 200
    while (performance.now() < busyUntil);
    await until(async () => (await late()) - before > 0.1)
  })

  test(
    "the metrics key and a known operator's key can scrape without the database, others get a 503",
    async () => {
      const server = await sharedPostgres()
      const database = await server.freshDatabase()
      const way = await tapPostgres(database)
      const key = `mtr-${'m'.repeat(32)}`
      const environment = { TURNPIKE_METRICS_KEY: key }
      const gateway = await start({ databaseUrl: way.url, mode: 'leased', environment, impatient: true })
      await (await gateway.post(chat, says('Hello!'))).arrayBuffer()
      const before = await scrape(gateway)
      expect(before.value('turnpike_database_up')).toBe(1)
      expect(before.value('turnpike_webhooks_waiting')).toBe(0)
      await gateway.settleBooks()
      const streamed = await gateway.post(chat, says('Hello! sandbox:tokens=20 sandbox:pace=20', { stream: true }))
      await way.close()
      await streamed.text()
      const during = await scrape(gateway)
      expect(during.value('turnpike_unposted_endings')).toBe(1)
      // The metrics key is checked without the database, even when it was never used before.
      expect((await scrape({ ...gateway, adminKey: key })).value('turnpike_database_up')).toBe(0)
      expect(during.value('turnpike_database_up')).toBe(0)
      for (const name of [
        'turnpike_webhooks_waiting',
        'turnpike_video_poll_lag_seconds',
        'turnpike_video_tasks_in_doubt',
      ]) {
        expect(during.value(name)).toBeUndefined()
      }
      expect(during.all('turnpike_video_tasks_open')).toEqual({})
      expect(during.all('turnpike_requests_total')).toEqual({ 'chat gpt-4o-mini 2xx': 2 })
      const stranger = jsonClient(gateway.adminUrl, `${gateway.adminKey}x`)
      expect((await stranger.call('GET', '/metrics')).status).toBe(503)
      opened.splice(0)
      await gateway.close()
      await server.dropDatabase(database)
    },
    coldStartMs,
  )
})

describe('the page for operators', () => {
  const page = readFileSync(join(import.meta.dir, '../../docs/operators.md'), 'utf8')

  test('the page has every metric with its labels', () => {
    for (const { name, labels } of Object.values(metrics)) {
      const row = page.split('\n').find((line) => line.startsWith('| ') && line.includes(`\`${name}\``))
      expect({ name, row }).toEqual({ name, row: expect.any(String) })
      const written = row?.split('|').at(-2) ?? ''
      for (const label of labels) if (name !== metrics.build.name) expect(written).toContain(`\`${label}\``)
    }
  })

  test('the scrape configuration on the page leads to the default admin host and port', () => {
    const [, written = ''] = /```yaml\n(scrape_configs:[^`]*)```/.exec(page) ?? []
    const { adminHost, adminPort } = readEnvironment({})
    expect(parseYaml(written)).toEqual({
      scrape_configs: [
        {
          job_name: 'turnpike',
          authorization: { credentials_file: '/etc/prometheus/turnpike-key' },
          static_configs: [{ targets: [`${adminHost}:${adminPort}`] }],
        },
      ],
    })
  })
})
