import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import { markOpenai, type ReplyEvent } from '../../capabilities/conversation.ts'
import { readAnswer } from './read-answer.ts'
import { openReader } from './reply-reader.ts'

type Event = { readonly type: string; readonly [field: string]: unknown }

function read(...events: readonly Event[]): ReplyEvent[] {
  const reader = openReader()
  return events.flatMap((event) => [
    ...reader.read(Buffer.from(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)),
  ])
}

const usage = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
  output_tokens: 50,
  output_tokens_details: { reasoning_tokens: 40 },
  total_tokens: 150,
}
const counted = { input: 30, cachedInput: 60, cacheWrite: 10, output: 50, reasoning: 40 }
const item = (of: object): Event => ({ type: 'response.output_item.added', item: of })
const done = (of: object): Event => ({ type: 'response.output_item.done', item: of })
const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'f', arguments: '' }
const completed = (more: object = {}): Event => ({
  type: 'response.completed',
  response: { status: 'completed', output: [], usage, ...more },
})
const grown = (text: string): Event => ({
  type: 'response.function_call_arguments.delta',
  item_id: 'fc_1',
  delta: text,
})
const words = (id: string, text: string): Event => ({ type: 'response.output_text.delta', item_id: id, delta: text })
const summed = (text: string): Event => ({
  type: 'response.reasoning_summary_text.delta',
  item_id: 'rs_1',
  delta: text,
})
const answer = (body: JsonObject) => readAnswer(Buffer.from(JSON.stringify(body)))
const message = (...content: JsonObject[]) => ({ type: 'message', role: 'assistant', content })

