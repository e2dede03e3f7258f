import { expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import { plainModel } from '../../capabilities/testing.ts'
import { anthropicChat } from '../../wire/anthropic/chat.ts'
import { openaiChat } from '../../wire/openai/chat.ts'
import { responsesChat } from '../../wire/responses/chat.ts'
import { vendors } from '../index.ts'
import { plainContext as context } from '../testing.ts'
import type { Call, ChatAdapter } from '../vendor.ts'

function chatOf(vendor: string): ChatAdapter {
  const chat = vendors.get(vendor)?.chat
  if (chat === undefined) throw new Error(`${vendor} does no chat`)
  return chat
}

type Sent = JsonObject & { readonly messages: readonly JsonObject[] }

function read(codec: typeof openaiChat, fields: JsonObject) {
  const body: JsonObject = { model: 'm', max_tokens: 9, ...fields }
  return codec.readAsk({ body, files: [], bodyBytes: 100, header: () => null }, () => plainModel)
}

function sentIn(call: Call | undefined): Sent {
  if (typeof call?.body !== 'string') throw new Error('chat is asked for in text')
  return JSON.parse(call.body) as Sent
}

function translated(vendor: string, fields: JsonObject, upstreamModel = 'theirs'): Sent {
  const ask = read(anthropicChat, fields)
  const conversation = anthropicChat.readConversation(ask)
  return sentIn(chatOf(vendor).translate(ask, conversation, { ...context, upstreamModel }))
}

function passed(vendor: string, messages: readonly JsonObject[], upstreamModel?: string): readonly JsonObject[] {
  return passedWith(vendor, { messages }, upstreamModel).messages
}

function passedWith(vendor: string, fields: JsonObject, upstreamModel = 'theirs'): Sent {
  return sentIn(chatOf(vendor).pass?.(read(openaiChat, fields), { ...context, upstreamModel }))
}

const hi = { role: 'user', content: 'Hi' }
const parts = (...texts: readonly string[]) => texts.map((text) => ({ type: 'text', text }))

/** A turn of tool calls with these ids, and their results. */
function calling(...ids: readonly string[]): JsonObject[] {
  return [
    hi,
    { role: 'assistant', content: ids.map((id) => ({ type: 'tool_use', id, name: 'f', input: {} })) },
    { role: 'user', content: ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'ok' })) },
  ]
}

test('Mistral gets call ids of nine letters and digits, the same in calls and results', () => {
  const given = ['toolu_01A09q90qw90lq917835lq9', 'call_1', 'D681PevKs']
  const { messages } = translated('mistral', { messages: calling(...given) })
  const [, made, ...results] = messages
  const { tool_calls: calls } = made as { tool_calls: { id: string }[] }
  const ids = calls.map(({ id }) => id)
  for (const id of ids) expect(id).toMatch(/^[a-zA-Z0-9]{9}$/)
  expect(new Set(ids).size).toBe(3)
  expect(ids[2]).toBe('D681PevKs')
  expect(results.map(({ tool_call_id: id }) => id)).toEqual(ids)
  expect(JSON.stringify(translated('openai', { messages: calling(...given) }))).toContain(
    `"tool_call_id":"${given[0]}"`,
  )
})

