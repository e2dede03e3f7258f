import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { makeAdminRoutes, type AdminParts } from '../../src/admin/routes.ts'
import { makeRoutes, type RouteParts } from '../../src/http/routes.ts'
import { dumpAll } from '../support/dump.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { recordOf } from '../support/records.ts'
import { refusedForFree } from '../support/refused.ts'
import { payloadsOf, says } from '../support/streams.ts'

let gateway: TestGateway
/** May use one model and no other. */
let narrow: { id: string; key: string }
let other: { id: string; key: string }

const allowed = 'gpt-4o-mini'
const forbidden = 'gpt-4o'

beforeAll(async () => {
  gateway = await startTestGateway()
  narrow = await gateway.account({ dollars: '10', models: [allowed] })
  other = await gateway.account({ dollars: '10' })
})
afterEach(() => gateway.assertBooks())
afterAll(() => gateway.close())

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const chat = (body: unknown, key = narrow.key) => gateway.post('/v1/chat/completions', body, bearer(key))

const nameOf = ({ method, path }: { method: string; path: string }) => `${method} ${path}`

// C-02; the tools of the tool server: X-06 in `mcp.test.ts`.
describe('every route asks who is calling, and whether they may', () => {
  type Answers = { readonly withoutKey: number; readonly forbidden: number; readonly allowed: number }
  /** How to call a route about a model; `answers` is what no key, a forbidden model and an allowed one give. */
  type Row = { readonly path: (model: string) => string; readonly body?: object; readonly answers: Answers }
  const guarded = { withoutKey: 401, forbidden: 404, allowed: 200 }
  const open = { withoutKey: 200, forbidden: 200, allowed: 200 }
  const nothing = { withoutKey: 404, forbidden: 404, allowed: 404 }

  // A new route has no row and fails the test below, until somebody has thought about who may call it.
  const rows: Readonly<Record<string, Row>> = {
    'POST /v1/chat/completions': { path: () => '/v1/chat/completions', body: says('Hello!'), answers: guarded },
    'POST /v1/responses': { path: () => '/v1/responses', body: { input: 'Hello!' }, answers: guarded },
    // None is kept, whoever asks.
    'GET /v1/responses/{id}': { path: () => '/v1/responses/resp_1', answers: nothing },
    'DELETE /v1/responses/{id}': { path: () => '/v1/responses/resp_1', answers: nothing },
    'POST /v1/responses/{id}': { path: () => '/v1/responses/compact', answers: nothing },
    'POST /v1/responses/{id}/cancel': { path: () => '/v1/responses/resp_1/cancel', answers: nothing },
    'GET /v1/responses/{id}/input_items': { path: () => '/v1/responses/resp_1/input_items', answers: nothing },
    'POST /v1/messages': {
      path: () => '/v1/messages',
      body: { ...says('Hello!'), max_tokens: 10 },
      answers: guarded,
    },
    'POST /v1/messages/count_tokens': {
      path: () => '/v1/messages/count_tokens',
      body: says('Hello!'),
      answers: guarded,
    },
    // The model that is allowed can only chat.
    'POST /v1/images/generations': {
      path: () => '/v1/images/generations',
      body: { prompt: 'A cat' },
      answers: { ...guarded, allowed: 400 },
    },
    // A form is refused as anything else: `test/spec/edits.test.ts`.
    'POST /v1/images/edits': {
      path: () => '/v1/images/edits',
      answers: { withoutKey: 401, forbidden: 415, allowed: 415 },
    },
    'POST /v1/embeddings': {
      path: () => '/v1/embeddings',
      body: { input: 'Hi' },
      answers: { ...guarded, allowed: 400 },
    },
    // By the specification an unknown model is a 400 here too.
    'POST /v1/audio/speech': {
      path: () => '/v1/audio/speech',
      body: { input: 'Hi' },
      answers: { ...guarded, forbidden: 400, allowed: 400 },
    },
    'POST /v1/videos/generations': {
      path: () => '/v1/videos/generations',
      body: { input: { prompt: 'A fox' } },
      answers: { ...guarded, allowed: 400 },
    },
    'GET /v1/videos/generations': {
      path: () => '/v1/videos/generations',
      answers: { ...guarded, forbidden: 200 },
    },
    // Nobody's task; whose a task is, `tasks.test.ts` asks.
    'GET /v1/videos/generations/{id}': {
      path: () => '/v1/videos/generations/vid_1',
      answers: { ...guarded, allowed: 404 },
    },
    'DELETE /v1/videos/generations/{id}': {
      path: () => '/v1/videos/generations/vid_1',
      answers: { ...guarded, allowed: 404 },
    },
    // A token that we did not make is a path that is not there.
    'POST /callbacks/video/{id}': { path: () => '/callbacks/video/vid_1.x', answers: nothing },
    'GET /v1/models': { path: () => '/v1/models', answers: { ...guarded, forbidden: 200 } },
    'GET /v1/models/{id}': { path: (model) => `/v1/models/${model}`, answers: guarded },
    'GET /v1/usage': { path: () => '/v1/usage?group_by=model', answers: { ...guarded, forbidden: 200 } },
    'GET /v1/balance': { path: () => '/v1/balance', answers: { ...guarded, forbidden: 200 } },
    // A link without its signature is nobody's, whoever asks.
    'GET /artifacts/{id}': {
      path: () => '/artifacts/art_1.png',
      answers: { withoutKey: 403, forbidden: 403, allowed: 403 },
    },
    'GET /api/hello': { path: () => '/api/hello', answers: open },
    'GET /healthz': { path: () => '/healthz', answers: open },
    'GET /readyz': { path: () => '/readyz', answers: open },
    'GET /': { path: () => '/', answers: open },
    'GET /docs': { path: () => '/docs', answers: open },
    'GET /openapi.json': { path: () => '/openapi.json', answers: open },
  }
  const routes = makeRoutes({} as unknown as RouteParts)

  test('the table below names every route, and no other', () => {
    expect(Object.keys(rows).toSorted()).toEqual(routes.map(nameOf).toSorted())
  })

  test('a route is open exactly where it says so', () => {
    for (const route of routes) {
      expect({ route: nameOf(route), auth: route.auth }).toEqual({
        route: nameOf(route),
        auth: rows[nameOf(route)]?.answers.withoutKey === 401 ? 'key' : 'open',
      })
    }
  })

  test.each(Object.entries(rows))('%s', async (name, { path, body, answers }) => {
    const [method = ''] = name.split(' ')
    const call = (model: string, key?: string) =>
      fetch(gateway.url + path(model), {
        method,
        headers: { 'content-type': 'application/json', ...(key !== undefined && bearer(key)) },
        ...(body !== undefined && { body: JSON.stringify({ ...body, model }) }),
      })
    const withoutKey = await refusedForFree(gateway, () => call(allowed))
    const withForbidden = await refusedForFree(gateway, () => call(forbidden, narrow.key))
    const withAllowed = await call(allowed, narrow.key)
    expect({
      withoutKey: withoutKey.status,
      forbidden: withForbidden.status,
      allowed: withAllowed.status,
    }).toEqual(answers)
    for (const answer of [withoutKey, withForbidden, withAllowed]) {
      expect(answer.headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/)
    }
    const text = await withForbidden.text()
    if (answers.forbidden === 200 && answers.withoutKey === 401) expect(text).not.toContain(`"${forbidden}"`)
  })
})