describe('a stream', () => {
  test('the reply starts once and ends once, with its usage', () => {
    const created = { type: 'response.created', response: { id: 'resp_1' } }
    expect(read(created, { ...created, type: 'response.in_progress' }, words('msg_1', 'Hi'), completed())).toEqual([
      { kind: 'reply-start' },
      { kind: 'text-delta', choice: 0, text: 'Hi' },
      { kind: 'choice-finish', choice: 0, finish: 'stop' },
      { kind: 'usage-count', usage: counted },
      { kind: 'reply-end' },
    ])
  })

  test('a refusal right after response.created is read without a start of the reply', () => {
    const created = { type: 'response.created', response: { id: 'resp_1' } }
    const error = { code: 'context_length_exceeded', message: 'Too long.' }
    const [failure, ...others] = read(created, { type: 'response.failed', response: { error } })
    expect(failure).toMatchObject({ kind: 'failure', error: { kind: 'upstream-rejected', message: 'Too long.' } })
    expect(others).toEqual([])
  })

  test('the reply starts where the model begins hidden reasoning', () => {
    const created = { type: 'response.created', response: { id: 'resp_1' } }
    expect(read(created, item({ type: 'reasoning', id: 'rs_1' }))).toEqual([{ kind: 'reply-start' }])
  })

  test('the texts of separate messages are separated by a blank line', () => {
    const events = read(words('msg_1', 'First'), words('msg_1', ', still.'), words('msg_2', 'Second.'))
    const texts = events.flatMap((event) => (event.kind === 'text-delta' ? [event.text] : []))
    expect(texts).toEqual(['First', ', still.', '\n\nSecond.'])
  })

  test.each([
    ['in pieces', [item(call), grown('{"a"'), grown(':1}'), done({ ...call, arguments: '{"a":1}' })], '{"a":1}'],
    [
      'whole in their last event',
      [item(call), { type: 'response.function_call_arguments.done', item_id: 'fc_1', arguments: '{"a":1}' }],
      '{"a":1}',
    ],
    ['whole with the item', [item(call), done({ ...call, arguments: '{"a":1}' })], '{"a":1}'],
    ['not at all', [item(call), done(call)], '{}'],
  ] as const)('the arguments of a call are read when they come %s', (_how, events, text) => {
    const all = read(...events, completed())
    const started = all.find(({ kind }) => kind === 'tool-call-start')
    expect(started).toEqual({ kind: 'tool-call-start', choice: 0, call: 0, id: 'call_1', name: 'f' })
    expect(all.map((event) => (event.kind === 'tool-call-delta' ? event.text : '')).join('')).toBe(text)
    expect(all).toContainEqual({ kind: 'choice-finish', choice: 0, finish: 'tool-calls' })
  })

  // In GitHub Copilot's streams the id of an item changes with every event, and only its place stays.
  test.each([
    ['another id in every event', (ids: number) => `id_${ids}`],
    ['no ids', () => undefined],
    ['empty ids', () => ''],
  ])('items with %s are told apart by their places in the output', (_which, idOf) => {
    let ids = 0
    const newId = () => idOf(ids++)
    const at = (output_index: number, event: Event): Event => ({ ...event, item_id: newId(), output_index })
    const said = [at(0, words('', 'Hel')), at(0, words('', 'lo.')), at(1, words('', 'More.'))]
    const called = (place: number, text = '') => ({ ...call, id: newId(), call_id: `call_${place}`, arguments: text })
    const all = read(
      ...[0, 1].map((place) => at(place, item({ ...message(), id: newId() }))),
      ...said,
      ...[2, 3].map((place) => at(place, item(called(place)))),
      ...['{"a"', ':2}'].map((text) => at(2, grown(text))),
      ...[2, 3].map((place) => at(place, done(called(place, `{"a":${place}}`)))),
      completed(),
    )
    expect(all.flatMap((event) => (event.kind === 'text-delta' ? [event.text] : []))).toEqual([
      'Hel',
      'lo.',
      '\n\nMore.',
    ])
    const starts = all.flatMap((event) => (event.kind === 'tool-call-start' ? [[event.call, event.id]] : []))
    expect(starts).toEqual([
      [0, 'call_2'],
      [1, 'call_3'],
    ])
    const parts = all.flatMap((event) => (event.kind === 'tool-call-delta' ? [[event.call, event.text]] : []))
    expect(parts).toEqual([
      [0, '{"a"'],
      [0, ':2}'],
      [1, '{"a":3}'],
    ])
  })

  test('a call that was cut off gets no invented arguments', () => {
    const cut = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' }, output: [], usage }
    const events = read(item(call), { type: 'response.incomplete', response: cut })
    expect(events.map(({ kind }) => kind)).not.toContain('tool-call-delta')
    expect(events).toContainEqual({ kind: 'choice-finish', choice: 0, finish: 'length' })
  })

  test('reasoning is read part by part, with its encrypted content as signature', () => {
    const thought = { type: 'reasoning', id: 'rs_1', summary: [] }
    const part = { type: 'response.reasoning_summary_part.added', item_id: 'rs_1' }
    const sealed = done({ ...thought, encrypted_content: 'gAAA' })
    expect(read(item(thought), part, summed('One.'), part, summed('Two.'), sealed)).toEqual([
      { kind: 'reply-start' },
      { kind: 'thinking-delta', choice: 0, text: 'One.' },
      { kind: 'thinking-delta', choice: 0, text: '\n\n' },
      { kind: 'thinking-delta', choice: 0, text: 'Two.' },
      { kind: 'thinking-sign', choice: 0, text: 'One.\n\nTwo.', signature: markOpenai('gAAA') },
    ])
    const hidden = read(item(thought), sealed).at(-1)
    expect(hidden).toEqual({ kind: 'thinking-sign', choice: 0, text: '', signature: markOpenai('gAAA') })
  })

  test('searches are counted, and opened pages are not', () => {
    const search = { type: 'web_search_call', id: 'ws_1', action: { type: 'search', query: 'x' } }
    const opened = { ...search, action: { type: 'open_page' } }
    const output = [search, opened, search]
    const events = read(item(search), done(search), item(opened), done(opened), completed({ output }))
    expect(events.filter(({ kind }) => kind === 'hosted-tool-run')).toHaveLength(1)
    expect(events).toContainEqual({ kind: 'usage-count', usage: { ...counted, webSearch: 2 } })
  })

  test.each([
    { type: 'response.failed', response: { status: 'failed', error: { code: 'server_error', message: 'Broken.' } } },
    { type: 'error', code: 'server_error', message: 'Broken.', param: null },
    { type: 'error', error: { message: 'Broken.' } },
  ])('an event that reports an error is a failure: %j', (event) => {
    const failure = read(words('msg_1', 'Hi'), event).at(-1)
    expect(failure).toMatchObject({ kind: 'failure', error: { kind: 'upstream-failed', message: 'Broken.' } })
  })

  test('a malformed event is a failure', () => {
    const [event] = openReader().read(Buffer.from('data: {"type":"response.output_te\n\n'))
    expect(event).toMatchObject({ kind: 'failure', error: { kind: 'upstream-failed' } })
  })

  test('comments, [DONE] and unknown events are tolerated', () => {
    const reader = openReader()
    expect(reader.read(Buffer.from(': alive\n\n'))).toEqual([{ kind: 'heartbeat' }])
    expect(reader.read(Buffer.from('data: [DONE]\n\n'))).toEqual([])
    expect(read({ type: 'response.new_thing.delta', delta: 'x' })).toEqual([{ kind: 'reply-start' }])
  })

  test('a keepalive does not start the reply, and is passed on once it has started', () => {
    const alive = { type: 'keepalive', sequence_number: 2 }
    expect(read(alive, alive)).toEqual([])
    expect(read(words('msg_1', 'Hi'), alive).at(-1)).toEqual({ kind: 'heartbeat' })
  })
})

