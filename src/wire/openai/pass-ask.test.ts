import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import type { ChatTraits } from '../../capabilities/chat.ts'
import { plainModel } from '../../capabilities/testing.ts'
import { readAsk } from './chat-ask.ts'
import { passAsk, type ChatTarget } from './pass-ask.ts'
import { target } from './testing.ts'

const reasoning: ChatTraits = { ...plainModel, reasoning: true }
const base = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] }
/** A vendor that reads the output limit under either name, and whose efforts are not known. */
const free: ChatTarget = { ...target, efforts: [], outputCap: 'either' }

function read(fields: Record<string, unknown>, traits: ChatTraits = plainModel) {
  const body: JsonObject = { ...base, ...(fields as JsonObject) }
  return readAsk({ body, bodyBytes: JSON.stringify(body).length, files: [], header: () => null }, () => traits)
}

describe('the bounds that a hold is computed from', () => {
  test('the output bound is the smallest of the client’s caps and the model’s maximum', () => {
    expect(read({}).outputTokensMax).toBe(1_000)
    expect(read({ max_tokens: 10 }).outputTokensMax).toBe(10)
    expect(read({ max_completion_tokens: 20 }).outputTokensMax).toBe(20)
    expect(read({ max_tokens: 5_000 }).outputTokensMax).toBe(1_000)
    expect(read({ max_tokens: 900, max_completion_tokens: 1 }).outputTokensMax).toBe(1)
    expect(read({ max_tokens: 1, max_completion_tokens: 900 }).outputTokensMax).toBe(1)
    expect(read({ max_tokens: null, max_completion_tokens: 7 }).outputTokensMax).toBe(7)
  })

  test('the input bound is one token per byte plus the most for media, within the context window', () => {
    const bytes = JSON.stringify(base).length
    expect(read({}).inputTokensMax).toBe(bytes)
    const image = { type: 'image_url', image_url: { url: 'https://x/y.png' } }
    expect(read({ messages: [{ role: 'user', content: [image] }] }).inputTokensMax).toBeGreaterThan(50_000)
    expect(read({ messages: [{ role: 'user', content: [image, image, image] }] }).inputTokensMax).toBe(100_000)
    expect(read({ messages: [{ role: 'tool', tool_call_id: 'c', content: [image] }] }).inputTokensMax).toBeGreaterThan(
      50_000,
    )
    const file = { type: 'file', file: { file_id: 'f' } }
    expect(read({ messages: [{ role: 'user', content: [file] }] }).inputTokensMax).toBe(100_000)
  })

  test('an earlier answer in audio, named by its id, is bounded only by the context window', () => {
    const heard = { role: 'assistant', audio: { id: 'audio_1' } }
    const messages = [{ role: 'user', content: 'Hi' }, heard, { role: 'user', content: 'And then?' }]
    expect(read({ messages }).inputTokensMax).toBe(100_000)
  })

  test('the number of choices is n, or 1 by default', () => {
    expect(read({}).choices).toBe(1)
    expect(read({ n: 5 }).choices).toBe(5)
  })

  test('each choice is bounded by the whole prompt, a whole answer, a fee and its own searches', () => {
    const { bound, inputTokensMax } = read({ n: 5, max_tokens: 10 })
    expect(bound).toEqual({ input: 5 * inputTokensMax, output: 50, webSearch: 0, request: 5 })
    const searching = { ...plainModel, sells: () => true }
    expect(read({ n: 2, max_tokens: 10, web_search_options: {} }, searching).bound).toEqual({
      input: 2 * plainModel.contextTokens,
      output: 20,
      webSearch: 10,
      request: 2,
    })
  })
})

