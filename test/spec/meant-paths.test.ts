import { afterAll, beforeAll, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { operatorOf, jsonClient } from '../support/operator.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startTestGateway()
})
afterAll(async () => {
  await gateway.assertBooks()
  await gateway.close()
})

const refused = async (method: string, path: string) => {
  const { status, body } = await jsonClient(gateway.url, gateway.key).call(
    method,
    path,
    method === 'POST' ? {} : undefined,
  )
  expect(status).toBe(404)
  return (body as { error: { message: string } }).error.message
}

test.each([
  ['POST', '/chat/completions', '/v1/chat/completions'],
  ['POST', '/v1/v1/messages', '/v1/messages'],
  ['POST', '/v1//chat/completions', '/v1/chat/completions'],
  ['POST', '/v1/images//edits', '/v1/images/edits'],
  ['POST', '/v1/chat/completions/chat/completions', '/v1/chat/completions'],
  ['POST', '/openai/v1/embeddings', '/v1/embeddings'],
  ['GET', '/v1/models/', '/v1/models'],
  ['GET', '/models', '/v1/models'],
  ['GET', '/docs/', '/docs'],
  ['POST', '/mcp/', '/mcp'],
  // The base address itself, as the greeting has it.
  ['GET', '/v1', '/v1/models'],
  ['POST', '/v1/images', '/v1/images/generations'],
  // What clients of earlier years call.
  ['POST', '/v1/completions', '/v1/chat/completions'],
  ['POST', '/v1/engines/gpt-4o-mini/completions', '/v1/chat/completions'],
  ['POST', '/v1/edits', '/v1/chat/completions'],
  ['POST', '/images/edits', '/v1/images/edits'],
  ['POST', '/v1/complete', '/v1/messages'],
  ['GET', '/v1/engines', '/v1/models'],
  ['GET', '/sse', 'POST /mcp'],
  ['POST', '/mcp/sse', '/mcp'],
  // A letter or two are wrong.
  ['POST', '/v1/chat/completion', '/v1/chat/completions'],
  ['POST', '/chat/completion', '/v1/chat/completions'],
  ['POST', '/v1/chat/compeltions', '/v1/chat/completions'],
  ['POST', '/v1/v1/message', '/v1/messages'],
  ['POST', '/openai/v1/response', '/v1/responses'],
  ['POST', '/v1/image/generation', '/v1/images/generations'],
  ['GET', '/v1/model', '/v1/models'],
  ['GET', '/health', '/healthz'],
  // Opened in a browser.
  ['GET', '/chat/completions', 'POST /v1/chat/completions'],
  ['GET', '/v1/chat', 'POST /v1/chat/completions'],
  ['GET', '/v1/completions', 'POST /v1/chat/completions'],
  ['GET', '/v1/video/generations', '/v1/videos/generations'],
])('%s %s is a 404 that names the route that was meant', async (method, path, meant) => {
  expect(await refused(method, path)).toBe(
    `Unknown path: ${method} ${path}. Did you mean ${meant.includes(' ') ? meant : `${method} ${meant}`}?`,
  )
})

test.each([
  ['POST', '/v1/audio/transcriptions'],
  // It ends like one of our paths, but is another.
  ['POST', '/v1/superembeddings'],
  ['POST', '/v1/models/'],
  ['POST', '/v1/chat/complete/all'],
  ['DELETE', '/v1/video/generations'],
  ['GET', '/v1/models/openai/gpt-4o-mini'],
  ['GET', `/${'x'.repeat(100)}/v1/models`],
])('%s %s is a 404 without a suggestion', async (method, path) => {
  expect(await refused(method, path)).toBe(`Unknown path: ${method} ${path.slice(0, 100)}`)
})

test('the official SDK shows the suggestion, and the admin API makes one too', async () => {
  const client = new OpenAI({ baseURL: gateway.url, apiKey: gateway.key, maxRetries: 0 })
  const asked = client.chat.completions.create({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hi' }] })
  expect(await asked.catch(String)).toContain('Did you mean POST /v1/chat/completions?')
  for (const path of ['/admin/accounts/', '/admin']) {
    const { status, body } = await operatorOf(gateway).call('GET', path)
    expect({ status, body }).toMatchObject({
      status: 404,
      body: { error: { code: 'unknown_url', message: `Unknown path: GET ${path}. Did you mean GET /admin/accounts?` } },
    })
  }
})
