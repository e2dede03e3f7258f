import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { anthropicClient, lastCall, openaiClient, thrownBy } from '../support/clients.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { lastRequestOf, recordOf } from '../support/records.ts'

/** OpenAI's thinking models are asked in its newer protocol, whichever protocol the client speaks. */

let gateway: TestGateway
let openai: OpenAI
let anthropic: Anthropic

beforeAll(async () => {
  gateway = await startTestGateway({ mode: 'leased' })
  openai = openaiClient(gateway)
  anthropic = anthropicClient(gateway)
})
afterEach(() => gateway.assertBooks())
afterAll(() => gateway.close())

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const newer = '/openai/v1/responses'
const older = '/openai/v1/chat/completions'

describe('a client of chat', () => {
  const weather: OpenAI.ChatCompletionTool = { type: 'function', function: { name: 'get_weather', parameters } }
  const ask = { model: 'gpt-5.4', tools: [weather], reasoning_effort: 'high' as const }
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'What is the weather in Oslo?' }]

  test('a model thinks beside tools, and its reasoning goes back to the vendor in the next turn', async () => {
    const first = await openai.chat.completions.create({ ...ask, messages })
    expect((await lastCall(gateway)).path).toBe(newer)
    const [choice] = first.choices
    expect(choice?.finish_reason).toBe('tool_calls')
    expect(first.usage?.completion_tokens_details?.reasoning_tokens).toBeGreaterThan(0)
    const call = choice?.message.tool_calls?.[0]
    const result = { role: 'tool' as const, tool_call_id: call?.id ?? '', content: '4 degrees' }
    const later = choice === undefined ? [] : [choice.message, result]
    const second = await openai.chat.completions.create({ ...ask, messages: [...messages, ...later] })
    expect(second).toMatchObject({ model: 'gpt-5.4', choices: [{ finish_reason: 'stop' }] })
    const { body } = await lastCall(gateway)
    const types = (body['input'] as { type?: string }[]).map(({ type }) => type)
    expect(types).toEqual([undefined, 'reasoning', 'function_call', 'function_call_output'])
    expect((await recordOf(gateway, second._request_id ?? '')).basis).toBe('vendor')
  })

  test('a stream has the tool call and the reasoning tokens', async () => {
    const stream = openai.chat.completions.stream({ ...ask, messages, stream_options: { include_usage: true } })
    const final = await stream.finalChatCompletion()
    expect(final.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { tool_calls: [{ type: 'function' }] },
    })
    expect(final.usage?.completion_tokens_details?.reasoning_tokens).toBeGreaterThan(0)
  })

  test('several choices are made by as many calls', async () => {
    const before = await gateway.callCount()
    const { choices } = await openai.chat.completions.create({ ...ask, messages, n: 2 })
    expect(choices.map(({ index }) => index)).toEqual([0, 1])
    expect((await gateway.callCount()) - before).toBe(2)
  })

  test.each([
    ['without tools', { model: 'gpt-5.4', reasoning_effort: 'high' }],
    ['without an effort', { model: 'gpt-5.4', tools: [weather] }],
    ['on an older model', { ...ask, model: 'gpt-5.1' }],
    ['to a model without reasoning', { model: 'gpt-4o-mini', tools: [weather] }],
  ] as const)('a request %s passes through in the older protocol', async (_how, body) => {
    await openai.chat.completions.create({ ...body, messages } as OpenAI.ChatCompletionCreateParamsNonStreaming)
    expect((await lastCall(gateway)).path).toBe(older)
  })
})

test('a client of messages gets thinking beside tools in the newer protocol, few tokens in the older', async () => {
  const tools: Anthropic.Tool[] = [{ name: 'get_weather', input_schema: { ...parameters, type: 'object' } }]
  const ask = { model: 'gpt-5.6-sol', tools, messages: [{ role: 'user' as const, content: 'Weather in Oslo?' }] }
  const thinking = { type: 'adaptive' as const }
  const message = await anthropic.messages.create({ ...ask, max_tokens: 4_000, thinking })
  expect(message.content.map(({ type }) => type)).toEqual(['thinking', 'tool_use'])
  expect((await lastCall(gateway)).path).toBe(newer)
  await anthropic.messages.create({ ...ask, max_tokens: 1 })
  const { path, body } = await lastCall(gateway)
  expect(path).toBe(older)
  expect(body).toMatchObject({ reasoning_effort: 'none', max_completion_tokens: 1 })
})

