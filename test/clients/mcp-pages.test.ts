import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { thrownBy } from '../support/clients.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { operatorOf } from '../support/operator.ts'
import { setLimits } from '../support/limits.ts'
import { connect, eras, lastText, rpc, sendRpc, shown, type ToolClient } from '../support/mcp.ts'
import { sendRaw } from '../support/raw-socket.ts'

let gateway: TestGateway

beforeAll(async () => {
  gateway = await startTestGateway({ mode: 'leased' })
})
afterAll(() => gateway.close())

const chatModel = 'gpt-4o-mini'
const ofJson = { 'content-type': 'application/json' }
type Video = { id: string }

describe.each(eras)('resources, prompts and limits of the tool server, with a %s client', (era) => {
  let client: ToolClient

  beforeAll(async () => {
    client = await connect(gateway, era)
    await client.call('generate_video', { model: 'wan2.6-t2v', prompt: 'Waves', wait: true })
  })
  afterEach(() => gateway.assertBooks())
  afterAll(() => client.close())

  test('every resource and template can be read, and unknown resources are refused', async () => {
    const resources = await client.resources()
    const uris = resources.map(({ uri }) => uri)
    expect(new Set(uris).size).toBe(uris.length)
    for (const uri of ['models', 'api', 'errors', 'usage', 'tasks']) expect(uris).toContain(`turnpike://${uri}`)
    for (const uri of ['api/createChatCompletion', `models/${chatModel}`]) expect(uris).toContain(`turnpike://${uri}`)
    for (const uri of uris) expect(await client.read(uri)).not.toBeEmpty()
    expect(await client.read('turnpike://api/createChatCompletion')).toContain('POST /v1/chat/completions')
    expect(await client.read('turnpike://errors')).toContain('| 402 | `insufficient_balance` |')
    const { balance, usage } = JSON.parse(await client.read('turnpike://usage')) as Record<string, object>
    expect([balance, usage]).toMatchObject([{ currency: 'USD' }, { data: [{ model: expect.any(String) }] }])
    const days = (Date.now() / 1000 - (usage as { from: number }).from) / 86_400
    expect(days).toBeWithin(30, 30.1)
    const { data } = JSON.parse(await client.read('turnpike://tasks')) as { data: { id: string }[] }
    expect(JSON.parse(await client.read(`turnpike://tasks/${data[0]?.id}`))).toMatchObject({ id: data[0]?.id ?? '' })
    expect((await client.templates()).map(({ uriTemplate }) => uriTemplate)).toEqual([
      'turnpike://models/{id}',
      'turnpike://api/{operation}',
      'turnpike://tasks/{id}',
    ])
    for (const uri of ['turnpike://models/no-such-model', 'turnpike://nothing', 'turnpike://tasks/vid_none', 'x:y']) {
      const thrown = await thrownBy(client.read(uri), Error)
      // Each era has its own error code for a missing resource.
      expect(thrown).toMatchObject({ code: era === 'modern' ? -32_602 : -32_002, data: { uri } })
    }
  })

  test('malformed parameters are refused with the name of the field', async () => {
    const wrongs = [
      [() => client.prompt('make_video', { idea: 'A fox', seconds: 5 as never }), 'arguments.seconds'],
      [() => client.prompt(7 as never, {}), 'name'],
      [() => client.read(7 as never), 'uri'],
      [() => client.complete({ type: 'ref/nothing' } as never, { name: 'id', value: 'g' }), 'ref.type'],
    ] as const
    for (const [ask, place] of wrongs) {
      const thrown = await thrownBy(ask(), Error)
      expect(thrown).toMatchObject({ code: -32_602 })
      expect(thrown.message).toContain(`${place}: `)
    }
  })

  test('models are listed in pages with their main prices, and a single model with everything', async () => {
    type Shown = { id: string; capabilities: string[]; prices: Record<string, unknown>; takes?: object }
    type Models = { models: Shown[]; total: number; next: string | null }
    const list = async (given: object) => shown<Models>(await client.call('list_models', { ...given }))
    const result = await client.call('list_models')
    expect(JSON.stringify(result).length).toBeLessThan(25_000)
    const first = shown<Models>(result)
    expect(first.models).toHaveLength(50)
    const ids: string[] = []
    for (let after: string | null | undefined; after !== null;) {
      const { models, next, total } = await list({ limit: 100, ...(after !== undefined && { after }) })
      ids.push(...models.map(({ id }) => id))
      expect(total).toBe(first.total)
      after = next
    }
    expect([ids.length, new Set(ids).size]).toEqual([first.total, first.total])
    expect(ids.slice(0, 50)).toEqual(first.models.map(({ id }) => id))
    const { data } = (await (
      await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${gateway.key}` } })
    ).json()) as { data: { id: string }[] }
    expect(ids.toSorted()).toEqual(data.map(({ id }) => id).toSorted())

    const some = await list({ capability: 'video', search: 'wan' })
    expect(some.models.length).toBeGreaterThan(3)
    expect(some.models.every(({ id, capabilities }) => id.includes('wan') && capabilities.includes('video'))).toBe(true)
    expect([some.total, some.next]).toEqual([some.models.length, null])
    const speakers = (await list({ capability: 'speech' })).models
    expect(speakers.filter(({ capabilities }) => !capabilities.includes('speech'))).toEqual([])
    const [brief] = (await list({ search: chatModel, limit: 1 })).models
    expect(brief).toMatchObject({ id: chatModel, prices: { inputPerMillion: '0.15', outputPerMillion: '0.6' } })
    expect(brief).toHaveProperty('shutdown_date', '2027-01-14')
    expect(brief?.prices).not.toHaveProperty('cachedInputPerMillion')
    const one = async (model: string) => shown<Shown>(await client.call('get_model', { model }))
    expect(await one(chatModel)).toMatchObject({ id: chatModel, prices: { cachedInputPerMillion: '0.075' } })
    expect(await one('gpt-5.2')).not.toHaveProperty('shutdown_date')
    expect(await one('gpt-4o-mini-2024-07-18')).toMatchObject({ alias_of: chatModel })
    expect(await one('wan2.6-t2v')).toMatchObject({ takes: { video: { resolutions: expect.any(Array) } } })

    // A cursor that is no model's id gives the models that sort after it.
    expect((await list({ after: 'gpt-4o-minh', limit: 1 })).models[0]?.id).toBe(chatModel)
    expect(await list({ after: 'zzzz' })).toMatchObject({ models: [], next: null })
    expect(await list({ search: 'GPT-4o' })).toEqual(await list({ search: 'gpt-4o' }))
    const refused = async (name: string, given: object) => lastText(await client.call(name, { ...given }))
    expect(await refused('get_model', { model: 'none' })).toMatchObject({ error: { code: 'model_not_found' } })
    expect(await refused('list_models', { limit: 0 })).toMatchObject({ error: { param: 'limit' } })
  })

  test('ids and models are completed as they are typed', async () => {
    const models = { type: 'ref/resource', uri: 'turnpike://models/{id}' } as const
    expect((await client.complete(models, { name: 'id', value: 'gpt-4o-m' }))[0]).toBe(chatModel)
    // The protocol allows no more values, and the catalogue has several times as many.
    expect(await client.complete(models, { name: 'id', value: '' })).toHaveLength(100)
    const endpoints = { type: 'ref/resource', uri: 'turnpike://api/{operation}' } as const
    expect(await client.complete(endpoints, { name: 'operation', value: 'createChat' })).toEqual([
      'createChatCompletion',
    ])
    const tasks = { type: 'ref/resource', uri: 'turnpike://tasks/{id}' } as const
    const video = { model: 'wan2.6-t2v', prompt: 'Waves sandbox:status=400', duration: 5 }
    expect((await client.call('generate_video', video)).isError).toBe(true)
    const { data } = shown<{ data: Video[] }>(await client.call('list_videos', { limit: 100 }))
    // A refused request makes no task, so neither the completion nor the list has it.
    expect(await client.complete(tasks, { name: 'id', value: 'vid_' })).toEqual(data.map(({ id }) => id))
    const voices = { type: 'ref/prompt', name: 'read_aloud' } as const
    const dated = ['gpt-4o-mini-tts-2025-03-20', 'gpt-4o-mini-tts-2025-12-15']
    expect(await client.complete(voices, { name: 'model', value: 'gpt' })).toEqual(['gpt-4o-mini-tts', ...dated])
    // What begins with the typed text comes first, and nothing comes twice.
    const speakers = await client.complete(voices, { name: 'model', value: 'TTS' })
    expect(speakers.slice(0, 3)).toEqual(['tts-1', 'tts-1-hd', expect.not.stringMatching(/^tts/)])
    expect(new Set(speakers).size).toBe(speakers.length)
    expect(await client.complete(voices, { name: 'text', value: 'gpt' })).toEqual([])
  })

  test('every prompt gives a message, and blank arguments count as absent', async () => {
    const prompts = await client.prompts()
    expect(prompts.length).toBeGreaterThan(4)
    for (const { name, arguments: taken = [] } of prompts) {
      const given = Object.fromEntries(taken.map((argument) => [argument.name, 'something']))
      expect(await client.prompt(name, given)).toContain('`')
    }
    expect((await thrownBy(client.prompt('illustrate', {}), Error)).message).toContain('text')
    // Some clients send blank texts for arguments that were left out.
    const blank = { text: 'A river.', style: '', model: '' }
    expect(await client.prompt('illustrate', blank)).toBe(await client.prompt('illustrate', { text: 'A river.' }))
  })

  test('a key sees only its own models, tasks and usage', async () => {
    const { key } = await gateway.account({ dollars: '5', models: [chatModel] })
    const own = await connect(gateway, era, { key })
    const { models } = shown<{ models: { id: string }[] }>(await own.call('list_models'))
    expect(models.map(({ id }) => id)).toEqual([chatModel])
    expect(JSON.parse(await own.read('turnpike://models'))).toMatchObject({ models: [{ id: chatModel }] })
    const pages = (await own.resources()).filter(({ uri }) => uri.startsWith('turnpike://models/'))
    expect(pages.map(({ name }) => name)).toEqual([chatModel])
    await thrownBy(own.read('turnpike://models/gpt-4o'), Error)
    const ref = { type: 'ref/resource', uri: 'turnpike://models/{id}' } as const
    expect(await own.complete(ref, { name: 'id', value: '' })).toEqual([chatModel])
    const forbidden = lastText(await own.call('chat', { model: 'gpt-4o', prompt: 'Hi' }))
    const unknown = lastText(await own.call('chat', { model: 'gpt-40', prompt: 'Hi' }))
    expect(JSON.stringify(forbidden)).toBe(JSON.stringify(unknown).replace('gpt-40', 'gpt-4o'))
    const [task] = shown<{ data: Video[] }>(await client.call('list_videos', { limit: 1 })).data
    expect(lastText(await own.call('get_video', { id: task?.id }))).toMatchObject({ error: { code: 'task_not_found' } })
    expect(lastText(await own.call('cancel_video', { id: task?.id }))).toMatchObject({
      error: { code: 'task_not_found' },
    })
    await thrownBy(own.read(`turnpike://tasks/${task?.id}`), Error)
    expect(JSON.parse(await own.read('turnpike://tasks'))).toMatchObject({ data: [] })
    const tasks = { type: 'ref/resource', uri: 'turnpike://tasks/{id}' } as const
    expect(await own.complete(tasks, { name: 'id', value: '' })).toEqual([])
    expect(shown<{ data: { requests: number }[] }>(await own.call('get_usage')).data[0]?.requests ?? 0).toBe(0)
    expect(
      shown<{ choices: object[] }>(await own.call('chat', { model: chatModel, prompt: 'Hi' })).choices,
    ).toHaveLength(1)
    await own.close()
  })

  test('the limits of a key count tool calls and not the connection', async () => {
    const { key, keyId } = await gateway.account({ dollars: '5' })
    await setLimits(gateway, keyId, { requestsPerMinute: 2 })
    const own = await connect(gateway, era, { key })
    await own.call('chat', { model: chatModel, prompt: 'Hi' })
    await own.call('list_models')
    const third = await own.call('chat', { model: chatModel, prompt: 'Hi' })
    expect(lastText(third)).toMatchObject({ error: { code: 'rate_limit_exceeded' } })
    expect(third._meta).toMatchObject({ 'turnpike/status': 429, 'turnpike/retry_after': expect.any(Number) })
    await own.close()
  })

  test('a concurrent place is free again after a list, a read and a call', async () => {
    const { key, keyId } = await gateway.account({ dollars: '1' })
    await setLimits(gateway, keyId, { concurrent: 1 })
    const own = await connect(gateway, era, { key })
    for (let i = 0; i < 2; i++) {
      expect(await own.tools()).not.toBeEmpty()
      expect(await own.read('turnpike://models')).not.toBeEmpty()
      expect((await own.call('list_models')).isError ?? false).toBe(false)
    }
    await own.close()
  })

  test('a read over the rate limit is a rate-limit error and not a missing resource', async () => {
    const { key, keyId } = await gateway.account({ dollars: '1' })
    await setLimits(gateway, keyId, { requestsPerMinute: 3 })
    const own = await connect(gateway, era, { key })
    for (let i = 0; i < 3; i++) await own.call('list_models')
    const thrown = await thrownBy(own.read('turnpike://tasks'), Error)
    expect(thrown).toMatchObject({ code: -32_000, data: { code: 'rate_limit_exceeded' } })
    await own.close()
  })

  test('usage can be limited to the calling key', async () => {
    const { key } = await operatorOf(gateway).post<{ key: string }>('/admin/keys', { account: gateway.accountId })
    const own = await connect(gateway, era, { key })
    const requests = async (given: object) =>
      shown<{ data: { requests: number }[] }>(await own.call('get_usage', { ...given })).data[0]?.requests ?? 0
    expect(await requests({})).toBeGreaterThan(0)
    expect(await requests({ own: true })).toBe(0)
    await own.close()
  })

  test('a call with invalid arguments counts against the limits too', async () => {
    const { key, keyId } = await gateway.account({ dollars: '1' })
    await setLimits(gateway, keyId, { requestsPerMinute: 2 })
    const own = await connect(gateway, era, { key })
    expect(lastText(await own.call('chat', { prompt: 'Hi' }))).toMatchObject({ error: { param: 'model' } })
    expect(lastText(await own.call('chat', { model: chatModel }))).toMatchObject({ error: { param: 'prompt' } })
    const third = await own.call('chat', { prompt: 'Hi' })
    expect(lastText(third)).toMatchObject({ error: { code: 'rate_limit_exceeded' } })
    await own.close()
  })

  test('a balance that is too low is reported as insufficient_balance', async () => {
    const { key } = await gateway.account({ dollars: '0.000001' })
    const own = await connect(gateway, era, { key })
    const result = await own.call('chat', { model: chatModel, prompt: 'Hi', max_tokens: 100_000 })
    expect(lastText(result)).toMatchObject({ error: { code: 'insufficient_balance' } })
    await own.close()
  })

  test('an unknown key cannot connect', async () => {
    const refused = await thrownBy(connect(gateway, era, { key: 'sk-nobody' }), Error)
    expect(refused.message).toMatch(/401|auth/i)
  })
})

test.each(['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'])(
  'a cursor of %s that is not a string is refused as invalid params',
  async (method) => {
    const { answer } = await sendRpc(gateway, gateway.key, rpc(method, { cursor: 7 }))
    const message = `Invalid params for ${method}: cursor: Invalid input: expected string, received number`
    expect(answer['error']).toMatchObject({ code: -32_602, message })
  },
)

test.each(['nonsense', Buffer.from('-100').toString('base64url'), Buffer.from('1.5').toString('base64url')])(
  'the cursor %p, which no page has given, is refused',
  async (cursor) => {
    const { answer } = await sendRpc(gateway, gateway.key, rpc('resources/list', { cursor }, 'one'))
    expect(answer).toMatchObject({ id: 'one', error: { code: -32_602, message: 'Invalid cursor' } })
  },
)

test.each([
  ['tools/list', {}, 'public'],
  ['prompts/list', {}, 'public'],
  ['resources/templates/list', {}, 'public'],
  ['resources/list', {}, 'private'],
  ['resources/read', { uri: 'turnpike://models' }, 'private'],
  ['resources/read', { uri: 'turnpike://usage' }, 'private'],
])('%s %j has the cache scope public only if it is the same for every key', async (method, params, cacheScope) => {
  const { answer } = await sendRpc(gateway, gateway.key, rpc(method, params))
  expect(answer['result']).toMatchObject({ cacheScope, ttlMs: expect.any(Number) })
})

// A client of 2025-03-26 sends no header with its revision, and does not know links as blocks.
test.each([
  [null, false],
  ['2025-03-26', false],
  ['2025-06-18', true],
])(
  'a client that gives its revision as %p gets links as blocks only if that revision has them',
  async (revision, hasLinks) => {
    const client = await connect(gateway, 'legacy', {
      fetch(url, init) {
        const headers = new Headers(init?.headers)
        headers.delete('mcp-protocol-version')
        if (revision !== null) headers.set('mcp-protocol-version', revision)
        return fetch(url, { ...init, headers })
      },
    })
    const image = await client.call('generate_image', { model: 'gpt-image-1', prompt: 'A cat' })
    const speech = await client.call('speak', { model: 'tts-1', input: 'Hello' })
    const video = await client.call('generate_video', { model: 'wan2.6-t2v', prompt: 'Waves', wait: true })
    const types = [image, speech, video].map(({ content }) => content.map(({ type }) => type))
    const links = hasLinks ? ['resource_link'] : []
    expect(types).toEqual([
      ['image', ...links, 'text'],
      ['audio', ...links, 'text'],
      [...links, 'text'],
    ])
    // The text has the links in any case.
    expect(shown(image)).toMatchObject({ images: [{ url: expect.any(String) }] })
    expect(shown(speech)).toMatchObject({ url: expect.any(String) })
    expect(shown(video)).toMatchObject({ content: { video_url: expect.any(String) } })
    await client.close()
    await gateway.assertBooks()
  },
  120_000,
)

test('a client of the first revision, which has no audio, gets speech as a file', async () => {
  const client = await connect(gateway, 'legacy', {
    fetch(url, init) {
      const headers = new Headers(init?.headers)
      headers.delete('mcp-protocol-version')
      const body = typeof init?.body === 'string' ? init.body.replace('"2025-11-25"', '"2024-11-05"') : init?.body
      return fetch(url, { ...init, headers, ...(body !== undefined && { body }) })
    },
  })
  const speech = await client.call('speak', { model: 'tts-1', input: 'Hello' })
  const [file, text] = speech.content as readonly { type: string; resource?: { blob: string } }[]
  const { url, bytes } = shown<{ url: string; bytes: number }>(speech)
  expect(file).toEqual({
    type: 'resource',
    resource: expect.objectContaining({ uri: url, mimeType: 'audio/mpeg' }) as never,
  })
  expect(Buffer.from(file?.resource?.blob ?? '', 'base64')).toHaveLength(bytes)
  expect(text?.type).toBe('text')
  await client.close()
  await gateway.assertBooks()
})

test('optional arguments given as null are absent, as on every path', async () => {
  const client = await connect(gateway, 'modern')
  const given = {
    list_models: { capability: null, search: null, limit: 1, after: null },
    chat: { model: chatModel, prompt: 'Hi', system: null, messages: null, temperature: null, response_format: null },
    generate_image: { model: 'gpt-image-1', prompt: 'A cat', n: null, size: null, show: null },
    generate_video: { model: 'wan2.6-t2v', prompt: 'Waves', duration: null, input: null, wait: true, timeout: null },
    list_videos: { status: null, limit: null },
    create_embeddings: { model: 'text-embedding-3-small', input: 'A river', dimensions: null },
    speak: { model: 'tts-1', input: 'Hello', voice: null, speed: null },
    get_usage: { group_by: null, from: null },
  }
  for (const [name, fields] of Object.entries(given)) shown(await client.call(name, fields))
  expect(lastText(await client.call('chat', { model: null, prompt: 'Hi' }))).toMatchObject({
    error: { param: 'model' },
  })
  await client.close()
  await gateway.assertBooks()
}, 120_000)

test.each([
  ['tools/list', null],
  ['prompts/list', { cursor: null }],
  ['tools/call', { name: 'list_models', arguments: null }],
])('%s with the parameters %j counts what is null as absent', async (method, params) => {
  const headers = { authorization: `Bearer ${gateway.key}`, accept: 'application/json, text/event-stream' }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const response = await fetch(gateway.mcpUrl, { method: 'POST', headers: { ...headers, ...ofJson }, body })
  expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('"result":')])
})

test.each(['', '*/*', 'text/event-stream'])('a client that accepts %j is served', async (accept) => {
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  const note = { jsonrpc: '2.0', method: 'notifications/initialized' }
  const lines = (body: object) =>
    Object.entries({
      host: new URL(gateway.mcpUrl).host,
      authorization: `Bearer ${gateway.key}`,
      'content-length': String(JSON.stringify(body).length),
      connection: 'close',
      ...ofJson,
      ...(accept !== '' && { accept }),
    }).map(([name, value]) => `${name}: ${value}\r\n`)
  const statuses = [ping, note].map(async (body) => {
    const sent = await sendRaw(
      gateway.mcpUrl,
      `POST /mcp HTTP/1.1\r\n${lines(body).join('')}\r\n${JSON.stringify(body)}`,
    )
    return sent.status
  })
  expect(await Promise.all(statuses)).toEqual([200, 202])
})
