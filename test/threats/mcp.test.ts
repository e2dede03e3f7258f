import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { thrownBy } from '../support/clients.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { connect, lastText, rpc, rpcHeaders, sendRpc, shown, type Result } from '../support/mcp.ts'
import { sendRaw } from '../support/raw-socket.ts'
import { refusedForFree } from '../support/refused.ts'
import { setLimits } from '../support/limits.ts'

let gateway: TestGateway
/** May use one model and no other. */
let narrow: { id: string; key: string }
let other: { id: string; key: string }

beforeAll(async () => {
  gateway = await startTestGateway()
  narrow = await gateway.account({ dollars: '10', models: ['gpt-4o-mini'] })
  other = await gateway.account({ dollars: '10' })
})
afterEach(() => gateway.assertBooks())
afterAll(() => gateway.close())

const chat = (prompt: string, more: Record<string, unknown> = {}, id: number | string = 0) =>
  rpc('tools/call', { name: 'chat', arguments: { model: 'gpt-4o-mini', prompt, ...more } }, id)
const list = rpc('tools/list')

const withOrigin = async (origin: string) => (await sendRpc(gateway, gateway.key, list, { origin })).status

const withHost = async (host: string, asked: TestGateway = gateway) => {
  const body = JSON.stringify(list)
  const headers = { ...rpcHeaders(asked.key, list), host, 'content-length': String(body.length), connection: 'close' }
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  const text = `POST /mcp HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n${body}`
  return (await sendRaw(asked.mcpUrl, text)).status
}

const connectOlder = () => connect(gateway, 'legacy', { key: other.key })

const sendOlder = (key: string, body: object, session?: string) =>
  fetch(gateway.mcpUrl, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${key}`,
      ...(session !== undefined && { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' }),
    },
    body: JSON.stringify(body),
  })

const post = (body: string, headers: Record<string, string> = {}) =>
  fetch(gateway.mcpUrl, { method: 'POST', headers: { ...rpcHeaders(gateway.key, list), ...headers }, body })

describe('X-01: requests without a valid key', () => {
  const jwt = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from('{"sub":"root"}').toString('base64url')}.`
  test.each([
    ['no key', {}],
    ['a made-up token', { authorization: 'Bearer x' }],
    ['an unsigned JWT', { authorization: `Bearer ${jwt}` }],
    ['another scheme', { authorization: 'Basic x' }],
    ['the header of another protocol', { 'x-api-key': 'KEY' }],
    ['the operator’s key', { authorization: 'Bearer ADMIN' }],
  ])('a request with %s is a 401', async (_name, given) => {
    const secrets: Record<string, string> = { KEY: gateway.key, ADMIN: gateway.adminKey }
    const headers = Object.fromEntries(
      Object.entries(given).map(([name, value]) => [name, value.replace(/KEY|ADMIN/, (word) => secrets[word] ?? '')]),
    )
    for (const body of [list, rpc('server/discover'), chat('Hi')]) {
      const { status, answer, ...got } = await refusedForFree(gateway, () => sendRpc(gateway, undefined, body, headers))
      expect(status).toBe(401)
      expect(got.headers.get('www-authenticate')).toBe('Bearer realm="turnpike", error="invalid_token"')
      expect(answer).toMatchObject({ error: { code: 'invalid_api_key' } })
    }
  })

  test('a key in the URL is not accepted', async () => {
    const asked = { ...gateway, mcpUrl: `${gateway.mcpUrl}?api_key=${gateway.key}&access_token=${gateway.key}` }
    expect((await sendRpc(asked, undefined, list)).status).toBe(401)
  })
})