describe('a client of responses, passed through', () => {
  const model = 'gpt-5.5'
  const patch: OpenAI.Responses.CustomTool = {
    type: 'custom',
    name: 'apply_patch',
    format: { type: 'grammar', syntax: 'lark', definition: 'start: /.+/' },
  }
  const keeping = { include: ['reasoning.encrypted_content' as const], reasoning: { effort: 'low' as const } }

  test("custom tools and reasoning pass through, and the client's label comes back as it was sent", async () => {
    const ask = { model, ...keeping, tools: [patch], tool_choice: 'required' as const, prompt_cache_key: 'mine' }
    const input: OpenAI.Responses.ResponseInputItem[] = [{ role: 'user', content: 'Mend it.' }]
    const first = await openai.responses.create({ ...ask, input })
    expect(first.output.map(({ type }) => type)).toEqual(['reasoning', 'custom_tool_call'])
    expect(first).toMatchObject({ model, store: false, prompt_cache_key: 'mine' })
    const call = first.output.find((item) => item.type === 'custom_tool_call')
    input.push(...(first.output as OpenAI.Responses.ResponseInputItem[]))
    input.push({ type: 'custom_tool_call_output', call_id: call?.call_id ?? '', output: 'Done.' })
    const second = await openai.responses.create({ ...ask, tool_choice: 'auto', input })
    expect(second.output.at(-1)?.type).toBe('message')
    const { body, path } = await lastCall(gateway)
    expect(path).toBe(newer)
    expect(body).toMatchObject({ ...keeping, tools: [patch], store: false })
    expect(body['prompt_cache_key']).not.toBe('mine')
    expect((await recordOf(gateway, second._request_id ?? '')).basis).toBe('vendor')
  })

  test("a refusal has the vendor's own code and field", async () => {
    const strict = { type: 'function' as const, name: 'f', strict: true, parameters: { type: 'object' } }
    const asked = openai.responses.create({ model, input: 'Hi', tools: [strict] })
    const error = await thrownBy(asked, OpenAI.BadRequestError)
    expect(error).toMatchObject({ status: 400, code: 'invalid_function_parameters', param: 'tools[0].parameters' })
  })

  test('a field that the gateway does not know reaches the vendor, which refuses it in its own words', async () => {
    const unknown = { invented: { number: 7, list: [null, 'é'] } }
    const error = await thrownBy(openai.responses.create({ model, input: 'Hi', ...unknown }), OpenAI.BadRequestError)
    expect(error).toMatchObject({ code: 'unknown_parameter', param: 'invented' })
    expect((await lastCall(gateway)).body).toMatchObject(unknown)
  })

  test('a client that leaves is charged for what it read', async () => {
    const { key, id } = await gateway.account({ dollars: '10' })
    const client = openaiClient({ url: gateway.url, key })
    const stream = await client.responses.create({
      model,
      input: 'Tell me. sandbox:tokens=2000 sandbox:pace=5',
      stream: true,
    })
    for await (const { type } of stream) if (type === 'response.output_text.delta') break
    await until(async () => (await lastRequestOf(gateway, id)) !== undefined)
    const record = await lastRequestOf(gateway, id)
    expect(record).toMatchObject({ status: 499, basis: 'estimated' })
    expect(record?.cost).toBeGreaterThan(0n)
  })

  test('an answer that the vendor did not count is charged as an estimate', async () => {
    const response = await openai.responses.create({ model, input: 'Hi sandbox:nousage' })
    expect(await recordOf(gateway, response._request_id ?? '')).toMatchObject({ status: 200, basis: 'estimated' })
  })
})

describe('a stream that repeats its request', () => {
  const longest = 'word '.repeat(230_000)
  const long = 'word '.repeat(90_000)
  const said = [{ role: 'user', content: 'Hi' }]
  test.each([
    ['/v1/responses', { instructions: longest, input: 'Hi' }, 'response.completed'],
    ['/v1/responses', { instructions: long, input: 'Hi', max_output_tokens: 16 }, 'response.incomplete'],
    ['/v1/messages', { system: longest, messages: said, max_tokens: 1_000 }, 'message_stop'],
    ['/v1/messages', { system: long, messages: said, max_tokens: 16 }, 'message_stop'],
  ])('a stream of %s with very long instructions comes to its end: case %#', async (path, body, end) => {
    const response = await gateway.post(path, { model: 'gpt-5.5', stream: true, ...body })
    const events = (await response.text()).match(/^event: .*$/gm)
    expect(events?.at(-1)).toBe(`event: ${end}`)
    expect((await recordOf(gateway, response)).basis).toBe('vendor')
  })
})
