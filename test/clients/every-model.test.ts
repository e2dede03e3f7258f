import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import { anthropicClient, openaiClient } from '../support/clients.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'

/** Every chat model on every chat path, whatever protocol its vendor speaks: plain questions and tool loops. */

let gateway: TestGateway
let anthropic: Anthropic
let openai: OpenAI
let models: string[]

beforeAll(async () => {
  gateway = await startTestGateway({ mode: 'leased' })
  anthropic = anthropicClient(gateway, { maxRetries: 0 })
  openai = openaiClient(gateway)
  const listed = await Array.fromAsync(openai.models.list())
  models = listed
    // The vendor's client prints a warning for each request that names a model it wants to retire.
    .filter(({ id }) => !id.startsWith('claude-sonnet-4-5'))
    .filter((model) => (model as unknown as { capabilities: string[] }).capabilities.includes('chat'))
    .map(({ id }) => id)
  expect(models.length).toBeGreaterThan(50)
})
afterEach(() => gateway.assertBooks())
afterAll(() => gateway.close())

const msMax = 60_000

/** The models for which it does not work, with the reason. */
async function failing(work: (model: string) => Promise<void>): Promise<string[]> {
  const failed: string[] = []
  for (const model of models) {
    try {
      await work(model)
    } catch (thrown) {
      failed.push(`${model}: ${thrown instanceof Error ? thrown.message : String(thrown)}`)
    }
  }
  return failed
}

const schema = { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] }
const strict = { name: 'place', strict: true, schema: { ...schema, additionalProperties: false } }

test(
  'every chat model answers in the common protocol, whole and streamed',
  async () => {
    const failed = await failing(async (model) => {
      const messages = [{ role: 'user' as const, content: 'Hello!' }]
      const whole = await openai.chat.completions.create({ model, messages })
      expect(whole.model).toBe(model)
      expect(whole.choices[0]?.message.content).toContain('Hello!')
      expect(whole.usage?.total_tokens).toBeGreaterThan(0)
      const streamed = await openai.chat.completions.stream({ model, messages }).finalChatCompletion()
      expect(streamed.choices[0]?.message.content).toBe(whole.choices[0]?.message.content ?? '')
    })
    expect(failed).toEqual([])
  },
  msMax,
)

test(
  'every chat model answers in the responses protocol, whole and streamed',
  async () => {
    const failed = await failing(async (model) => {
      const whole = await openai.responses.create({ model, input: 'Hello!' })
      expect(whole).toMatchObject({ model, status: 'completed' })
      expect(whole.output_text).toContain('Hello!')
      const streamed = await openai.responses.stream({ model, input: 'Hello!' }).finalResponse()
      expect(streamed.output_text).toBe(whole.output_text)
      expect(streamed.usage?.total_tokens).toBe(whole.usage?.total_tokens)
    })
    expect(failed).toEqual([])
  },
  msMax,
)

test(
  "every chat model answers in Anthropic's protocol, whole and streamed",
  async () => {
    const failed = await failing(async (model) => {
      const ask = { model, max_tokens: 1_000, messages: [{ role: 'user' as const, content: 'Hello!' }] }
      const whole = await anthropic.messages.create(ask)
      expect(whole).toMatchObject({ model, stop_reason: 'end_turn' })
      const streamed = await anthropic.messages.stream(ask).finalMessage()
      expect(streamed.content.map(({ type }) => type)).toEqual(whole.content.map(({ type }) => type))
      expect(streamed.usage.output_tokens).toBe(whole.usage.output_tokens)
    })
    expect(failed).toEqual([])
  },
  msMax,
)

test(
  "every chat model completes a tool loop in Anthropic's protocol as Claude Code asks for it",
  async () => {
    const failed = await failing(async (model) => {
      const isOld = /claude-(?:opus|haiku|sonnet)-4-5/.test(model)
      const thinking = isOld ? ({ type: 'enabled', budget_tokens: 2_000 } as const) : ({ type: 'adaptive' } as const)
      const ask = {
        model,
        max_tokens: 32_000,
        system: [
          { type: 'text' as const, text: 'x-anthropic-billing-header: cc_version=2.1.325; cc_entrypoint=cli;' },
          { type: 'text' as const, text: 'You are an agent.', cache_control: { type: 'ephemeral' as const } },
        ],
        thinking,
        ...(!isOld && { output_config: { effort: 'high' as const } }),
        metadata: { user_id: JSON.stringify({ device: 'd'.repeat(64), account: '', session: 's'.repeat(64) }) },
        tools: [
          { name: 'get_weather', input_schema: { $schema: 'https://json-schema.org/draft/2020-12/schema', ...schema } },
        ],
      }
      const messages: Anthropic.MessageParam[] = [
        { role: 'user', content: [{ type: 'text', text: 'What is the weather in Oslo?' }] },
      ]
      // Anthropic refuses instructions in the middle on its models before Opus 4.8.
      if (!/^claude-\w+-4-[0-7]/.test(model)) {
        messages.push({ role: 'system', content: [{ type: 'text', text: 'The date is today.' }] })
      }
      const first = await anthropic.messages.stream({ ...ask, messages }).finalMessage()
      expect(first.stop_reason).toBe('tool_use')
      const call = first.content.find((block) => block.type === 'tool_use')
      messages.push(
        { role: 'assistant', content: first.content },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: call?.id ?? '', content: 'rain', is_error: false }],
        },
      )
      const second = await anthropic.messages.stream({ ...ask, messages }).finalMessage()
      expect(second.stop_reason).toBe('end_turn')
    })
    expect(failed).toEqual([])
  },
  msMax,
)

test(
  'every chat model completes a tool loop in the common protocol that begins with a required call',
  async () => {
    const failed = await failing(async (model) => {
      const tools = [{ type: 'function' as const, function: { name: 'get_weather', parameters: schema } }]
      const messages: OpenAI.ChatCompletionMessageParam[] = [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'What is the weather in Oslo?' },
      ]
      const asked = { model, messages, tools, tool_choice: 'required' as const }
      const first = await openai.chat.completions.stream(asked).finalChatCompletion()
      const message = first.choices[0]?.message
      if (message?.tool_calls?.length !== 1) throw new Error('it was not called')
      messages.push(message, { role: 'tool', tool_call_id: message.tool_calls[0]?.id ?? '', content: 'rain' })
      const second = await openai.chat.completions.create({ model, messages, tools })
      expect(second.choices[0]?.finish_reason).toBe('stop')
    })
    expect(failed).toEqual([])
  },
  msMax,
)

test(
  'every chat model answers with an instance of the schema that a client of the common protocol gives',
  async () => {
    const failed = await failing(async (model) => {
      const reply = await openai.chat.completions.create({
        model,
        messages: [{ role: 'user', content: 'Where is it raining?' }],
        response_format: { type: 'json_schema', json_schema: strict },
      })
      expect(JSON.parse(reply.choices[0]?.message.content ?? '')).toEqual({ city: expect.any(String) })
    })
    expect(failed).toEqual([])
  },
  msMax,
)
