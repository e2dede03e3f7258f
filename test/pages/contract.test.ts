import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { z } from 'zod'
import type { Document, Schema } from '../../scripts/openapi/types.ts'
import { errorNotes } from '../../src/http/openapi/error-notes.ts'
import { operations } from '../../src/http/openapi/operations.ts'
import { balance, usageReport } from '../../src/http/openapi/usage-schema.ts'
import { makeRoutes, type RouteParts } from '../../src/http/routes.ts'
import {
  chatCompletion,
  chatCompletionChunk,
  errorBody,
  model,
  modelList,
} from '../../src/wire/openai/answer-schema.ts'
import { chatRequest } from '../../src/wire/openai/chat-schema.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'

let gateway: TestGateway
let contract: Document

beforeAll(async () => {
  gateway = await startTestGateway()
  contract = (await (await fetch(`${gateway.url}/openapi.json`)).json()) as Document
})
afterAll(async () => {
  await gateway.assertBooks()
  await gateway.close()
})

test('the committed contract and reference page are up to date', async () => {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, '../../scripts/openapi.ts'), '--check'], {
    stderr: 'pipe',
  })
  expect(await new Response(child.stderr).text()).toBe('')
  expect(await child.exited).toBe(0)
})

describe('/openapi.json', () => {
  test('it is OpenAPI 3.1 of version 1.0.0 with a relative server and a bearer key', () => {
    expect(contract).toMatchObject({
      openapi: expect.stringMatching(/^3\.1\./),
      info: { version: '1.0.0' },
      servers: [{ url: '/' }],
      security: [{ key: [] }],
      components: { securitySchemes: { key: { type: 'http', scheme: 'bearer' } } },
    })
  })

  test('it describes exactly the routes that take a key', () => {
    const routes = makeRoutes({} as RouteParts)
    const described = Object.entries(contract.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => `${method.toUpperCase()} ${path} ${operationId}`),
    )
    expect(described).toEqual(
      routes.filter(({ auth }) => auth === 'key').map(({ method, path, docs }) => `${method} ${path} ${docs}`),
    )
    expect(Object.keys(operations)).toEqual(routes.flatMap(({ docs }) => docs ?? []))
  })

  test('every reference in it resolves', () => {
    const refs = [...JSON.stringify(contract).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref ?? '')
    expect(refs.length).toBeGreaterThan(20)
    for (const ref of new Set(refs)) {
      const target = ref
        .slice(2)
        .split('/')
        .reduce<unknown>((at, step) => (at as Record<string, unknown> | undefined)?.[step], contract)
      expect({ ref, found: target !== undefined }).toEqual({ ref, found: true })
    }
  })

  test('it lists every field of a chat request, each with a description', () => {
    const { properties = {}, required } = contract.components.schemas['ChatCompletionRequest'] ?? {}
    expect(Object.keys(properties)).toEqual(Object.keys(chatRequest.shape))
    for (const [name, { description }] of Object.entries(properties))
      expect({ name, description }).toEqual({ name, description: expect.any(String) })
    expect(required).toEqual(['model', 'messages'])
  })

  test('it describes the body and query of a video order, and the ids of its task', () => {
    const path = '/v1/videos/generations'
    const { post } = contract.paths[path] ?? {}
    const inQuery = post?.parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name)
    expect(inQuery).toEqual(['wait', 'timeout'])
    const body = post?.requestBody?.content['application/json']?.schema
    expect(Object.keys(body?.properties ?? {})).toContain('content')
    for (const method of ['get', 'delete']) {
      const [id] = contract.paths[`${path}/{id}`]?.[method]?.parameters ?? []
      expect(id?.description).toContain('Percent-encode')
    }
  })

  test('fields of /v1/responses that it says go on to OpenAI do reach OpenAI', async () => {
    const passed = {
      stream_options: { include_obfuscation: true },
      include: ['web_search_call.results'],
      truncation: 'auto',
      prompt_cache_retention: '24h',
    }
    const ask = { model: 'gpt-5-mini', input: 'Hello!', stream: true, ...passed }
    expect(await (await gateway.post('/v1/responses', ask)).text()).toContain('response.completed')
    expect((await gateway.calls()).at(-1)).toMatchObject({ vendor: 'openai', body: passed })
    const { properties = {} } = contract.components.schemas['ResponsesRequest'] ?? {}
    for (const name of Object.keys(passed)) {
      expect({ name, said: properties[name]?.description }).toEqual({ name, said: expect.stringContaining('OpenAI') })
    }
  })

  test('the response for an unknown task is among its examples', async () => {
    const response = await get('/v1/videos/generations/vid_none')
    const { content } = contract.components.responses[`Error${response.status}`] ?? {}
    const shown = Object.values(content?.['application/json']?.examples ?? {}).map(({ value }) => value)
    expect(shown).toContainEqual(await response.json())
  })

  test('it has every status of the error table, with examples in the common shape', () => {
    const responses = commonErrors()
    const statuses = [400, 401, 402, 404, 405, 409, 413, 415, 422, 429, 431, 500, 502, 503, 504]
    expect(Object.keys(responses)).toEqual(statuses.map((status) => `Error${status}`))
    for (const { content } of Object.values(responses)) {
      for (const { value } of Object.values(content['application/json']?.examples ?? {})) {
        expect(Object.keys(value)).toEqual(['error'])
        expect(Object.keys(value.error)).toEqual(['message', 'type', 'param', 'code'])
      }
    }
  })

  test('the error of every POST path has the fields of its schema', async () => {
    const { responses, schemas } = contract.components
    const posts = Object.entries(contract.paths).filter(([, methods]) => 'post' in methods)
    expect(posts.length).toBeGreaterThan(8)
    for (const [path, { post }] of posts) {
      const refused = await gateway.post(path, {})
      const told = post?.responses[String(refused.status)] ?? { $ref: '' }
      const shown = '$ref' in told ? responses[nameIn(told.$ref)]?.content['application/json']?.schema : undefined
      const body = await refused.json()
      expect({ path, misfits: misfitsIn(body, schemas[nameIn(shown?.$ref ?? '')] ?? {}) }).toEqual({
        path,
        misfits: [],
      })
    }
  })

  test('its examples cover every documented error, also those that share a code and status', () => {
    const shown = Object.values(commonErrors()).flatMap(({ content }) =>
      Object.values(content['application/json']?.examples ?? {}).map(({ summary }) => summary),
    )
    const told = Object.values(errorNotes).flatMap((notes) => notes.map(({ when }) => when))
    expect(shown.toSorted()).toEqual(told.toSorted())
  })

  test.each([
    ['/v1/chat/completions', 'post', 404, ['unknown-model']],
    ['/v1/chat/completions', 'post', 409, ['idempotency_in_progress', 'already_completed']],
    ['/v1/messages', 'post', 404, ['unknown-model']],
    ['/v1/images/generations', 'post', 409, ['idempotency_in_progress', 'already_completed']],
    ['/v1/models/{id}', 'get', 404, ['unknown-model']],
    ['/v1/usage', 'get', 400, ['bad-request']],
    ['/v1/balance', 'get', 429, ['too-many']],
    ['/v1/videos/generations/{id}', 'get', 404, ['task_not_found']],
    ['/v1/videos/generations/{id}', 'delete', 404, ['task_not_found']],
    ['/v1/videos/generations/{id}', 'delete', 409, ['not_cancellable']],
  ])('it lists for %s (%s, %d) only the errors that the operation can give', (path, method, status, names) => {
    const told = contract.paths[path]?.[method]?.responses[status] ?? { $ref: '' }
    const response = '$ref' in told ? contract.components.responses[nameIn(told.$ref)] : told
    expect(Object.keys(response?.content['application/json']?.examples ?? {})).toEqual(names)
  })

  test.each([
    ['a missing field', {}],
    ['a value of another type', { model: 'gpt-4o-mini', messages: 'Hi' }],
    ['a value that the model lacks', { model: 'gpt-5-mini', reasoning_effort: 'lots' }],
    ['a field that the model lacks', { model: 'gpt-4o-mini', reasoning_effort: 'low' }],
  ])('it names the code of %s', async (_, body) => {
    const refused = await gateway.post('/v1/chat/completions', { messages: [{ role: 'user', content: 'Hi' }], ...body })
    const { error } = (await refused.json()) as { error: { code: string } }
    expect(refused.status).toBe(400)
    expect(contract.components.responses['Error400']?.description).toContain(`\`${error.code}\``)
  })

  test('it states the challenge that a refused key gets', async () => {
    const { description = '' } = contract.components.headers['Challenge'] ?? {}
    const challenge = (await fetch(`${gateway.url}/v1/models`)).headers.get('www-authenticate') ?? ''
    expect(description).toContain(`\`${challenge}\``)
  })
})