const names = (response: Response) => [...response.headers.keys()].toSorted()

//
describe('the operator’s port', () => {
  const routes = makeAdminRoutes({} as unknown as AdminParts)

  test('has one open path, and that says nothing', () => {
    expect(routes.filter(({ auth }) => auth === 'open').map(nameOf)).toEqual(['GET /healthz'])
  })

  test.each(routes.filter(({ auth }) => auth !== 'open').map((route) => [nameOf(route), route] as const))(
    '%s is for operators alone',
    async (_name, { method, path }) => {
      const call = (headers: Record<string, string>) =>
        fetch(gateway.adminUrl + path.replace('{id}', other.id), {
          method,
          headers: { 'content-type': 'application/json', ...headers },
          ...(method !== 'GET' && { body: '{}' }),
        })
      for (const headers of [{}, bearer(other.key), bearer('adm-nobody')]) {
        const answer = await refusedForFree(gateway, () => call(headers))
        expect(answer.status).toBe(401)
        expect(await answer.text()).not.toContain(other.id)
      }
    },
  )

  test('is another port: what it has is not on the public one, nor the reverse', async () => {
    for (const { method, path } of routes) {
      if (path === '/healthz') continue
      expect((await fetch(gateway.url + path, { method, headers: bearer(other.key) })).status).toBe(404)
    }
    expect((await fetch(`${gateway.adminUrl}/v1/models`, { headers: bearer(other.key) })).status).toBe(404)
  })
})

