import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { z } from 'zod'
import type { Document, Response as Shown } from '../../scripts/openapi/types.ts'
import { png } from '../support/clients.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'

/** What is answered, held against `/openapi.json` as a client that is generated from it would. */

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

/** What a path is said to answer with a status. */
function shownBy(path: string, status: number): NonNullable<Shown['content'][string]> {
  const told = contract.paths[path]?.['post']?.responses[status]
  const response = told !== undefined && '$ref' in told ? contract.components.responses[nameIn(told.$ref)] : told
  const shown = response?.content['application/json']
  if (shown === undefined) throw new Error(`${path} is not said to answer ${status}`)
  return shown
}

function expectFit(path: string, status: number, body: unknown): void {
  const { schema } = shownBy(path, status)
  const named = schema.$ref === undefined ? schema : contract.components.schemas[nameIn(schema.$ref)]
  // Its type is that of any JSON schema; ours has those words that the contract uses.
  const parsed = z.fromJSONSchema(named as z.core.JSONSchema.JSONSchema).safeParse(body)
  expect({ path, status, misfits: parsed.error?.issues ?? [] }).toEqual({ path, status, misfits: [] })
}

function nameIn(ref: string): string {
  return ref.split('/').at(-1) ?? ''
}

const says = (content: string) => [{ role: 'user', content }]

describe('errors', () => {
  // Its body passes as it came: OpenAI's has no code for much of it, and Alibaba's has fields beside `error`.
  test.each([
    ['/v1/chat/completions', 400, { model: 'qwen-plus', messages: says('sandbox:status=400') }],
    ['/v1/chat/completions', 422, { model: 'gpt-4o-mini', messages: says('sandbox:status=422') }],
    ['/v1/messages', 400, { model: 'claude-sonnet-4-5', max_tokens: 9, messages: says('sandbox:status=400') }],
    ['/v1/responses', 409, { model: 'gpt-4o-mini', input: 'sandbox:status=409' }],
    ['/v1/embeddings', 400, { model: 'text-embedding-3-small', input: 'sandbox:status=400' }],
    ['/v1/images/generations', 400, { model: 'gpt-image-1', prompt: 'sandbox:status=400' }],
    ['/v1/audio/speech', 400, { model: 'tts-1', input: 'sandbox:status=400' }],
    ['/v1/videos/generations', 422, { model: 'sora-2', input: { prompt: 'sandbox:status=422' } }],
  ] as const)('a refusal of a vendor is one that %s is said to give: %d', async (path, status, body) => {
    const refused = await gateway.post(path, body)
    expect(refused.status).toBe(status)
    expectFit(path, status, await refused.json())
  })

  test('an empty purse is shown as each path says it', async () => {
    const { key } = await gateway.account({ dollars: '0' })
    const form = new FormData()
    form.set('model', 'gpt-image-1')
    form.set('prompt', 'Add a boat')
    form.set('image', new File([Buffer.from(png, 'base64')], 'sea.png'))
    const bodies = {
      '/v1/chat/completions': JSON.stringify({ model: 'gpt-4o-mini', messages: says('Hello!') }),
      '/v1/audio/speech': JSON.stringify({ model: 'tts-1', input: 'Hello!' }),
      '/v1/images/edits': form,
    }
    for (const [path, body] of Object.entries(bodies)) {
      const type = typeof body === 'string' ? { 'content-type': 'application/json' } : {}
      const headers = { authorization: `Bearer ${key}`, ...type }
      const refused = await fetch(gateway.url + path, { method: 'POST', headers, body })
      const told = (await refused.json()) as { error: object }
      expectFit(path, 402, told)
      const examples = Object.values(shownBy(path, 402).examples ?? {}).map(({ value }) => Object.keys(value.error))
      expect({ path, fields: [Object.keys(told.error)] }).toEqual({ path, fields: examples })
    }
  })
})
