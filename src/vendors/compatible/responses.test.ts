import { describe, expect, test } from 'bun:test'
import { errorOf } from '../../../test/support/thrown.ts'
import type { JsonObject } from '../../base/json.ts'
import type { ChatAsk, ChatCodec } from '../../capabilities/chat.ts'
import { plainModel } from '../../capabilities/testing.ts'
import { anthropicChat } from '../../wire/anthropic/chat.ts'
import { openaiChat } from '../../wire/openai/chat.ts'
import { responsesChat } from '../../wire/responses/chat.ts'
import { vendors } from '../index.ts'
import { plainContext } from '../testing.ts'
import type { AskedModel } from '../vendor.ts'

function askOf(codec: ChatCodec, body: JsonObject): ChatAsk {
  const words = codec === responsesChat ? { input: 'Hi' } : { messages: [{ role: 'user', content: 'Hi' }] }
  const traits = { ...plainModel, reasoning: true, efforts: ['none', 'low', 'high'] }
  return codec.readAsk(
    { body: { model: 'm', ...words, ...body }, files: [], bodyBytes: 100, header: () => null },
    () => traits,
  )
}

function served(ask: ChatAsk, model: AskedModel, vendor = 'openai'): boolean | undefined {
  return vendors.get(vendor)?.chat?.secondProtocol?.serves(ask, model)
}

const shown = (...content: JsonObject[]) => ({ messages: [{ role: 'tool', tool_call_id: 'c', content }] })
const thinker = (upstreamModel: string, efforts = ['none', 'low']): AskedModel => ({
  upstreamModel,
  reasoning: true,
  efforts,
})

describe.each(['openai', 'azure'])('the Responses protocol of %s', (vendor) => {
  test.each([
    ['messages', anthropicChat, { max_tokens: 16 }],
    ['responses', responsesChat, {}],
  ])('the protocol serves clients of %s only when the model reasons', (_name, codec, body) => {
    expect(served(askOf(codec, body), thinker('gpt-5'), vendor)).toBe(true)
    expect(served(askOf(codec, body), { upstreamModel: 'gpt-4o', reasoning: false, efforts: [] }, vendor)).toBe(false)
  })

  test.each([
    ['messages', anthropicChat, { max_tokens: 15 }],
    ['responses', responsesChat, { max_output_tokens: 15 }],
  ])('the protocol does not serve clients of %s with a cap below its minimum', (_name, codec, body) => {
    expect(served(askOf(codec, body), thinker('gpt-5'), vendor)).toBe(false)
  })

  test.each([
    ['messages', anthropicChat, { max_tokens: 15, tools: [{ name: 'f', input_schema: { type: 'object' } }] }],
    ['responses', responsesChat, { max_output_tokens: 15, tools: [{ type: 'function', name: 'f', parameters: {} }] }],
  ])('such a cap of clients of %s is refused in it where chat would refuse their tools', (_name, codec, body) => {
    const isServed = (...model: Parameters<typeof thinker>) => served(askOf(codec, body), thinker(...model), vendor)
    expect(isServed('gpt-5', ['low'])).toBe(false)
    expect(isServed('gpt-6-sol')).toBe(false)
    expect(isServed('gpt-6-astra', ['low'])).toBe(true)
    expect(isServed('gpt-6.1-terra')).toBe(true)
  })

  test('a cap below its minimum beside a web search, which is not sent, leaves the ask to chat', () => {
    const body = { max_tokens: 15, tools: [{ type: 'web_search_20250305', name: 'web_search' }] }
    expect(served(askOf(anthropicChat, body), thinker('gpt-6.1-terra'), vendor)).toBe(false)
  })
})

