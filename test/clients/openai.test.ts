import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'

let gateway: TestGateway
let client: OpenAI

beforeAll(async () => {
  gateway = await startTestGateway()
  client = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1` })
})
afterEach(() => gateway.assertBooks())
afterAll(() => gateway.close())

test('a plain answer', async () => {
  const completion = await client.chat.completions.create({
    model: 'gpt-4o-mini',
    messages: [{ role: 'user', content: 'Hello!' }],
  })
  expect(completion.choices[0]?.message.content).toContain('Hello!')
  expect(completion.model).toBe('gpt-4o-mini')
  expect(completion._request_id).toStartWith('req_')
})