describe('X-02: requests from a page in a browser', () => {
  test('a foreign origin is refused, even with a valid key', async () => {
    for (const origin of [
      'https://evil.example',
      'null',
      'http://127.0.0.1:1',
      'file://',
      'http://localhost.evil.example',
    ]) {
      expect({ origin, status: await withOrigin(origin) }).toEqual({ origin, status: 403 })
    }
    const own = new URL(gateway.url).port
    for (const origin of [gateway.url, `http://localhost:${own}`, `http://[::1]:${own}`]) {
      expect({ origin, status: await withOrigin(origin) }).toEqual({ origin, status: 200 })
    }
  })

  test('a foreign Host is refused, as in DNS rebinding', async () => {
    const own = new URL(gateway.url).port
    for (const host of [
      'evil.example',
      `evil.example:${own}`,
      'localhost',
      '127.0.0.1:1',
      `localhost.evil.example:${own}`,
    ]) {
      expect({ host, status: await withHost(host) }).toEqual({ host, status: 403 })
    }
    for (const host of [`127.0.0.1:${own}`, `localhost:${own}`, `LOCALHOST:${own}`, `[::1]:${own}`]) {
      expect({ host, status: await withHost(host) }).toEqual({ host, status: 200 })
    }
  })

  test('a public URL, a port of its own and configured names are accepted, and others refused', async () => {
    const yaml =
      'publicUrl: https://gw.example.com\nmcp: { port: 0, hosts: ["tools.internal:9000"] }\ncors: { origins: ["https://app.example.com"] }'
    const apart = await startTestGateway({ yaml })
    try {
      const { port: own } = new URL(apart.mcpUrl)
      expect(apart.mcpUrl).not.toBe(`${apart.url}/mcp`)
      for (const host of ['gw.example.com', 'gw.example.com:443', 'tools.internal:9000', `localhost:${own}`]) {
        expect({ host, status: await withHost(host, apart) }).toEqual({ host, status: 200 })
      }
      for (const host of ['tools.internal', 'gw.example.com:80', `localhost:${new URL(apart.url).port}`]) {
        expect({ host, status: await withHost(host, apart) }).toEqual({ host, status: 403 })
      }
      for (const [origin, status] of [
        ['https://gw.example.com', 200],
        ['https://app.example.com', 200],
        ['https://other.example.com', 403],
      ] as const) {
        expect({ origin, status: (await sendRpc(apart, apart.key, list, { origin })).status }).toEqual({
          origin,
          status,
        })
      }
      // The public port has no /mcp then, and that port has no other path.
      expect((await sendRpc({ mcpUrl: `${apart.url}/mcp` }, apart.key, list)).status).toBe(404)
      const models = await fetch(apart.mcpUrl.replace('/mcp', '/v1/models'), {
        headers: { authorization: `Bearer ${apart.key}` },
      })
      expect(models.status).toBe(404)
      const client = await connect(apart, 'modern')
      expect((await client.call('chat', { model: 'gpt-4o-mini', prompt: 'Hi' })).isError ?? false).toBe(false)
      await client.close()
      await apart.assertBooks()
    } finally {
      await apart.close()
    }
  })
})

test('X-03: headers that contradict the body are refused', async () => {
  const mismatch = await sendRpc(gateway, gateway.key, chat('Hi'), { 'mcp-method': 'tools/list' })
  expect(mismatch).toMatchObject({ status: 400, answer: { error: { code: -32_020 } } })
  const name = await sendRpc(gateway, gateway.key, chat('Hi'), { 'mcp-name': 'speak' })
  expect(name).toMatchObject({ status: 400, answer: { error: { code: -32_020 } } })
  const version = await sendRpc(gateway, gateway.key, list, { 'mcp-protocol-version': '2025-11-25' })
  expect(version).toMatchObject({ status: 400, answer: { error: { code: -32_020 } } })
  const unknown = await sendRpc(gateway, gateway.key, rpc('tools/delete'))
  expect(unknown).toMatchObject({ status: 404, answer: { id: 0, error: { code: -32_601 } } })
  for (const method of ['GET', 'DELETE', 'PUT']) {
    const { status, headers } = await fetch(gateway.mcpUrl, {
      method,
      headers: { authorization: `Bearer ${gateway.key}` },
    })
    expect([status, headers.get('allow')]).toEqual([405, 'POST'])
  }
})

// Hundreds of clients at once: `crossings.test.ts`.
describe('X-04: separation of clients', () => {
  test("an older client that cancels its call does not cancel another client's with the same id", async () => {
    const [leaving, staying] = await Promise.all([connectOlder(), connectOlder()])
    const controller = new AbortController()
    const prompt = 'Hello! sandbox:tokens=80 sandbox:pace=15'
    const left = leaving.call(
      'chat',
      { model: 'gpt-4o-mini', prompt },
      { signal: controller.signal, onprogress: () => controller.abort() },
    )
    const stayed = staying.call('chat', { model: 'gpt-4o-mini', prompt }, { onprogress() {} })
    await thrownBy(left, Error)
    expect((await stayed).isError ?? false).toBe(false)
    await Promise.all([leaving.close(), staying.close()])
  })
})