test('Mistral gets an assistant message between tool results and a user message', () => {
  const [, made = {}, results = {}] = calling('call00001')
  const beside = { ...results, content: [...(results['content'] as JsonObject[]), { type: 'text', text: 'Go on.' }] }
  const roles = (vendor: string, last: JsonObject) =>
    translated(vendor, { messages: [hi, made, last] }).messages.map(({ role }) => role)
  expect(roles('mistral', results)).toEqual(['user', 'assistant', 'tool'])
  expect(roles('mistral', beside)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user'])
  expect(roles('openai', beside)).toEqual(['user', 'assistant', 'tool', 'user'])
})

test('Mistral gets no user field', () => {
  const fields = { messages: [hi], metadata: { user_id: 'u' } }
  expect(translated('mistral', fields)).not.toHaveProperty('user')
  expect(translated('groq', fields)).toHaveProperty('user', 'mine/u')
})

test.each([
  ['mistral', undefined],
  ['groq', undefined],
  ['cerebras', undefined],
  ['deepseek', 'Hm.'],
  ['together', 'Hm.'],
])('the reasoning_content of another model is sent to %s as %p', (vendor, expected) => {
  const said = { role: 'assistant', content: 'Hello.' }
  const [, kept] = passed(vendor, [hi, { ...said, reasoning_content: 'Hm.' }, hi])
  expect(kept).toEqual(expected === undefined ? said : { ...said, reasoning_content: expected })
})

test.each([
  ['deepseek', ' '],
  ['moonshot', ' '],
  ['openai', undefined],
])('%s gets %j in place of reasoning that the client does not have', (vendor, expected) => {
  const begun = {
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: 'Hm.', signature: '' },
      { type: 'text', text: 'So.' },
    ],
  }
  const { messages } = translated(vendor, { messages: [hi, begun, hi, ...calling('call_1').slice(1)] })
  const thoughts = messages.filter(({ role }) => role === 'assistant').map((message) => message['reasoning_content'])
  expect(thoughts).toEqual(expected === undefined ? [undefined, undefined] : ['Hm.', expected])
})

test.each([
  ['deepseek', 'deepseek-v4-pro', ['Hm.', 'So.', ' ', ' ', undefined]],
  ['openrouter', 'deepseek/deepseek-v4-pro', ['Hm.', 'So.', ' ', ' ', undefined]],
  ['groq', 'moonshotai/kimi-k2.5', [undefined, undefined, undefined, undefined, undefined]],
  ['openai', 'gpt-4.1', [undefined, 'So.', undefined, '', undefined]],
])('a chat that began on other models goes on at %s on %s with the reasoning %j', (vendor, model, expected) => {
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
  const calls = { role: 'assistant', content: null, tool_calls: [call] }
  const signed = [{ type: 'thinking', thinking: 'Hm.', signature: 's' }]
  const earlier = [
    { ...calls, reasoning_content: 'Hm.', thinking_blocks: signed },
    { ...calls, reasoning_content: 'So.' },
    calls,
    { ...calls, reasoning_content: '' },
    { role: 'assistant', content: 'Noon.' },
  ]
  const sent = passed(vendor, [hi, ...earlier], model).slice(1)
  expect(sent.map((message) => message['reasoning_content'])).toEqual(expected)
  expect(sent.some((message) => 'thinking_blocks' in message)).toBe(false)
})

test.each([
  ['openai', 'anywhere'],
  ['deepseek', 'anywhere'],
  ['mistral', 'first'],
  ['minimax', 'first'],
  ['vllm', 'first'],
  ['compatible', 'first'],
])('%s accepts system messages in the middle, as Claude Code sends them: %s', (vendor, place) => {
  const note = { role: 'system', content: 'Be kind.' }
  const [, made, results] = calling('call00001')
  const talk = [hi, note, made ?? {}, results ?? {}, note, hi]
  const { messages } = translated(vendor, { system: 'Be brief.', messages: talk })
  const said = messages.map(({ role, content }) => [role, content])
  const marked = '<system>\nBe kind.\n</system>'
  const inPlace = [
    ['user', 'Hi'],
    ['system', 'Be kind.'],
  ]
  const folded = [['user', parts('Hi', marked)]]
  expect(said).toEqual([
    ['system', 'Be brief.'],
    ...(place === 'first' ? folded : inPlace),
    ['assistant', null],
    ['tool', 'ok'],
    ...(vendor === 'mistral' ? [['assistant', 'I have the results.']] : []),
    ...(place === 'first' ? [['user', parts(marked, 'Hi')]] : inPlace.toReversed()),
  ])
})

