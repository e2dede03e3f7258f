import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { cut, replyOf } from '../../../test/support/conversations.ts'
import { EventSplitter } from '../../base/sse.ts'
import type { ReplyEvent } from '../../capabilities/conversation.ts'
import fixture from '../../vendors/anthropic/fixtures/anthropic.json'
import { readAnswer } from './read-answer.ts'
import { readAssistantBlocks } from './read-blocks.ts'
import { openReader } from './reply-reader.ts'

type Data = { readonly type: string; readonly [field: string]: unknown }

function read(...events: readonly Data[]): ReplyEvent[] {
  const reader = openReader()
  return events.flatMap((data) => [
    ...reader.read(Buffer.from(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`)),
  ])
}

const start = (index: number, content_block: unknown): Data => ({ type: 'content_block_start', index, content_block })
const delta = (index: number, delta: unknown): Data => ({ type: 'content_block_delta', index, delta })
const stop = (index: number): Data => ({ type: 'content_block_stop', index })
const json = (index: number, text: string) => delta(index, { type: 'input_json_delta', partial_json: text })
const call = (index: number, more = {}) =>
  start(index, { type: 'tool_use', id: `toolu_${index}`, name: 'f', input: {}, ...more })
const half = (signature: string) => delta(0, { type: 'signature_delta', signature })
const said = (text: string) => ({ type: 'text', text })
const end = (more: object, usage?: object): Data => ({ type: 'message_delta', delta: more, usage })

describe('a stream', () => {
  test('the reply starts once, and its input is counted before its output', () => {
    const usage = { input_tokens: 5, cache_read_input_tokens: 2, output_tokens: 1 }
    const begin = { type: 'message_start', message: { id: 'msg_1', usage } }
    const [first, counted, ...again] = read(begin, begin)
    expect(first).toEqual({ kind: 'reply-start' })
    expect(counted).toMatchObject({ kind: 'usage-count', usage: { input: 5, cachedInput: 2 } })
    expect(counted).not.toHaveProperty('usage.output')
    expect(again.map(({ kind }) => kind)).toEqual(['usage-count'])
    const last = read(begin, end({ stop_reason: 'end_turn' }, { output_tokens: 9 })).at(-1)
    expect(last).toMatchObject({ usage: { input: 5, cachedInput: 2, output: 9 } })
  })

  test('calls are numbered without the vendor’s hosted tools, whose runs are reported apart', () => {
    const found = start(1, { type: 'web_search_tool_result', content: [] })
    const events = read(
      start(0, { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }),
      json(0, '{"query":"x"}'),
      stop(0),
      found,
      stop(1),
      call(2),
      json(2, ''),
      json(2, '{"a":'),
      json(2, '1}'),
      stop(2),
      call(3, { id: 'tpk_Zjow' }),
      json(3, ''),
      stop(3),
      call(4, { input: { whole: true } }),
      stop(4),
    )
    const choice = 0
    // Hosted tools are not calls for the client, but they are on the bill.
    const runs = events.splice(0, 2)
    expect(runs).toEqual([
      { kind: 'hosted-tool-run', searches: 1, foundBytes: 0 },
      { kind: 'hosted-tool-run', searches: 0, foundBytes: expect.any(Number) },
    ])
    expect(runs[1]).toMatchObject({ foundBytes: JSON.stringify(found).length })
    expect(events).toEqual([
      { kind: 'tool-call-start', choice, call: 0, id: 'toolu_2', name: 'f' },
      { kind: 'tool-call-delta', choice, call: 0, text: '{"a":' },
      { kind: 'tool-call-delta', choice, call: 0, text: '1}' },
      { kind: 'tool-call-start', choice, call: 1, id: 'f:0', name: 'f' },
      { kind: 'tool-call-delta', choice, call: 1, text: '{}' },
      { kind: 'tool-call-start', choice, call: 2, id: 'toolu_4', name: 'f' },
      { kind: 'tool-call-delta', choice, call: 2, text: '{"whole":true}' },
    ])
  })

  test('shown, hidden and redacted thinking is read with its signature or data', () => {
    const thought = start(0, { type: 'thinking', thinking: '', signature: '' })
    expect(read(thought, half('E'), half('q'), stop(0))).toEqual([
      { kind: 'thinking-sign', choice: 0, text: '', signature: 'Eq' },
    ])
    const words = ['Hm', ', so.'].map((thinking) => delta(0, { type: 'thinking_delta', thinking }))
    expect(read(thought, ...words, half('Eq'), stop(0)).at(-1)).toEqual({
      kind: 'thinking-sign',
      choice: 0,
      text: 'Hm, so.',
      signature: 'Eq',
    })
    expect(read(start(0, { type: 'redacted_thinking', data: 'x' }), stop(0))).toEqual([
      { kind: 'thinking-redact', choice: 0, data: 'x' },
    ])
  })

  test.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop-sequence'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['tool_use', 'tool-calls'],
    ['pause_turn', 'pause'],
    ['refusal', 'refusal'],
    ['made_up', 'stop'],
  ] as const)('the stop_reason %s is mapped to a finish', (stop_reason, finish) => {
    expect(read(end({ stop_reason, stop_sequence: null }))).toEqual([{ kind: 'choice-finish', choice: 0, finish }])
  })

  test('the stop sequence and the explanation of a refusal are read', () => {
    expect(read(end({ stop_reason: 'stop_sequence', stop_sequence: 'END' }))).toMatchObject([{ stopSequence: 'END' }])
    const stop_details = { type: 'refusal', explanation: 'Not this.' }
    expect(read(end({ stop_reason: 'refusal', stop_details }))).toMatchObject([
      { kind: 'refusal-delta', text: 'Not this.' },
      { kind: 'choice-finish', finish: 'refusal' },
    ])
  })

  test('pings, comments, errors and the end of a stream are read as reply events', () => {
    expect(read({ type: 'ping' }, { type: 'made_up' }, { type: 'message_stop' })).toEqual([
      { kind: 'heartbeat' },
      { kind: 'reply-end' },
    ])
    expect(read({ type: 'error', error: { type: 'overloaded_error', message: 'Busy' } })).toMatchObject([
      { kind: 'failure', error: { kind: 'upstream-failed', message: 'Busy', details: { inside: { status: 529 } } } },
    ])
    expect(openReader().read(Buffer.from(': hello\n\n'))).toEqual([{ kind: 'heartbeat' }])
    expect(openReader().read(Buffer.from('data: {"type":"cont\n\n'))).toMatchObject([{ kind: 'failure' }])
    expect(openReader().read(Buffer.from('data: [DONE]\n\n'))).toEqual([{ kind: 'reply-end' }])
  })

  test.each([
    ['tool_use', '{}'],
    ['max_tokens', ''],
    ['refusal', ''],
  ])('an empty last call that ends with %s has {} as arguments only if it is complete', (stop_reason, text) => {
    const streamed = read(call(0), stop(0), call(1), stop(1), end({ stop_reason }))
    const inputOf = (call: number) =>
      streamed.flatMap((event) => (event.kind === 'tool-call-delta' && event.call === call ? event.text : [])).join('')
    expect([inputOf(0), inputOf(1)]).toEqual(['{}', text])
    const content = [call(0)['content_block'], call(1)['content_block']]
    const whole = answerOf({ content, stop_reason }).choices[0]?.blocks ?? []
    expect(whole.map((block) => block.kind === 'tool-call' && block.argumentsText)).toEqual(['{}', text])
  })

  test('an empty call is complete where the stream ends without a stop_reason, and not after one that cut it off', () => {
    const last = { type: 'message_stop' }
    const filled = { kind: 'tool-call-delta', choice: 0, call: 0, text: '{}' } as const
    expect(read(call(0), stop(0), last)).toContainEqual(filled)
    expect(read(call(0), stop(0), end({ stop_reason: 'max_tokens' }), last)).not.toContainEqual(filled)
  })

  test.each([said(''), { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }])(
    'an empty call is complete where the stream is cut off in a later hidden block: %j',
    (hidden) => {
      const stop_reason = 'max_tokens'
      const streamed = read(call(0), stop(0), start(1, hidden), stop(1), end({ stop_reason }))
      expect(streamed).toContainEqual({ kind: 'tool-call-delta', choice: 0, call: 0, text: '{}' })
      const [block] = answerOf({ content: [call(0)['content_block'], hidden], stop_reason }).choices[0]?.blocks ?? []
      expect(block).toMatchObject({ kind: 'tool-call', argumentsText: '{}' })
    },
  )

  test('text before and after a hosted search is separated by a blank line', () => {
    const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }
    const found = { type: 'web_search_tool_result', content: [] }
    const content = [search, said('Let me look.'), search, found, said('It is '), said('cold.')]
    const words = 'Let me look.\n\nIt is cold.'
    const streamed = read(...content.flatMap((block, index) => [start(index, block), stop(index)]))
    expect(streamed.flatMap((event) => (event.kind === 'text-delta' ? event.text : [])).join('')).toBe(words)
    const { blocks = [] } = answerOf({ content }).choices[0] ?? {}
    expect(blocks.map((block) => block.kind === 'text' && block.text).join('')).toBe(words)
    expect(readAssistantBlocks(content)[1]).toEqual({ kind: 'text', text: 'It is ', isApart: true })
  })

  test('the reply does not depend on where the bytes of the stream are cut', () => {
    const bytes = Buffer.from(fixture.stream.join(''))
    const whole = readAnswer(Buffer.from(JSON.stringify(fixture.answer)))
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length)), (places) => {
        const splitter = new EventSplitter(1_000_000)
        const reader = openReader()
        const events = cut(bytes, places).flatMap((chunk) => splitter.push(chunk))
        expect(replyOf(events.flatMap((event) => [...reader.read(event)]))).toEqual(whole)
      }),
    )
  })

  test('an error in the common protocol’s form is a failure', () => {
    const bare = Buffer.from('data: {"error":{"message":"No.","type":"made_up"}}\n\n')
    expect(openReader().read(bare)).toMatchObject([
      { kind: 'failure', error: { kind: 'upstream-failed', message: 'No.' } },
    ])
  })
})

const answerOf = (fields: object) => readAnswer(Buffer.from(JSON.stringify({ content: [], ...fields })))

describe('a whole answer', () => {
  test('large numbers in the input of a call keep their digits', () => {
    const text =
      '{"content":[{"type":"tool_use","id":"a","name":"f","input":{"n":9007199254740993}}],"stop_reason":"tool_use"}'
    expect(readAnswer(Buffer.from(text)).choices[0]).toEqual({
      finish: 'tool-calls',
      blocks: [{ kind: 'tool-call', id: 'a', name: 'f', argumentsText: '{"n":9007199254740993}' }],
    })
  })

  test('the explanation of a refusal is read', () => {
    const stop_details = { type: 'refusal', explanation: 'Not this.' }
    expect(answerOf({ stop_reason: 'refusal', stop_details }).choices[0]).toEqual({
      finish: 'refusal',
      blocks: [{ kind: 'refusal', text: 'Not this.' }],
    })
  })

  test('an error body and a body that is not JSON are failures', () => {
    expect(() => answerOf({ error: { type: 'api_error', message: 'on fire' } })).toThrow('on fire')
    expect(() => readAnswer(Buffer.from('<html>'))).toThrow('no answer')
  })
})

// Anthropic itself says `tool_use`, but other servers of its protocol do not, and clients run tools only on that
// finish.
describe('a reply with a call that ends as if it had none', () => {
  test.each([
    ['end_turn', 'tool-calls'],
    ['stop_sequence', 'tool-calls'],
    ['made_up', 'tool-calls'],
    ['max_tokens', 'length'],
    ['refusal', 'refusal'],
    ['pause_turn', 'pause'],
  ] as const)('the stop_reason %s becomes the finish %s, streamed and whole', (stop_reason, finish) => {
    const streamed = read(call(0), json(0, '{"a":1}'), stop(0), end({ stop_reason }))
    expect(streamed.flatMap((event) => (event.kind === 'choice-finish' ? event.finish : []))).toEqual([finish])
    const content = [{ type: 'tool_use', id: 'toolu_0', name: 'f', input: { a: 1 } }]
    expect(answerOf({ content, stop_reason }).choices[0]?.finish).toBe(finish)
  })
})
