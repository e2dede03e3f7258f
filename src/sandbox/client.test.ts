import { afterAll, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { openSandbox } from './testing.ts'

// The vendor's own client judges whether the simulator speaks its protocol.
const { sandbox } = openSandbox()
afterAll(() => sandbox.stop())

const client = new OpenAI({ apiKey: 'vendor-key', baseURL: sandbox.baseUrl('openai'), maxRetries: 0 })
const messages = [{ role: 'user' as const, content: 'What is the weather in Paris?' }]
const tools = [
  {
    type: 'function' as const,
    function: {
      name: 'get_weather',
      strict: true,
      parameters: {
        type: 'object',
        properties: { city: { type: 'string' }, unit: { type: 'string', enum: ['C', 'F'] } },
        required: ['city', 'unit'],
        additionalProperties: false,
      },
    },
  },
]

const identity = (error: unknown): unknown => error

describe('the official OpenAI client', () => {
  test('the client gets an answer', async () => {
    const completion = await client.chat.completions.create({ model: 'plain', messages })
    expect(completion.choices[0]?.message.content).toContain('weather in Paris')
    expect(completion.usage?.total_tokens).toBeGreaterThan(0)
    expect(completion._request_id).toStartWith('req_')
  })

  test('the client assembles a stream into the plain answer', async () => {
    const runner = client.chat.completions.stream({ model: 'plain', messages, stream_options: { include_usage: true } })
    let text = ''
    for await (const chunk of runner) text += chunk.choices[0]?.delta.content ?? ''
    const plain = await client.chat.completions.create({ model: 'plain', messages })
    expect(text).toBe(plain.choices[0]?.message.content ?? '')
    expect(await runner.totalUsage()).toMatchObject({ total_tokens: plain.usage?.total_tokens ?? 0 })
  })

  test.each([false, true])('the client runs a tool loop to its end, streaming %p', async (isStreaming) => {
    const asked: unknown[] = []
    const tool = tools[0]
    if (!tool) throw new Error('no tool')
    const runnable = {
      type: 'function' as const,
      function: {
        ...tool.function,
        description: 'weather',
        parse: (text: string): unknown => JSON.parse(text),
        function: (args: unknown) => {
          asked.push(args)
          return 'Sunny'
        },
      },
    }
    const body = { model: 'plain', messages, tools: [runnable] }
    const runner = isStreaming
      ? client.chat.completions.runTools({ ...body, stream: true })
      : client.chat.completions.runTools(body)
    expect(await runner.finalContent()).toEqual(expect.any(String))
    expect(asked).toEqual([{ city: expect.any(String), unit: expect.stringMatching(/^[CF]$/) }])
  })

  test('the client parses a structured answer', async () => {
    const schema = {
      type: 'object',
      properties: { steps: { type: 'array', items: { type: 'string' } }, done: { type: 'boolean' } },
      required: ['steps', 'done'],
      additionalProperties: false,
    }
    const completion = await client.chat.completions.parse({
      model: 'plain',
      messages,
      response_format: { type: 'json_schema', json_schema: { name: 'plan', strict: true, schema } },
    })
    const parsed: unknown = JSON.parse(completion.choices[0]?.message.content ?? '')
    expect(parsed).toEqual({ steps: expect.any(Array), done: expect.any(Boolean) })
  })

  test('the client lists the models', async () => {
    const page = await client.models.list()
    expect(page.data.map((model) => model.id)).toContain('plain')
  })

  test('the client throws refusals and errors in the middle of a stream', async () => {
    const wrong = client.chat.completions.create({ model: 'unheard-of', messages })
    const refused: unknown = await wrong.then(() => undefined, identity)
    expect(refused).toMatchObject({ status: 404, code: 'model_not_found', type: 'invalid_request_error' })
    const steered = [{ role: 'user' as const, content: 'sandbox:midstream-error' }]
    const stream = await client.chat.completions.create({ model: 'plain', messages: steered, stream: true })
    const read = async (): Promise<void> => {
      for await (const chunk of stream) expect(chunk.object).toBe('chat.completion.chunk')
    }
    const failed: unknown = await read().then(() => undefined, identity)
    expect(failed).toMatchObject({ type: 'server_error', status: undefined })
  })
})