describe('X-05: sessions of older clients', () => {
  const initialize = {
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'old', version: '1' } },
  }
  const tools = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  const sessionOf = async (key: string) => {
    const response = await sendOlder(key, initialize)
    await response.text()
    return response.headers.get('mcp-session-id') ?? ''
  }

  test('a session of another key and a made-up session are a 404', async () => {
    const session = await sessionOf(gateway.key)
    expect(session).toMatch(/^[0-9a-f]{32}\.[0-9a-f]{32}$/)
    expect((await sendOlder(gateway.key, tools, session)).status).toBe(200)
    for (const [key, given] of [
      [other.key, session],
      [gateway.key, 'made-up'],
      [gateway.key, `${session}0`],
      [gateway.key, session.replace(/^./, (digit) => (digit === '0' ? '1' : '0'))],
    ] as const) {
      const refused = await sendOlder(key, tools, given)
      expect(refused.status).toBe(404)
      expect(await refused.json()).toMatchObject({
        jsonrpc: '2.0',
        id: 1,
        error: { data: { code: 'session_not_found' } },
      })
    }
  })

  test('an invalid initialize opens no session and is told what is wrong', async () => {
    const { params } = initialize
    for (const [given, place] of [
      [undefined, 'params'],
      [{ ...params, protocolVersion: 5 }, 'params.protocolVersion'],
      [{ ...params, clientInfo: { name: 'old' } }, 'params.clientInfo.version'],
      [{ ...params, capabilities: { roots: 5 } }, 'params.capabilities.roots'],
    ] as const) {
      const refused = await sendOlder(gateway.key, { ...initialize, id: 'first', params: given })
      expect([refused.status, refused.headers.get('mcp-session-id')]).toEqual([400, null])
      const message = expect.stringContaining(`${place}: Invalid input: expected `) as string
      const error = { code: -32_602, message, data: { param: place } }
      expect(await refused.json()).toMatchObject({ id: 'first', error })
    }
  })

  test('a call is cancelled by its own session only, not by another one of the same key', async () => {
    const [own, foreign] = [await sessionOf(other.key), await sessionOf(other.key)]
    const call = {
      jsonrpc: '2.0',
      id: 7,
      method: 'tools/call',
      params: chat('Hi sandbox:endless sandbox:pace=5').params,
    }
    const { _meta: _, ...params } = call.params
    const response = await sendOlder(other.key, { ...call, params: { ...params, _meta: { progressToken: 1 } } }, own)
    const reader = response.body?.getReader()
    await reader?.read()
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } }
    expect((await sendOlder(other.key, cancel, foreign)).status).toBe(202)
    expect((await sendOlder(other.key, cancel)).status).toBe(202)
    expect(gateway.openHolds()).toBe(1)
    expect((await sendOlder(other.key, cancel, own)).status).toBe(202)
    await until(() => gateway.openHolds() === 0)
    await reader?.cancel()
  })
})

describe('X-06: permissions of tools', () => {
  // What every tool gives for a model out of scope, and for another's task; a new tool fails until it has a row here.
  const forbidden: Readonly<Record<string, Record<string, unknown> | 'own'>> = {
    get_model: { model: 'gpt-4o' },
    chat: { model: 'gpt-4o', prompt: 'Hi' },
    generate_image: { model: 'gpt-image-1', prompt: 'Hi' },
    edit_image: { model: 'gpt-image-1', prompt: 'Hi', images: ['https://example.com/a.png'] },
    generate_video: { model: 'wan2.6-t2v', prompt: 'Hi' },
    get_video: { id: 'TASK' },
    cancel_video: { id: 'TASK' },
    create_embeddings: { model: 'text-embedding-3-small', input: 'Hi' },
    speak: { model: 'gpt-4o-mini-tts', input: 'Hi' },
    // These show only what is the caller's own: see test/clients/mcp.test.ts.
    list_models: 'own',
    list_videos: 'own',
    get_usage: 'own',
  }

  test('the table has a row for every tool', async () => {
    const { answer } = await sendRpc(gateway, gateway.key, list)
    const { tools } = answer['result'] as { tools: { name: string }[] }
    expect(tools.map(({ name }) => name).toSorted()).toEqual(Object.keys(forbidden).toSorted())
  })

  test.each(Object.entries(forbidden).flatMap(([name, given]) => (given === 'own' ? [] : [[name, given] as const])))(
    '%s: a forbidden model or task looks like one that does not exist, and costs nothing',
    async (name, given) => {
      const made = rpc('tools/call', {
        name: 'generate_video',
        arguments: { model: 'wan2.6-t2v', prompt: 'sandbox:queued=5' },
      })
      const task = (await sendRpc(gateway, gateway.key, made)).answer['result'] as Result
      const id = task.structuredContent?.['id'] as string
      await until(async () => {
        const look = rpc('tools/call', { name: 'get_video', arguments: { id } })
        const { structuredContent } = (await sendRpc(gateway, gateway.key, look)).answer['result'] as Result
        return structuredContent?.['status'] === 'succeeded'
      })
      const call = async (args: Record<string, unknown>) => {
        const result = (await sendRpc(gateway, narrow.key, rpc('tools/call', { name, arguments: args }))).answer[
          'result'
        ] as Result
        expect(result.isError).toBe(true)
        return JSON.stringify(lastText(result))
      }
      const real = 'id' in given ? { id } : given
      const madeUp = 'id' in given ? { id: 'vid_0' } : { ...given, model: 'zz-none' }
      const [shown, unknown] = await refusedForFree(
        gateway,
        async () => [await call(real), await call(madeUp)] as const,
      )
      expect(shown.replace(String(given['model']), '')).toBe(unknown.replace('zz-none', ''))
    },
    120_000,
  )

  test("the caller's key is neither sent to a vendor nor logged", async () => {
    await sendRpc(gateway, other.key, chat('Hi'))
    const seen = JSON.stringify(await gateway.calls())
    expect(seen).not.toContain(other.key)
    expect(gateway.logged.join('\n')).not.toContain(other.key)
  })
})