// C-01, C-03; the other endpoints: `test/spec/images.test.ts`, `images-common.test.ts`, `speech.test.ts`.
describe('a model outside of the key’s scope', () => {
  test('cannot be told from one that does not exist', async () => {
    const answers = await refusedForFree(gateway, async () => ({
      real: await chat(says('Hello!', { model: 'gpt-5.2' })),
      invented: await chat(says('Hello!', { model: 'gpt-9.9' })),
    }))
    const { real, invented } = answers
    expect(real.status).toBe(404)
    expect(invented.status).toBe(404)
    expect((await real.text()).replaceAll('gpt-5.2', '')).toBe((await invented.text()).replaceAll('gpt-9.9', ''))
    expect(names(real)).toEqual(names(invented))
  })

  test('is not reached by rules that only real models have', async () => {
    // A reasoning model would refuse the temperature, a plain one the effort: neither may show through.
    for (const model of ['gpt-5.2', 'gpt-9.9']) {
      const answer = await refusedForFree(gateway, () =>
        chat(says('Hello!', { model, temperature: 0.2, reasoning_effort: 'odd', n: 9_999 })),
      )
      expect(answer.status).toBe(404)
    }
  })

  test.each([
    'GPT-4o-mini',
    'gpt-4o-mini ',
    ' gpt-4o-mini',
    'gpt-4o-mini\u0000',
    'gpt-4o-mini\n',
    'ｇｐｔ-4o-mini',
    'gpt‑4o‑mini',
    'gpt-4o-mini/',
    'gpt-4o*',
    '*',
    'openai/gpt-4o-mini',
    '__proto__',
    'constructor',
    'toString',
  ])('%j is no spelling of one', async (model) => {
    const answer = await refusedForFree(gateway, () => chat(says('Hello!', { model })))
    expect(answer.status).toBe(404)
    const found = await fetch(`${gateway.url}/v1/models/${encodeURIComponent(model)}`, {
      headers: bearer(narrow.key),
    })
    expect(found.status).toBe(404)
  })

  test('the list shows what may be used and nothing else', async () => {
    const { data } = (await (await fetch(`${gateway.url}/v1/models`, { headers: bearer(narrow.key) })).json()) as {
      data: { id: string }[]
    }
    expect(data.map(({ id }) => id)).toEqual([allowed])
  })
})

// C-04 and C-07; C-05: `crossings.test.ts`, C-06: `test/faults/idempotency.test.ts`.
describe('accounts do not meet', () => {
  test('the same question of two accounts is asked twice and paid by each', async () => {
    const before = (await gateway.calls()).length
    const mine = await chat(says('What is the same for both?'))
    const theirs = await chat(says('What is the same for both?'), other.key)
    expect((await gateway.calls()).length - before).toBe(2)
    expect(mine.headers.get('x-request-id')).not.toBe(theirs.headers.get('x-request-id'))
    expect(await recordOf(gateway, mine)).toMatchObject({ account_id: narrow.id })
    expect(await recordOf(gateway, theirs)).toMatchObject({ account_id: other.id })
  })

  test('labels that a vendor keeps things by are each account’s own, and steady', async () => {
    const labels = { prompt_cache_key: 'shared', user: 'shared', safety_identifier: 'shared' }
    const sent = async (key: string) => {
      await chat(says('Hello!', labels), key)
      return (await gateway.calls()).at(-1)?.body ?? {}
    }
    const mine = await sent(narrow.key)
    const theirs = await sent(other.key)
    const again = await sent(narrow.key)
    for (const label of Object.keys(labels)) {
      expect(mine[label]).toBeString()
      expect(mine[label]).not.toBe('shared')
      expect(mine[label]).not.toBe(theirs[label])
      expect(mine[label]).toBe(again[label])
    }
    const { body } = await (async () => {
      await chat(says('Hello!', { metadata: { user: 'shared' } }))
      return (await gateway.calls()).at(-1) ?? { body: {} as Record<string, unknown> }
    })()
    expect(body['metadata']).toEqual({ user: 'shared' })
  })

  test('a vendor that keeps conversations is told not to, unless the client says otherwise', async () => {
    const sent = async (more: Record<string, unknown>) => {
      await chat(says('Hello!', more))
      return (await gateway.calls()).at(-1)?.body['store']
    }
    expect(await sent({})).toBe(false)
    expect(await sent({ store: null })).toBe(false)
    expect(await sent({ store: true })).toBe(true)
    await chat(says('Hello!', { model: 'deepseek-chat' }), other.key)
    expect((await gateway.calls()).at(-1)?.body).not.toHaveProperty('store')
  })
})

// C-08, K-01: in the leased mode there is a journal beside the database.
test.each(['strict', 'leased'] as const)('what was said stands nowhere afterwards, booked %s', async (mode) => {
  const canary = 'canary-of-the-prompt-7f3a'
  const words = says(`Repeat: ${canary}`)
  const node = await startTestGateway({ mode })
  try {
    const ask = (body: unknown) => node.post('/v1/chat/completions', body)
    expect(await (await ask(words)).text()).toContain(canary)
    await payloadsOf(await ask({ ...words, stream: true }))
    await ask(says(`${canary} sandbox:status=500`))
    await ask(says(`${canary} sandbox:fail=content_policy_violation`))
    await ask(says(canary, { temperature: 3 }))
    await ask(says(canary, { model: canary }))
    await ask({ ...words, metadata: { note: canary }, user: canary })
    await node.assertBooks()
    const dump = await dumpAll(node)
    expect(dump).toContain('gpt-4o-mini')
    expect(dump).not.toContain(canary)
    if (mode === 'leased') expect(readdirSync(node.folder, { recursive: true }).join(' ')).toContain('journal')
  } finally {
    await node.close()
  }
})