const thinking = { type: 'enabled', budget_tokens: 2_000 }
const tools = [{ name: 'f', input_schema: { type: 'object' } }]
const forced = { tools, tool_choice: { type: 'any' } }
const format = { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } }
const off = { thinking: { type: 'disabled' } }

/** The fields about thinking that are sent. */
function switchesOf(vendor: string, fields: JsonObject, upstreamModel?: string): object {
  const sent = translated(vendor, { messages: [hi], ...fields }, upstreamModel)
  return Object.fromEntries(Object.entries(sent).filter(([name]) => name.includes('thinking')))
}

test.each([
  ['dashscope', { thinking, tools }, { enable_thinking: true, thinking_budget: 2_000 }],
  ['dashscope', { thinking, ...forced }, { enable_thinking: false }],
  ['dashscope', { thinking, ...format }, { enable_thinking: false }],
  // These vendors' models think unless they are told not to; so do some of DashScope's.
  ['dashscope', forced, { enable_thinking: false }],
  ['dashscope', format, { enable_thinking: false }],
  ['dashscope', { tools }, {}],
  ['deepseek', forced, off],
  ['moonshot', { thinking, ...forced }, off],
  ['deepseek', { tools }, {}],
  ['groq', { thinking, ...forced }, {}],
])('%s is not asked to think together with forced tools or a schema: %j', (vendor, fields, expected) => {
  expect(switchesOf(vendor, fields)).toEqual(expected)
})

test.each([
  ['moonshot', 'kimi-k2.6', false],
  ['moonshot', 'kimi-k2.7-code', false],
  ['moonshot', 'kimi-k3', false],
  ['moonshot', 'moonshot-v1-8k', true],
  ['deepseek', 'deepseek-v4-pro', true],
])('%s gets temperature and top_p for %s: %j', (vendor, upstreamModel, expected) => {
  const sent = translated(vendor, { messages: [hi], temperature: 1, top_p: 0.9, stop_sequences: ['x'] }, upstreamModel)
  expect(['temperature' in sent, 'top_p' in sent, 'stop' in sent]).toEqual([expected, expected, true])
})

test.each([
  ['dashscope', 'qwen3-32b', { enable_thinking: false }],
  ['dashscope', 'qwq-plus', {}],
  ['ark', 'doubao-seed', off],
  ['deepseek', 'deepseek-v4-pro', off],
  ['moonshot', 'kimi-k2.6', off],
  ['zhipu', 'glm-5.2', off],
  // These models refuse to be switched off.
  ['moonshot', 'kimi-k2.7-code', {}],
  ['moonshot', 'kimi-k3.1-pro', {}],
  ['zhipu', 'glm-5.3', {}],
  ['ark', 'kimi-k2.7-code-highspeed', {}],
  ['groq', 'theirs', {}],
])('%s gets the switch for disabled thinking with %s: %j', (vendor, upstreamModel, expected) => {
  expect(switchesOf(vendor, off, upstreamModel)).toEqual(expected)
  expect(switchesOf(vendor, { ...off, ...forced }, upstreamModel)).toEqual(expected)
})

test.each([...vendors.keys()].filter((id) => vendors.get(id)?.chat?.protocol === 'openai'))(
  '%s gets instructions in a role that it knows',
  (vendor) => {
    const messages = [{ role: 'developer', content: 'Be brief.', name: 'us' }, hi, { role: 'system', content: 'Now.' }]
    const isOpenais = vendor === 'openai' || vendor === 'azure'
    const role = isOpenais ? 'developer' : 'system'
    const named = vendor === 'mistral' ? {} : { name: 'us' }
    expect(passed(vendor, messages)).toEqual([{ role, content: 'Be brief.', ...named }, hi, messages[2] ?? hi])
  },
)