describe('a request that is passed through', () => {
  const target = { ...free, namespaced: (label: string) => `mine/${label}` }
  const sent = (fields: Record<string, unknown>, changed: Partial<ChatTarget> = {}, traits = plainModel) =>
    JSON.parse(passAsk(read(fields, traits), { ...target, ...changed })) as Record<string, unknown>

  test('only the model is changed', () => {
    const fields = { temperature: 0.5, stop: 'x', unknown: { a: [1, null] }, seed: null }
    expect(sent(fields)).toEqual({ ...base, ...fields, model: 'theirs' })
  })

  test('a stream asks for usage beside its other options, unless the vendor always sends it', () => {
    expect(sent({ stream: true })['stream_options']).toEqual({ include_usage: true })
    expect(
      sent({ stream: true, stream_options: { include_obfuscation: false, include_usage: false } })['stream_options'],
    ).toEqual({
      include_obfuscation: false,
      include_usage: true,
    })
    expect(sent({})).not.toHaveProperty('stream_options')
    expect(sent({ stream: true, stream_options: {} }, { usageInStream: 'always' })).not.toHaveProperty('stream_options')
  })

  test.each([
    ['max_tokens', { max_completion_tokens: 5 }, { max_tokens: 5 }],
    ['max_tokens', { max_tokens: 5 }, { max_tokens: 5 }],
    ['max_completion_tokens', { max_tokens: 5 }, { max_completion_tokens: 5 }],
    ['max_completion_tokens', {}, {}],
    ['either', { max_tokens: 5 }, { max_tokens: 5 }],
    ['either', { max_completion_tokens: 5 }, { max_completion_tokens: 5 }],
    ['max_tokens', { max_tokens: 5, max_completion_tokens: 300 }, { max_tokens: 5 }],
    ['max_completion_tokens', { max_tokens: 5, max_completion_tokens: 300 }, { max_completion_tokens: 5 }],
    ['either', { max_tokens: 300, max_completion_tokens: 5 }, { max_tokens: 5 }],
    ['either', { max_tokens: null, max_completion_tokens: 5 }, { max_tokens: null, max_completion_tokens: 5 }],
  ] as const)('the output cap for a vendor that takes %s is written from %j', (outputCap, fields, caps) => {
    const { model: _, messages: __, ...rest } = sent(fields, { outputCap })
    expect(rest).toEqual(caps)
  })

  test('the output cap for a reasoning model is written as max_completion_tokens', () => {
    expect(sent({ max_tokens: 5 }, { reasoning: true }, reasoning)).toMatchObject({ max_completion_tokens: 5 })
    expect(sent({ max_tokens: 5 }, { reasoning: true }, reasoning)).not.toHaveProperty('max_tokens')
    const both = { max_tokens: 5, max_completion_tokens: 300 }
    const { max_tokens: none, max_completion_tokens: cap } = sent(both, { reasoning: true }, reasoning)
    expect({ none, cap }).toEqual({ none: undefined, cap: 5 })
  })

  test('user, cache and safety labels are namespaced, and metadata is not', () => {
    expect(sent({ user: 'a', prompt_cache_key: 'b', safety_identifier: 'c', metadata: { user: 'd' } })).toMatchObject({
      user: 'mine/a',
      prompt_cache_key: 'mine/b',
      safety_identifier: 'mine/c',
      metadata: { user: 'd' },
    })
    expect(sent({ user: null })['user']).toBeNull()
  })

  test('store is false for a vendor that stores by default, unless the client sets it', () => {
    expect(sent({}, { storesByDefault: true })['store']).toBe(false)
    expect(sent({ store: true }, { storesByDefault: true })['store']).toBe(true)
    expect(sent({})).not.toHaveProperty('store')
  })

  test('metadata is left out where the vendor takes it only for an answer that it stores, and does not store', () => {
    const metadata = { trace: 'a' }
    for (const store of [undefined, null, false]) {
      expect(sent({ metadata, store }, { storesByDefault: true, metadata: 'stored' })).not.toHaveProperty('metadata')
      expect(sent({ metadata, store })['metadata']).toEqual(metadata)
    }
    expect(sent({ metadata, store: true }, { metadata: 'stored' })['metadata']).toEqual(metadata)
  })

  test('empty lists of tools, functions and tool calls are removed', () => {
    const said = { role: 'assistant', content: 'Hello!' }
    const messages = [base.messages[0], { ...said, tool_calls: [] }, { role: 'user', content: 'So?' }]
    expect(sent({ messages, tools: [], functions: [] })).toEqual({
      ...base,
      model: 'theirs',
      messages: [base.messages[0], said, messages[2]],
    })
  })

  test('signatures and thinking that only another vendor takes back are removed', () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
    const signed = { ...call, extra_content: { google: { thought_signature: 's' } } }
    const shown = { role: 'assistant', content: null, tool_calls: [signed] }
    const thoughts = {
      thinking_blocks: [{ type: 'thinking', thinking: 'hm', signature: 's' }],
      reasoning_content: 'hm',
    }
    const messages = [
      { role: 'user', content: 'Hi' },
      { ...shown, ...thoughts },
      { ...shown, reasoning_content: 'hm' },
    ]
    const sent = (upstreamModel: string) =>
      JSON.parse(passAsk(read({ messages }), { ...target, upstreamModel })) as { messages: unknown[] }
    expect(sent('gpt-4.1').messages.slice(1)).toEqual([
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'assistant', content: null, tool_calls: [call], reasoning_content: 'hm' },
    ])
    expect(sent('google/gemini-3-pro').messages[2]).toEqual(messages[2])
    expect(sent('anthropic/claude-opus').messages[1]).toEqual({ ...shown, ...thoughts, tool_calls: [call] })
  })
})