describe('the Responses protocol for chat clients', () => {
  const tool = { type: 'function', function: { name: 'f', parameters: {} } }
  const custom = { type: 'custom', custom: { name: 'g' } }
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } }
  test.each([
    ['gpt-5.2', { tools: [tool], reasoning_effort: 'high' }, false],
    ['gpt-5.4', { tools: [tool], reasoning_effort: 'high' }, true],
    ['gpt-5.4', { tools: [tool], reasoning_effort: 'none' }, false],
    ['gpt-5.4', { tools: [tool] }, false],
    ['gpt-5.4', { reasoning_effort: 'high' }, false],
    ['gpt-5.4', { tools: [tool, custom], reasoning_effort: 'high' }, false],
    ['gpt-5.6-sol', { tools: [tool] }, true],
    ['gpt-5.6-sol', { tools: [tool], max_completion_tokens: 15 }, true],
    ['gpt-5.6-sol', { max_completion_tokens: 15 }, false],
    ['gpt-5.6-sol', { tools: [tool], reasoning_effort: 'none', max_completion_tokens: 15 }, false],
    ['gpt-5.6-sol', { tools: [tool], reasoning_effort: 'none' }, false],
    ['gpt-5.4', { functions: [tool.function], reasoning_effort: 'high' }, true],
    ['gpt-5.4', { functions: [tool.function] }, false],
    ['gpt-5.6-sol', { functions: [tool.function] }, true],
    ['gpt-5.10', { tools: [tool], reasoning_effort: 'low' }, true],
    ['gpt-6', { tools: [tool] }, true],
    ['gpt-6-luna', { tools: [tool], reasoning_effort: 'none' }, false],
    ['gpt-6.1-terra', { tools: [tool], reasoning_effort: 'none' }, true],
    ['gpt-6.1-terra', { functions: [tool.function], reasoning_effort: 'none' }, true],
    ['gpt-6.1-terra', { reasoning_effort: 'high' }, false],
    ['gpt-5.1-codex', {}, true],
    ['gpt-5-pro', {}, true],
    ['gpt-5.4-pro-2026-03-05', {}, true],
    ['o3-pro', {}, true],
    ['o3', { tools: [tool], reasoning_effort: 'high' }, false],
    ['o3', shown(image), true],
    ['o3', { ...shown(image), tools: [custom] }, false],
    ['o3', shown({ type: 'text', text: 'Words.' }), false],
    ['o3', { messages: [{ role: 'user', content: [image] }] }, false],
  ])('the protocol serves %s with %j: %p', (upstreamModel, body, isServed) => {
    expect(served(askOf(openaiChat, body), thinker(upstreamModel))).toBe(isServed)
  })
})

test('encrypted reasoning that one account cannot read is retried at the next', () => {
  const refusal = { error: { message: 'Not ours.', type: 'invalid_request_error', code: 'invalid_encrypted_content' } }
  const secrets = { baseUrl: 'https://vendor.example', credential: 'vk-0123456789abcdef' }
  const bad = { status: 400, retryAfterSeconds: undefined, body: JSON.stringify(refusal) }
  const verdict = vendors.get('openai')?.explain(bad, secrets)
  expect(verdict).toMatchObject({ retryable: true, error: { kind: 'upstream-rejected' } })
  expect(verdict?.restCredentialSeconds).toBeUndefined()
})

test('only OpenAI and Azure have a second protocol', () => {
  const both = [...vendors.values()].filter(({ chat }) => chat?.secondProtocol !== undefined).map(({ id }) => id)
  expect(both).toEqual(['openai', 'azure'])
})

test.each([
  ['chat', openaiChat, { max_tokens: 15 }, 'max_tokens'],
  ['chat', openaiChat, { max_tokens: 300, max_completion_tokens: 15 }, 'max_completion_tokens'],
  ['messages', anthropicChat, { max_tokens: 15 }, 'max_tokens'],
  ['responses', responsesChat, { max_output_tokens: 15 }, 'max_output_tokens'],
])(
  'a cap below its minimum is refused to clients of %s under their own name for it: %j',
  (_name, codec, body, param) => {
    const translated = (cap: number) => {
      const ask = askOf(codec, { ...body, [param]: cap })
      const context = { ...plainContext, upstreamModel: 'gpt-5.3-codex', reasoning: true }
      vendors.get('openai')?.chat?.secondProtocol?.chat.translate(ask, codec.readConversation(ask), context)
    }
    const message = `Invalid '${param}': this model takes at least 16, not 15.`
    expect(errorOf(() => translated(15))).toMatchObject({ kind: 'bad-request', message, details: { param } })
    expect(() => translated(16)).not.toThrow()
  },
)

test('verbosity and the cache key are sent in the second protocol too', () => {
  const tool = { type: 'function', function: { name: 'f' } }
  const ask = askOf(openaiChat, { tools: [tool], verbosity: 'low', prompt_cache_key: 'mine' })
  const call = vendors.get('openai')?.chat?.secondProtocol?.chat.translate(ask, openaiChat.readConversation(ask), {
    ...plainContext,
    upstreamModel: 'gpt-6',
    reasoning: true,
    efforts: ['low', 'high'],
    namespaced: (label) => `ours/${label}`,
  })
  expect(JSON.parse(call?.body as string)).toMatchObject({ text: { verbosity: 'low' }, prompt_cache_key: 'ours/mine' })
})

test.each([
  ['chat', openaiChat, { type: 'function', function: { name: 'f', strict: true } }],
  ['responses', responsesChat, { type: 'function', name: 'f', parameters: null, strict: true }],
])('a strict tool of %s that leaves its parameters out has a schema without any', (_name, codec, strict) => {
  const ask = askOf(codec, { tools: [strict] })
  const context = { ...plainContext, upstreamModel: 'gpt-6', reasoning: true }
  const call = vendors.get('openai')?.chat?.secondProtocol?.chat.translate(ask, codec.readConversation(ask), context)
  const parameters = { type: 'object', properties: {}, additionalProperties: false }
  expect(JSON.parse(call?.body as string)).toMatchObject({ tools: [{ name: 'f', parameters, strict: true }] })
})