describe('X-07: limits on requests', () => {
  test('batches are refused, from older and newer clients', async () => {
    for (const batch of [[chat('a'), chat('b')], [{ jsonrpc: '2.0', id: 1, method: 'ping' }], []]) {
      const refused = await refusedForFree(gateway, () => post(JSON.stringify(batch)))
      expect(refused.status).toBe(400)
      expect(await refused.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32_600 } })
    }
  })

  test('bodies are limited as on every other path', async () => {
    const refusals = [
      ['{', 400, -32_700],
      ['', 400, -32_700],
      ['null', 400, -32_600],
      ['['.repeat(1_000_000), 400, -32_600],
      [`{"a":${'{"a":'.repeat(200)}1${'}'.repeat(200)}}`, 400, -32_600],
      ['{"__proto__": {}}', 400, -32_600],
    ] as const
    for (const [body, status, code] of refusals) {
      const refused = await post(body)
      expect({ body: body.slice(0, 20), status: refused.status }).toEqual({ body: body.slice(0, 20), status })
      expect(await refused.json()).toMatchObject({ jsonrpc: '2.0', error: { code } })
    }
    expect((await post('{}', { 'content-type': 'text/plain' })).status).toBe(415)
    expect((await post('{}', { 'content-encoding': 'gzip' })).status).toBe(415)
    const small = await startTestGateway({ yaml: 'limits: { mcpBodyBytesMax: 2048 }' })
    try {
      const { status, answer } = await sendRpc(small, small.key, chat('x'.repeat(4096)))
      expect(status).toBe(413)
      expect(answer).toMatchObject({ error: { data: { code: 'request_too_large' } } })
    } finally {
      await small.close()
    }
  })

  test('requests about the tools are rate-limited apart from the calls', async () => {
    const { key, keyId } = await gateway.account({ dollars: '1' })
    // One at a time, too: a request that is answered makes room for the next.
    await setLimits(gateway, keyId, { requestsPerMinute: 2, concurrent: 1 })
    const ask = () => sendRpc(gateway, key, list)
    expect((await ask()).status).toBe(200)
    expect((await ask()).headers.get('x-ratelimit-remaining-requests')).toBe('0')
    const third = await ask()
    expect(third).toMatchObject({ status: 429, answer: { id: 0, error: { data: { code: 'rate_limit_exceeded' } } } })
    expect((await sendRpc(gateway, key, chat('Hi'))).answer['result']).not.toMatchObject({ isError: true })
  })

  test('an ordered video is reported even if the key has no request left to look at it', async () => {
    const { key, keyId } = await gateway.account({ dollars: '5' })
    await setLimits(gateway, keyId, { requestsPerMinute: 1 })
    const video = { model: 'wan2.6-t2v', prompt: 'Waves', duration: 5, wait: true }
    const { answer } = await sendRpc(gateway, key, rpc('tools/call', { name: 'generate_video', arguments: video }))
    const task = { id: expect.stringMatching(/^vid_/), status: 'succeeded' }
    expect(shown(answer['result'] as Result)).toMatchObject(task)
  })
})

test('X-08: the descriptions of the tools have the recorded hash, for every key', async () => {
  const { answer } = await sendRpc(gateway, gateway.key, list)
  const { tools } = answer['result'] as { tools: unknown }
  // A change of any word that models read: look at the difference, then write the new hash here.
  expect(createHash('sha256').update(JSON.stringify(tools)).digest('hex')).toBe(
    '215cde9d9e64fa4f5dd01c7aa6cd5ea6a58ef8ee51e729744884d7f1e79194db',
  )
  const scoped = await sendRpc(gateway, narrow.key, list)
  expect((scoped.answer['result'] as { tools: unknown }).tools).toEqual(tools)
})
