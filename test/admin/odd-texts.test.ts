import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { errorOf, operatorOf, jsonClient, type JsonClient } from '../support/operator.ts'
import { coldStartMs } from '../support/postgres.ts'

const nul = '\u0000'
const halfPair = '\ud800'

// SQLite can store texts that PostgreSQL cannot: both must answer the same, whichever is configured.
describe.each([
  ['SQLite', 'sqlite'],
  ['PostgreSQL', 'postgres'],
] as const)('texts that a database may not be able to keep, on %s', (_name, engine) => {
  let gateway: TestGateway
  let operator: JsonClient
  let customer: JsonClient

  beforeAll(async () => {
    gateway = await startTestGateway({ engine, mode: 'leased' })
    operator = operatorOf(gateway)
    customer = jsonClient(gateway.url, gateway.key)
  }, coldStartMs)
  afterAll(async () => {
    await gateway.assertBooks()
    await gateway.close()
  })

  test.each([nul, halfPair])('%j is refused in a text that would be stored', async (odd) => {
    const { accountId } = gateway
    const text = `a${odd}b`
    const key = (fields: object) => ({ account: accountId, name: 'n', ...fields })
    const refused: [string, object, string][] = [
      [`accounts/${accountId}/credits`, { amount: '1', note: text }, 'note'],
      ['keys', key({ metadata: { team: text } }), 'metadata.team'],
      ['keys', key({ models: [text] }), 'models[0]'],
    ]
    for (const [path, body, param] of refused) {
      const told = errorOf(await operator.call('POST', `/admin/${path}`, body))
      expect({ path, ...told }).toMatchObject({ path, status: 400, param })
    }
    const named = await operator.call('POST', '/admin/keys', key({ metadata: { [text]: 'x' } }))
    expect(named.status).toBe(400)
  })

  test('a note with line breaks and symbols is kept as it was written', async () => {
    const note = 'paid by transfer\n\tno. 7 – ✓ 🙂'
    await operator.post(`/admin/accounts/${gateway.accountId}/credits`, { amount: '1', note })
    const [latest] = await operator.all<{ detail: unknown }>('/admin/audit')
    expect(latest?.detail).toMatchObject({ note })
  })

  test.each([
    '/v1/usage?group_by=model&after=%00',
    '/v1/usage?group_by=key&after=%00',
    '/v1/usage?group_by=day&after=%00',
    '/v1/usage?model=%00',
    '/v1/usage?records=true&after=%00',
    '/v1/videos/generations?after=%00',
    '/v1/videos/generations?model=%00',
  ])('%s is a 400', async (path) => {
    expect((await customer.call('GET', path)).status).toBe(400)
  })

  test.each([
    'usage?group_by=key&after=%00',
    'usage?group_by=vendor&after=%00',
    'usage?account=%00',
    'requests?after=%00',
    'requests?key=%00',
    'accounts?after=%00',
    'keys?after=%00',
    'keys?account=%00',
    'tasks?after=%00',
    'tasks?account=%00',
    'tasks?model=%00',
    'webhooks?after=%00',
    'webhooks?task=%00',
    'audit?after=%00',
    'models?after=%00',
    'channels?after=%00',
  ])('/admin/%s is a 400', async (path) => {
    expect((await operator.call('GET', `/admin/${path}`)).status).toBe(400)
  })

  test.each([
    ['GET', 'accounts/%00'],
    ['PATCH', 'accounts/%00'],
    ['GET', 'accounts/%00/credits'],
    ['POST', 'accounts/%00/webhook-secret'],
    ['DELETE', 'keys/%00'],
    ['GET', 'requests/%00'],
    ['GET', 'tasks/%00'],
    ['POST', 'webhooks/%00/resend'],
  ])('%s /admin/%s is a 404', async (method, path) => {
    const body = method === 'PATCH' ? { name: 'x' } : undefined
    expect((await operator.call(method, `/admin/${path}`, body)).status).toBe(404)
  })

  test('a page of sums may start after a group with an empty name', async () => {
    expect((await operator.call('GET', '/admin/usage?group_by=vendor&after=')).status).toBe(200)
  })

  test.each([nul, halfPair])('a task id with %j in it is unknown, like any other wrong id', async (odd) => {
    for (const method of ['GET', 'DELETE']) {
      const path = `/v1/videos/generations/${encodeURIComponent(`task_${odd.toWellFormed()}`)}`
      expect((await customer.call(method, path)).status).toBe(404)
    }
    const body = {
      model: 'doubao-seedance-1-5-pro-251215',
      input: { content: [{ type: 'draft_task', draft_task: { id: `cgt-${odd}` } }] },
    }
    const draft = errorOf(await customer.call('POST', '/v1/videos/generations', body))
    expect(draft).toMatchObject({ status: 400, param: 'input.content[0].draft_task.id' })
  })

  test('texts that are only passed on may contain anything', async () => {
    const content = `x${nul}${halfPair}`
    const chat = await gateway.post(
      '/v1/chat/completions',
      JSON.stringify({
        model: 'gpt-4o-mini',
        user: content,
        metadata: { [content]: content },
        messages: [{ role: 'user', content }],
      }),
      { 'idempotency-key': 'odd-texts' },
    )
    expect(chat.status).toBe(200)
    await chat.text()
    const video = await gateway.post(
      '/v1/videos/generations',
      JSON.stringify({ model: 'wan2.6-t2v', input: { prompt: content } }),
    )
    expect(video.status).toBe(202)
    const { id } = (await video.json()) as { id: string }
    const isOver = async () => {
      const { status } = await customer.get<{ status: string }>(`/v1/videos/generations/${id}`)
      return status === 'succeeded'
    }
    await until(isOver)
  })
})