describe('a vendor with its own switch for thinking', () => {
  const base: ChatTarget = { ...free, upstreamModel: 'qwen3-max', thinkingSwitch: 'enable_thinking' }
  const switches = (fields: Record<string, unknown>, changed: Partial<ChatTarget> = {}) => {
    const {
      model: _,
      messages: __,
      ...rest
    } = JSON.parse(passAsk(read(fields), { ...base, ...changed })) as Record<string, unknown>
    return rest
  }

  test.each([
    [{ reasoning_effort: 'none' }, {}, { enable_thinking: false }],
    [{ reasoning_effort: 'low' }, {}, { enable_thinking: true, thinking_budget: 1_024 }],
    [{ reasoning_effort: 'xhigh' }, {}, { enable_thinking: true, thinking_budget: 24_576 }],
    [{ reasoning_effort: 'low' }, { upstreamModel: 'qwen3-32b-thinking' }, { thinking_budget: 1_024 }],
    [{ reasoning_effort: 'none' }, { upstreamModel: 'qwq-plus' }, {}],
    [{ reasoning_effort: 'none' }, { thinkingSwitch: 'thinking' }, { thinking: { type: 'disabled' } }],
    [
      { reasoning_effort: 'high' },
      { thinkingSwitch: 'thinking', efforts: ['low', 'high'] },
      { thinking: { type: 'enabled' }, reasoning_effort: 'high' },
    ],
    [{ reasoning_effort: 'none' }, { thinkingSwitch: 'unless-off' }, { thinking: { type: 'disabled' } }],
    [
      { reasoning_effort: 'high' },
      { thinkingSwitch: 'unless-off', efforts: ['high', 'max'] },
      { reasoning_effort: 'high' },
    ],
    // Fields of the vendor's own that the client wrote stay unchanged.
    [{ reasoning_effort: 'low', enable_thinking: false }, {}, { reasoning_effort: 'low', enable_thinking: false }],
    [{ reasoning_effort: 'default' }, {}, { reasoning_effort: 'default' }],
  ] as const)('the fields %j for the target %j are written as %j', (fields, changed, expected) => {
    expect(switches(fields, changed)).toEqual(expected)
  })
})

test('a call that makes one of several choices is sent without n', () => {
  const ask = read({ n: 3 })
  expect(JSON.parse(passAsk(ask, free))).toHaveProperty('n', 3)
  expect(JSON.parse(passAsk({ ...ask, choices: 1 }, free))).not.toHaveProperty('n')
})

test.each(['banana', 'low', 'none', 'default'])(
  'a model that does not reason refuses the effort %s and accepts null',
  (effort) => {
    const traits: ChatTraits = { ...plainModel, efforts: [], refusesEffort: true }
    expect(() => read({ reasoning_effort: effort }, traits)).toThrow(
      "Unsupported parameter: 'reasoning_effort' is not supported with this model.",
    )
    expect(read({ reasoning_effort: null }, traits).native['reasoning_effort']).toBeNull()
  },
)