function get(path: string): Promise<Response> {
  return fetch(gateway.url + path, { headers: { authorization: `Bearer ${gateway.key}` } })
}

describe('responses and their schemas in the contract', () => {
  const messages = [{ role: 'user', content: 'Hello!' }]
  const chat = (more: object) => gateway.post('/v1/chat/completions', { model: 'gpt-4o-mini', messages, ...more })

  test.each<{ name: string; schema: z.ZodType; ask: () => Promise<Response> }>([
    { name: 'a completion', schema: chatCompletion, ask: () => chat({}) },
    { name: 'a completion of a reasoning model', schema: chatCompletion, ask: () => chat({ model: 'o3' }) },
    {
      name: 'a completion with a tool call',
      schema: chatCompletion,
      ask: () => chat({ tools: [{ type: 'function', function: { name: 'look_up' } }], tool_choice: 'required' }),
    },
    { name: 'the list of models', schema: modelList, ask: () => get('/v1/models') },
    { name: 'a model', schema: model, ask: () => get('/v1/models/gpt-4o-mini') },
    { name: 'usage by day', schema: usageReport, ask: () => get('/v1/usage?group_by=day') },
    { name: 'usage by request', schema: usageReport, ask: () => get('/v1/usage?records=true') },
    { name: 'the balance', schema: balance, ask: () => get('/v1/balance') },
    { name: 'the error of a bad request', schema: errorBody, ask: () => chat({ temperature: 3 }) },
    { name: 'the error of an unknown model', schema: errorBody, ask: () => get('/v1/models/gpt-0') },
    { name: 'the error of a missing key', schema: errorBody, ask: () => fetch(`${gateway.url}/v1/models`) },
  ])('$name matches its schema', async ({ schema, ask }) => {
    schema.parse(await (await ask()).json())
  })

  test('every chunk of a stream matches its schema', async () => {
    const text = await (await chat({ stream: true, stream_options: { include_usage: true } })).text()
    const events = text.split('\n\n').filter((event) => event.startsWith('data: {'))
    expect(events.length).toBeGreaterThan(3)
    for (const event of events) chatCompletionChunk.parse(JSON.parse(event.slice('data: '.length)))
  })
})