test('DeepSeek gets the schema of an answer in its instructions, because it refuses a json_schema', () => {
  const schema = { type: 'object', properties: { title: { type: 'string' } }, required: ['title'] }
  const fields = { system: 'Be brief.', messages: [hi], output_config: { format: { type: 'json_schema', schema } } }
  const { messages, response_format: format } = translated('deepseek', fields)
  expect(format).toEqual({ type: 'json_object' })
  const told = 'Answer with JSON of this schema and nothing else: no words around it, no code fence.'
  expect(messages[0]).toEqual({ role: 'system', content: `Be brief.\n\n${told}\n${JSON.stringify(schema)}` })
  expect(translated('moonshot', fields)['response_format']).toMatchObject({ type: 'json_schema' })
})

// What OpenAI's clients add to a request, and what they repeat of an answer, beside what each vendor knows.
const labelled = {
  user: 'u',
  safety_identifier: 's',
  prompt_cache_key: 'k',
  prompt_cache_retention: '24h',
  store: false,
  metadata: { trace: 'a' },
  service_tier: 'default',
  verbosity: 'low',
  modalities: ['text'],
  seed: 7,
  top_logprobs: null,
}

test.each([
  ['mistral', { prompt_cache_key: 'mine/k', metadata: { trace: 'a' }, random_seed: 7 }],
  ['nvidia', { seed: 7 }],
  ['groq', { user: 'mine/u', store: false, seed: 7 }],
  [
    'fireworks',
    { user: 'mine/u', prompt_cache_key: 'mine/k', metadata: { trace: 'a' }, service_tier: 'default', seed: 7 },
  ],
  ['cerebras', { user: 'mine/u', prompt_cache_key: 'mine/k', service_tier: 'default', seed: 7 }],
  [
    'together',
    { ...labelled, user: 'mine/u', safety_identifier: 'mine/s', prompt_cache_key: 'mine/k' } satisfies JsonObject,
  ],
])('of the labels and hints of a request %s gets %j', (vendor, expected) => {
  const {
    model: _,
    messages: __,
    max_tokens: ___,
    max_completion_tokens: ____,
    ...sent
  } = passedWith(vendor, {
    messages: [hi],
    ...labelled,
  })
  expect(sent).toEqual(expected)
})

test.each([
  ['grok-4.5', {}],
  ['grok-code-fast-1', {}],
  ['grok-4-fast-non-reasoning', { stop: ['.'] }],
  ['grok-3', { stop: ['.'] }],
])('of penalties and stop sequences, xAI gets for %s only what it does not refuse: %j', (upstreamModel, expected) => {
  const ask = read(openaiChat, { messages: [hi], presence_penalty: 0, frequency_penalty: 0.5, stop: ['.'] })
  const {
    model: _,
    messages: __,
    max_completion_tokens: ___,
    ...sent
  } = sentIn(chatOf('xai').pass?.(ask, { ...context, upstreamModel }))
  expect(sent).toEqual(expected)
  const { stop } = translated('xai', { messages: [hi], stop_sequences: ['.'] }, upstreamModel)
  expect(stop === undefined ? {} : { stop }).toEqual(expected)
})

test.each([
  ['qwq-plus', {}, false],
  ['qwq-plus', { enable_thinking: false }, false],
  ['qwen3-8b', {}, false],
  ['qwen3-8b', { enable_thinking: false, top_k: 5 }, true],
  ['qwen3-30b-a3b-instruct-2507', { top_k: 5 }, true],
  ['qwen3-max', {}, true],
])('a request to Alibaba for a whole answer of %s with %j passes as it is: %p', (upstreamModel, fields, passes) => {
  const chat = chatOf('dashscope')
  const ask = read(openaiChat, { messages: [hi], ...fields })
  const to = { ...context, upstreamModel }
  const call = chat.pass?.(ask, to)
  expect(call !== undefined).toBe(passes)
  const sent = sentIn(call ?? chat.translate(ask, openaiChat.readConversation(ask), to))
  expect(sent).toMatchObject(passes ? fields : { stream: true })
})