describe('a whole answer', () => {
  test('the items of an answer are read in their order', () => {
    const cited = { type: 'url_citation', url: 'https://pages.example/', title: 'Page', start_index: 0, end_index: 1 }
    const reply = answer({
      id: 'resp_1',
      status: 'completed',
      error: null,
      output: [
        { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content: 'gAAA' },
        message({ type: 'output_text', text: 'Yes.', annotations: [cited] }),
        message({ type: 'output_text', text: 'More.' }, { type: 'refusal', refusal: 'No.' }),
        { ...call, arguments: '' },
        { type: 'something_new' },
      ],
      usage,
    })
    expect(reply).toEqual({
      usage: counted,
      choices: [
        {
          finish: 'tool-calls',
          blocks: [
            { kind: 'thinking', text: 'Hm.', signature: markOpenai('gAAA') },
            { kind: 'text', text: 'Yes.', citations: [{ url: 'https://pages.example/', title: 'Page' }] },
            { kind: 'text', text: '\n\nMore.' },
            { kind: 'refusal', text: 'No.' },
            { kind: 'tool-call', id: 'call_1', name: 'f', argumentsText: '{}' },
          ],
        },
      ],
    })
  })

  test.each([
    ['max_output_tokens', 'length'],
    ['content_filter', 'refusal'],
  ] as const)('an answer that was cut off by %s keeps its partial arguments and its finish', (reason, finish) => {
    const cut = answer({
      status: 'incomplete',
      incomplete_details: { reason },
      output: [{ ...call, arguments: '{"a' }],
    })
    expect(cut.choices[0]).toEqual({
      finish,
      blocks: [{ kind: 'tool-call', id: 'call_1', name: 'f', argumentsText: '{"a' }],
    })
    expect(cut.usage).toBeUndefined()
  })

  test.each([
    '<html>',
    '[]',
    '{"status":"completed"}',
    '{"status":"failed","output":[],"error":null}',
    '{"status":"failed","output":[],"error":{"code":"server_error","message":"Broken."}}',
  ])('a body without a usable answer is a failure: %s', (body) => {
    expect(() => readAnswer(Buffer.from(body))).toThrow(/vendor|Broken/)
  })
})

test('a refusal in words is read from a stream', () => {
  const refused = ['I will ', '', 'not.'].map((delta) => ({ type: 'response.refusal.delta', item_id: 'msg_1', delta }))
  expect(read(...refused).slice(1)).toEqual([
    { kind: 'refusal-delta', choice: 0, text: 'I will ' },
    { kind: 'refusal-delta', choice: 0, text: 'not.' },
  ])
})

test('an error in place of an answer is told with its message', () => {
  const error = { code: 'server_error', message: 'on fire' }
  expect(() => answer({ status: 'failed', error, output: [] })).toThrow('on fire')
})