describe('the pages over HTTP', () => {
  test('/ redirects to the reference', async () => {
    const response = await fetch(`${gateway.url}/`, { redirect: 'manual' })
    expect([response.status, response.headers.get('location')]).toEqual([302, 'docs'])
  })

  test('/docs may load and run nothing but its own style', async () => {
    const response = await fetch(`${gateway.url}/docs`)
    const page = await response.text()
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    const style = /<style>(.*?)<\/style>/s.exec(page)?.[1] ?? ''
    const hash = createHash('sha256').update(style).digest('base64')
    expect(response.headers.get('content-security-policy')).toStartWith(
      `default-src 'none'; style-src 'sha256-${hash}'`,
    )
    expect(page).not.toMatch(/<script|<iframe|style="|\son\w+="|@import|url\(/)
    // The only addresses are those of this gateway, of the page itself, and of an example that one copies.
    const links = [...page.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, link]) => link ?? '')
    expect(links.filter((link) => !/^(?:#|openapi\.json$|data:image\/svg)/.test(link))).toEqual([])
  })

  test('/docs links only to anchors that it has', async () => {
    const page = await (await fetch(`${gateway.url}/docs`)).text()
    const places = new Set([...page.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id))
    const links = [...page.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id)
    expect(links.length).toBeGreaterThan(5)
    expect(links.filter((id) => !places.has(id))).toEqual([])
  })

  test('/docs has no empty table, and names the content types of audio', async () => {
    const page = await (await fetch(`${gateway.url}/docs`)).text()
    expect(page.match(/<tbody role="rowgroup">\s*<\/tbody>/g)).toBeNull()
    for (const type of ['audio/mpeg', 'audio/flac']) expect(page).toContain(`<code>${type}</code>`)
  })

  test("the examples use the listener's address without a publicUrl", async () => {
    expect(exportedBy(await (await fetch(`${gateway.url}/docs`)).text())).toBe(gateway.url)
  })

  test('the examples and the contract use a given publicUrl, with its path', async () => {
    const proxied = await startTestGateway({ yaml: 'publicUrl: "https://example.com/a&i"' })
    try {
      expect(exportedBy(await (await fetch(`${proxied.url}/docs`)).text())).toBe('https://example.com/a&amp;i')
      const served: unknown = await (await fetch(`${proxied.url}/openapi.json`)).json()
      expect(served).toEqual({ ...contract, servers: [{ url: 'https://example.com/a&i' }] })
    } finally {
      await proxied.close()
    }
  })

  test.each(['/docs', '/openapi.json'])('%s is sent again only when it has changed', async (path) => {
    const first = await fetch(gateway.url + path)
    const etag = first.headers.get('etag') ?? ''
    expect((await first.text()).length).toBeGreaterThan(1_000)
    const again = await fetch(gateway.url + path, { headers: { 'if-none-match': `"other", W/${etag}` } })
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag])
    const head = await fetch(gateway.url + path, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
    expect(head.headers.get('content-length')).toBe(first.headers.get('content-length'))
    expect(Number(head.headers.get('content-length'))).toBeGreaterThan(1_000)
    expect((await fetch(gateway.url + path, { method: 'POST' })).status).toBe(405)
  })
})

function nameIn(ref: string): string {
  return ref.split('/').at(-1) ?? ''
}

/** The errors in the shape that most paths have. */
function commonErrors(): Document['components']['responses'] {
  return Object.fromEntries(Object.entries(contract.components.responses).filter(([name]) => /^Error\d/.test(name)))
}

/** Fields of an answer that its schema does not know, and those that it lacks. */
function misfitsIn(value: unknown, { properties, required = [] }: Schema): string[] {
  const fields = Object.entries(value as Record<string, unknown>)
  const lacking = required.filter((name) => fields.every(([field]) => field !== name))
  return fields.reduce<string[]>((misfits, [name, field]) => {
    const schema = properties?.[name]
    if (schema === undefined) return [...misfits, name]
    return schema.properties === undefined ? misfits : [...misfits, ...misfitsIn(field, schema)]
  }, lacking)
}

/** The address that the examples of the reference take. */
function exportedBy(page: string): string | undefined {
  return /export TURNPIKE_URL=(.*)/.exec(page)?.[1]
}