test.each(['mistral', 'groq', 'cerebras', 'fireworks'])(
  '%s gets the text and the calls of an earlier answer alone',
  (vendor) => {
    const calls = [{ id: 'call00001', type: 'function', function: { name: 'f', arguments: '{}' } }]
    const rest = { refusal: null, annotations: [], audio: null, function_call: null, images: [], reasoning_details: [] }
    const result = { role: 'tool', tool_call_id: 'call00001', content: 'ok', name: 'f' }
    const said = { role: 'assistant', content: 'Hello.' }
    const called = { role: 'assistant', content: null, tool_calls: calls }
    const refused = { role: 'assistant', content: null, refusal: 'No.' }
    const history = [hi, { ...said, ...rest, tool_calls: null }, hi, { ...called, ...rest }, result, refused, hi]
    expect(passed(vendor, history)).toEqual([hi, said, hi, called, result, { role: 'assistant', content: 'No.' }, hi])
    const turns = [hi, { ...said, ...rest }, hi, refused, hi]
    expect(passed('together', turns)).toEqual(turns)
  },
)

test('a refusal is translated to the text of a message where the vendor refuses its field', () => {
  const input = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
    { role: 'user', content: 'Why?' },
  ]
  const ask = responsesChat.readAsk(
    { body: { model: 'm', input }, files: [], bodyBytes: 100, header: () => null },
    () => plainModel,
  )
  const turn = (vendor: string) => {
    const conversation = responsesChat.readConversation(ask)
    return sentIn(chatOf(vendor).translate(ask, conversation, context)).messages[1]
  }
  expect(turn('groq')).toEqual({ role: 'assistant', content: 'No.' })
  expect(turn('together')).toEqual({ role: 'assistant', content: null, refusal: 'No.' })
})

test.each([
  ['openai', {}],
  ['azure', {}],
  ['deepseek', { metadata: { trace: 'a' } }],
])('%s gets this metadata for an answer that is not stored: %j', (vendor, expected) => {
  const metadata = { trace: 'a' }
  const sent = (fields: JsonObject) => {
    const ask = read(openaiChat, { messages: [hi], metadata, ...fields })
    const { metadata: written } = sentIn(chatOf(vendor).pass?.(ask, context))
    return written === undefined ? {} : { metadata: written }
  }
  expect(sent({ store: false })).toEqual(expected)
  expect(sent({ store: true })).toEqual({ metadata })
})

test.each([
  ['mistral', 'as they came'],
  ['openai', 'left out'],
  ['deepseek', 'left out'],
])("the reasoning and the references among the parts of Mistral's answers are, for %s, %s", (vendor, expected) => {
  const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }], closed: true }
  const said = { type: 'text', text: 'Noon.' }
  const answer = { role: 'assistant', content: [thinking, said, { type: 'reference', reference_ids: [1] }] }
  const alone = { role: 'assistant', content: [thinking] }
  const [, kept, last] = passed(vendor, [hi, answer, alone])
  const isKept = expected === 'as they came'
  expect(kept).toEqual(isKept ? answer : { ...answer, content: [said] })
  expect(last).toEqual(isKept ? alone : { ...alone, content: '' })
})

test.each([
  ['compatible', 'deepseek-v4-flash-free', ['Hm.', ' ']],
  ['openrouter', 'deepseek/deepseek-v3.2', ['Hm.', ' ']],
  ['together', 'deepseek-ai/deepseek-flash', ['Hm.', ' ']],
  ['fireworks', 'accounts/fireworks/models/kimi-k2p5', ['Hm.', ' ']],
  ['groq', 'moonshotai/kimi-k2.5', []],
  ['compatible', 'deepseek-v3', []],
  ['compatible', 'qwen3-max', []],
])(
  'the reasoning of two turns, of which the client has the first, is sent to %s for %s as %j',
  (vendor, model, sent) => {
    const begun = { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm.', signature: '' }] }
    const { messages } = translated(vendor, { messages: [hi, begun, hi, ...calling('call_1').slice(1)] }, model)
    const thoughts = messages.flatMap(({ reasoning_content: thought }) => thought ?? [])
    expect(thoughts).toEqual(sent)
  },
)
