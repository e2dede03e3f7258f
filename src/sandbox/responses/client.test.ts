import { afterAll, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import type { ResponseInputItem, ResponseCreateParamsNonStreaming } from 'openai/resources/responses/responses'
import { openResponses } from './testing.ts'

// The vendor's own client judges whether the simulator speaks its protocol.
const { sandbox } = openResponses()
afterAll(() => sandbox.stop())

const client = new OpenAI({ apiKey: 'vendor-key', baseURL: sandbox.baseUrl('openai'), maxRetries: 0 })
const input: ResponseInputItem[] = [{ role: 'user', content: 'What is the weather in Paris?' }]
const tool = {
  type: 'function' as const,
  name: 'get_weather',
  strict: true,
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
}
const thinking = {
  model: 'gpt-5',
  input,
  store: false,
  reasoning: { summary: 'auto' },
  include: ['reasoning.encrypted_content'],
} satisfies ResponseCreateParamsNonStreaming

const identity = (error: unknown): unknown => error

describe('the official OpenAI client', () => {
  test('the client gets an answer', async () => {
    const response = await client.responses.create({ model: 'gpt-4o', input: 'What is the weather in Paris?' })
    expect(response.output_text).toContain('weather in Paris')
    expect(response._request_id).toStartWith('req_')
    expect(response).toMatchObject({ status: 'completed', error: null, usage: { input_tokens: 11 } })
  })

  test.each([[{ model: 'gpt-4o', input }], [thinking], [{ ...thinking, tools: [tool] }]])(
    'the client assembles a stream into the plain answer: %#',
    async (body) => {
      const streamed = await client.responses.stream(body).finalResponse()
      const plain = await client.responses.create(body)
      expect([streamed.output_text, streamed.usage]).toEqual([plain.output_text, plain.usage])
      const [whole, once]: unknown[] = [streamed.output, plain.output].map((output) =>
        output.map((item) => ({ ...item, parsed_arguments: undefined, content: undefined })),
      )
      expect(whole).toEqual(once)
    },
  )

  test('the client runs a tool loop with reasoning to its end', async () => {
    const first = await client.responses.create({ ...thinking, tools: [tool] })
    expect(first.output.map(({ type }) => type)).toEqual(['reasoning', 'function_call'])
    const call = first.output.find((item) => item.type === 'function_call')
    expect(JSON.parse(call?.arguments ?? '')).toEqual({ city: expect.any(String) })
    const result = { type: 'function_call_output' as const, call_id: call?.call_id ?? '', output: 'Sunny' }
    const said = first.output as ResponseInputItem[]
    const second = await client.responses.create({ ...thinking, tools: [tool], input: [...input, ...said, result] })
    expect(second.output.map(({ type }) => type)).toEqual(['reasoning', 'message'])
    // The answer's items are accepted when they come back unchanged, too.
    const third = [...input, ...said, result, ...(second.output as ResponseInputItem[]), ...input]
    expect((await client.responses.create({ ...thinking, input: third })).status).toBe('completed')
  })

  test('the client parses a structured answer', async () => {
    const schema = {
      type: 'object',
      properties: { steps: { type: 'array', items: { type: 'string' } }, done: { type: 'boolean' } },
      required: ['steps', 'done'],
      additionalProperties: false,
    }
    const text = { format: { type: 'json_schema' as const, name: 'plan', strict: true, schema } }
    const response = await client.responses.parse({ model: 'gpt-4o', input, text })
    const parsed: unknown = JSON.parse(response.output_text)
    expect(parsed).toEqual({ steps: expect.any(Array), done: expect.any(Boolean) })
  })

  test('the client throws refusals and stream errors, and returns a failed response', async () => {
    const wrong = client.responses.create({ model: 'unheard-of', input })
    const refused: unknown = await wrong.then(() => undefined, identity)
    expect(refused).toMatchObject({ status: 404, code: 'model_not_found', type: 'invalid_request_error' })
    const broken = client.responses.stream({ model: 'gpt-4o', input: 'sandbox:midstream-error' }).finalResponse()
    const message = 'The server had an error while processing your request.'
    expect(await broken.then(() => undefined, identity)).toMatchObject({ message, status: undefined })
    const failed = await client.responses.stream({ model: 'gpt-4o', input: 'sandbox:finish=failed' }).finalResponse()
    expect([failed.status, failed.error?.code]).toEqual(['failed', 'server_error'])
  })
})
