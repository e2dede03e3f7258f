import { afterAll, describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { openMessages } from './testing.ts'

// The vendor's own client judges whether the simulator speaks its protocol.
const { sandbox, base } = openMessages()
afterAll(() => sandbox.stop())

const client = new Anthropic({ apiKey: 'vendor-key', baseURL: base, maxRetries: 0 })
const messages = [{ role: 'user' as const, content: 'What is the weather in Paris?' }]
const asked = { model: 'claude-test', max_tokens: 2_000, messages }
const tool: Anthropic.Tool = {
  name: 'get_weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

const identity = (error: unknown): unknown => error

describe('the official Anthropic client', () => {
  test('the client gets an answer', async () => {
    const message = await client.messages.create(asked)
    expect(message.content[0]).toMatchObject({ type: 'text', text: expect.stringContaining('weather in Paris') })
    expect(message._request_id).toStartWith('req_')
  })

  test('the client assembles a stream of thinking and tool calls into the plain answer', async () => {
    const more = { ...asked, tools: [tool], thinking: { type: 'adaptive' as const } }
    const [streamed, plain] = [await client.messages.stream(more).finalMessage(), await client.messages.create(more)]
    expect(streamed.content.map(({ type }) => type)).toEqual(['thinking', 'tool_use'])
    const whole: unknown = streamed.content
    expect(whole).toEqual(plain.content)
    expect([streamed.stop_reason, streamed.usage.output_tokens]).toEqual(['tool_use', plain.usage.output_tokens])
  })

  test('the client runs a tool loop with thinking to its end', async () => {
    const more = { ...asked, tools: [tool], thinking: { type: 'enabled' as const, budget_tokens: 1_024 } }
    const first = await client.messages.create(more)
    const call = first.content.find((block) => block.type === 'tool_use')
    const result = { type: 'tool_result' as const, tool_use_id: call?.id ?? '', content: 'Sunny' }
    const second = await client.messages.create({
      ...more,
      messages: [...messages, { role: 'assistant', content: first.content }, { role: 'user', content: [result] }],
    })
    expect(second.stop_reason).toBe('end_turn')
  })

  test('the client reads a web search with its citations', async () => {
    const tools = [{ type: 'web_search_20250305' as const, name: 'web_search' as const }]
    const body = { ...asked, tools, messages: [{ role: 'user' as const, content: 'Search for roads' }] }
    const { content, usage } = await client.messages.stream(body).finalMessage()
    expect(content.map(({ type }) => type)).toEqual(['server_tool_use', 'web_search_tool_result', 'text'])
    expect(content[2]).toMatchObject({ citations: [{ type: 'web_search_result_location' }, {}] })
    expect(usage.server_tool_use?.web_search_requests).toBe(1)
  })

  test('the client counts tokens and lists the models page by page', async () => {
    const { input_tokens: tokens } = await client.messages.countTokens({ model: 'claude-test', messages })
    expect(tokens).toBeGreaterThan(0)
    const ids: string[] = []
    for await (const model of client.models.list({ limit: 1 })) ids.push(model.id)
    expect(ids).toEqual(['claude-test', 'claude-plain', 'claude-new', 'claude-always', 'claude-between'])
  })

  test('the client uses a beta', async () => {
    const message = await client.beta.messages.create({
      ...asked,
      betas: ['context-management-2025-06-27'],
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    })
    expect(message.stop_reason).toBe('end_turn')
  })

  test('the client throws refusals and errors in the middle of a stream', async () => {
    const wrong: unknown = await client.messages
      .create({ ...asked, model: 'unheard-of' })
      .then(() => undefined, identity)
    expect(wrong).toBeInstanceOf(Anthropic.NotFoundError)
    expect(wrong).toMatchObject({ status: 404, type: 'not_found_error' })
    const content = 'sandbox:midstream-error'
    const broken = client.messages.stream({ ...asked, messages: [{ role: 'user', content }] }).finalMessage()
    expect(await broken.then(() => undefined, identity)).toMatchObject({ type: 'overloaded_error' })
  })
})
