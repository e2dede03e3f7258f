import { expect, test } from 'bun:test'
import type { Json, JsonObject } from '../../base/json.ts'
import { readAnswer } from './read-answer.ts'
import { openReader } from './reply-reader.ts'

const read = (...choices: Json[]) => readAnswer(Buffer.from(JSON.stringify({ id: 'c1', choices }))).choices
const said = (message: JsonObject, finish = 'stop') => read({ index: 0, message, finish_reason: finish })[0]
const call = (written: JsonObject, extra: JsonObject = {}) => ({
  tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', ...written }, ...extra }],
})

test.each([
  ['{"a":1}', 'tool_calls', '{"a":1}'],
  ['{"a":', 'length', '{"a":'],
  [' ', 'tool_calls', '{}'],
  ['', 'stop', '{}'],
  [{ a: 1 }, 'tool_calls', '{"a":1}'],
  // Cut off before its arguments came: the call must not look like one without arguments.
  ['', 'length', ''],
])('a call with arguments %j in an answer that ends with %s is read with %j', (written, finish, argumentsText) => {
  expect(said(call({ arguments: written }), finish)?.blocks).toEqual([
    { kind: 'tool-call', id: 'c', name: 'f', argumentsText },
  ])
})

test('a call without an id gets one that is unique to the answer, and keeps its signature', () => {
  const extra = { id: '', extra_content: { google: { thought_signature: 's' } } }
  const [block] = said(call({ arguments: '{}' }, extra))?.blocks ?? []
  expect(block).toMatchObject({ id: expect.stringMatching(/^call_\w{24}$/), signature: expect.stringContaining('s') })
  const idsIn = (answerId: string) => {
    const [unmarked] = call({}, { id: '' }).tool_calls
    const choice = { index: 0, message: { tool_calls: [unmarked, unmarked] } }
    const { choices } = readAnswer(Buffer.from(JSON.stringify({ id: answerId, choices: [choice] })))
    return choices.flatMap(({ blocks }) => blocks.map((each) => each.kind === 'tool-call' && each.id))
  }
  expect(idsIn('c1')).toEqual(idsIn('c1'))
  expect(new Set([...idsIn('c1'), ...idsIn('c2')]).size).toBe(4)
  expect(() => said({ tool_calls: [{ id: 'c', function: { arguments: '{}' } }] })).toThrow('without a name')
  expect(() => said({ tool_calls: [{ id: 'c', function: { name: '', arguments: '{}' } }] })).toThrow('without a name')
})

test.each([{ reasoning_content: 'hm' }, { reasoning: 'hm' }, { reasoning_content: '', reasoning: 'hm' }])(
  'reasoning is read before the text, from either of its fields: %j',
  (thoughts) => {
    expect(said({ ...thoughts, content: 'Hi' })?.blocks).toEqual([
      { kind: 'thinking', text: 'hm' },
      { kind: 'text', text: 'Hi' },
    ])
  },
)

test('URL citations are attached to the text, and other annotations are dropped', () => {
  const annotations = [
    { url_citation: { url: 'https://a.example', title: 'A' } },
    { url_citation: { url: 'https://b.example' } },
    { file_citation: {} },
    null,
  ]
  expect(said({ content: 'Hi', annotations })?.blocks).toEqual([
    { kind: 'text', text: 'Hi', citations: [{ url: 'https://a.example', title: 'A' }, { url: 'https://b.example' }] },
  ])
})

test('choices that are not objects are ignored', () => {
  const choices = read(null, { index: 0, message: { content: 'Hi' }, finish_reason: 'content_filter' }, 'x')
  expect(choices).toEqual([{ blocks: [{ kind: 'text', text: 'Hi' }], finish: 'refusal' }])
})

test.each([
  ['model_length', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['insufficient_system_resource', 'length'],
  ['network_error', 'length'],
  ['error', 'length'],
  ['sensitive', 'refusal'],
  ['max_tokens', 'length'],
  ['MAX_TOKENS', 'length'],
  ['refusal', 'refusal'],
  ['SAFETY', 'refusal'],
  ['end_turn', 'stop'],
  ['eos', 'stop'],
])('an answer that ends with %s in its vendor’s own words is read as %s', (reason, finish) => {
  expect(said({ content: 'Hi' }, reason)?.finish).toBe(finish as never)
  // A call that was cut off is not a call without arguments.
  const isCut = finish !== 'stop'
  expect(said(call({ arguments: '' }), reason)?.blocks).toMatchObject([{ argumentsText: isCut ? '' : '{}' }])
})

const pages = [
  { title: 'A', url: 'https://a.example', date: null },
  { title: 'B', url: 'https://b.example' },
]

test.each([
  [{ search_results: pages, citations: ['https://c.example'] }, pages.map(({ title, url }) => ({ url, title }))],
  [{ citations: ['https://a.example', 'https://b.example'] }, pages.map(({ url }) => ({ url }))],
  [{ citations: [''], search_results: [] }, []],
])('sources listed beside the choices are cited by the text, whole and streamed: %j', (listed, cited) => {
  const message = { content: 'Rain [1][2].' }
  const whole = { id: 'c1', choices: [{ index: 0, message, finish_reason: 'stop' }], ...listed }
  const [block] = readAnswer(Buffer.from(JSON.stringify(whole))).choices[0]?.blocks ?? []
  expect(block).toEqual({ kind: 'text', text: message.content, ...(cited.length > 0 && { citations: cited }) })
  const reader = openReader()
  const events = [
    { choices: [{ index: 0, delta: { content: 'Rain ' }, finish_reason: null }], ...listed },
    { choices: [{ index: 0, delta: { content: '[1][2].' }, finish_reason: null }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], ...listed },
  ].flatMap((chunk) => [...reader.read(Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`))])
  expect(events.slice(3)).toEqual([
    ...cited.map((citation) => ({ kind: 'citation-add' as const, choice: 0, citation })),
    { kind: 'choice-finish', choice: 0, finish: 'stop' },
  ])
})

test('a refusal and the log probabilities of a choice are read, whole and streamed', () => {
  const logprobs = { content: [{ token: 'Hi', logprob: -0.5, bytes: null, top_logprobs: [] }], refusal: null }
  const message = { role: 'assistant', content: null, refusal: 'I will not.' }
  expect(read({ index: 0, message, logprobs, finish_reason: 'stop' })).toEqual([
    { blocks: [{ kind: 'refusal', text: 'I will not.' }], finish: 'stop', logprobs },
  ])
  expect(said({ role: 'assistant', content: 'Hi', refusal: '' })?.blocks).toEqual([{ kind: 'text', text: 'Hi' }])
  const reader = openReader()
  const streamed = [{ content: 'Hi', refusal: '' }, { refusal: 'I will ' }, { refusal: 'not.' }].flatMap((delta) => {
    const choice = { index: 0, delta, ...('content' in delta && { logprobs }) }
    return [...reader.read(Buffer.from(`data: ${JSON.stringify({ id: 'c1', choices: [choice] })}\n\n`))]
  })
  expect(streamed.slice(1)).toEqual([
    { kind: 'text-delta', choice: 0, text: 'Hi', logprobs },
    { kind: 'refusal-delta', choice: 0, text: 'I will ' },
    { kind: 'refusal-delta', choice: 0, text: 'not.' },
  ])
})
