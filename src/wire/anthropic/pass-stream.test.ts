import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { cut } from '../../../test/support/conversations.ts'
import fixture from '../../vendors/anthropic/fixtures/anthropic.json'
import { EventSplitter } from '../../base/sse.ts'
import { passStream } from './pass-stream.ts'
import { askOf } from './testing.ts'

const ask = askOf({})

/** What a client would get of these events, and the facts at the end. */
function follow(events: readonly string[]) {
  const stream = passStream(ask)
  const text = events
    .flatMap((event) => stream.take(Buffer.from(event)) ?? [])
    .map((bytes) => Buffer.from(bytes).toString())
  return { text, facts: stream.facts, closing: Buffer.from(stream.closing()).toString() }
}

const event = (data: { type: string } & Record<string, unknown>) =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
const usage = {
  input_tokens: 9,
  cache_read_input_tokens: 4,
  output_tokens: 1,
  cache_creation: { ephemeral_1h_input_tokens: 2 },
}
const startOf = (model: string) =>
  event({ type: 'message_start', message: { id: 'msg_1', type: 'message', model, content: [], usage } })
const start = startOf('ours')
const open = event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } })
const say = (text: string) => event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })
const close = event({ type: 'content_block_stop', index: 0 })
const finish = event({
  type: 'message_delta',
  delta: { stop_reason: 'end_turn', stop_sequence: null },
  usage: { output_tokens: 12, input_tokens: null, cache_creation_input_tokens: 3 },
})
const stop = event({ type: 'message_stop' })
const ping = event({ type: 'ping' })
const bare = (written: string) => written.replace(/^event: .*\n/, '')
const unsaid = (written: string) => written.replace(/"type":"message_\w+",?/, '')
const crlf = (written: string) => written.replaceAll('\n', '\r\n')

describe('events that are forwarded', () => {
  test('every event before message_stop is forwarded byte for byte', () => {
    const events = [': hello\n\n', start, ping, open, say('Hi'), close, finish]
    const { text, facts, closing } = follow([...events, stop])
    expect(text).toEqual(events)
    expect(closing).toBe(stop)
    expect(facts).toMatchObject({ finished: true, ended: true, failure: undefined, outputEvents: 1 })
  })

  test.each(['\n', '\r\n', '\r'])(
    'an event name is also found after the first line, where lines end with %j',
    (lineEnd) => {
      const numbered = `id: 7\n${say('Hi')}`.replaceAll('\n', lineEnd)
      expect(follow([numbered]).text).toEqual([numbered])
      const quoting = `id: 7\n${bare(say('event: ping'))}`.replaceAll('\n', lineEnd)
      expect(follow([quoting]).text).toEqual([`event: content_block_delta\n${quoting}`])
    },
  )

  test('our model id replaces the vendor’s in message_start and nowhere else', () => {
    const quoting = say('"model":"theirs"')
    expect(follow([startOf('theirs-2026'), quoting]).text).toEqual([start, quoting])
  })

  test('a second message_start is dropped', () => {
    expect(follow([start, start, say('Hi')]).text).toEqual([start, say('Hi')])
  })

  test('unknown events and malformed content events are forwarded unchanged', () => {
    const odd = event({ type: 'made_up', usage: { output_tokens: 99 } })
    const broken = 'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"te\n\n'
    const { text, facts } = follow([start, odd, broken])
    expect(text).toEqual([start, odd, broken])
    expect(facts.failure).toBeUndefined()
  })

  test('an event without a name gets one from its type', () => {
    expect(follow([bare(start), `: x\r\n${bare(say('Hi'))}`, bare(stop)])).toMatchObject({
      text: [start, `event: content_block_delta\n: x\r\n${bare(say('Hi'))}`],
      closing: stop,
      facts: { ended: true },
    })
  })

  test('an event without a type is known by its name, and is forwarded as it came', () => {
    const { text, facts, closing } = follow([start, say('Hi'), unsaid(finish), unsaid(stop)])
    expect(text).toEqual([start, say('Hi'), unsaid(finish)])
    expect(facts).toMatchObject({ finished: true, ended: true, usage: { output: 12 } })
    expect(closing).toBe('event: message_stop\ndata: {}\n\n')
    const nameless = 'data: {"note":"event: message_stop"}\n\n'
    expect(follow([nameless])).toMatchObject({ text: [nameless], facts: { ended: false } })
  })

  test('text that looks like an end, an error or an event name is forwarded as text', () => {
    const tricky = [say('"type":"error"'), say('{"type":"message_stop"}'), say('\nevent: message_stop')]
    const { text, facts } = follow(tricky)
    expect(text).toEqual(tricky)
    expect(facts).toMatchObject({ ended: false, finished: false, failure: undefined, outputEvents: 3 })
  })

  test('CRLF line ends are kept', () => {
    const { text, closing, facts } = follow([crlf(start), crlf(say('Hi')), crlf(finish), crlf(stop)])
    expect(text).toEqual([crlf(start), crlf(say('Hi')), crlf(finish)])
    expect(closing).toBe(crlf(stop))
    expect(facts).toMatchObject({ finished: true, ended: true })
  })
})

const blockOf = (content_block: object) => event({ type: 'content_block_start', index: 0, content_block })

describe('the usage of a stream', () => {
  test('each count is the latest that the vendor reported', () => {
    expect(follow([start, finish]).facts.usage).toEqual({
      input: 9,
      cachedInput: 4,
      cacheWrite: 1,
      cacheWriteHour: 2,
      output: 12,
      reasoning: 0,
      webSearch: 0,
    })
  })

  test('a count of the output that comes again replaces the one before, also without the counts of the input', () => {
    const growing = [3, 12].map((output_tokens) =>
      event({ type: 'message_delta', delta: {}, usage: { output_tokens } }),
    )
    expect(follow([start, ...growing]).facts.usage).toMatchObject({ input: 9, cachedInput: 4, output: 12 })
  })

  test('searches and the bytes they found are counted before the vendor reports them', () => {
    const search = blockOf({ type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} })
    const fetching = blockOf({ type: 'server_tool_use', id: 'srvtoolu_2', name: 'web_fetch', input: {} })
    const found = blockOf({ type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] })
    const { facts } = follow([start, search, found, search, found, fetching])
    expect(facts.hosted).toEqual({ searches: 2, foundBytes: 2 * found.length })
    expect(facts.outputEvents).toBe(3)
    expect(follow([start, say('Hi')]).facts.hosted).toEqual({ searches: 0, foundBytes: 0 })
  })

  test('usage has input counts alone while only message_start has reported any', () => {
    const bare = event({ type: 'message_delta', delta: { stop_reason: 'end_turn' } })
    for (const events of [[start], [start, say('Hi')], [start, say('Hi'), bare, stop]]) {
      const { usage } = follow(events).facts
      expect(usage).toMatchObject({ input: 9, cachedInput: 4 })
      expect(usage).not.toHaveProperty('output')
    }
  })

  test.each([
    [
      { input_tokens: 0, cache_read_input_tokens: 0, cache_creation: { ephemeral_1h_input_tokens: 0 } },
      { input: 9, cachedInput: 4, cacheWriteHour: 2 },
    ],
    [{ input_tokens: 0 }, { input: 9, cachedInput: 4 }],
    // All of the prompt turned out to be cached.
    [
      { input_tokens: 0, cache_read_input_tokens: 16 },
      { input: 0, cachedInput: 16 },
    ],
  ])('an end that counts %j leaves the usage at %j', (input, counts) => {
    const end = event({
      type: 'message_delta',
      delta: { stop_reason: 'end_turn' },
      usage: { ...input, output_tokens: 12 },
    })
    expect(follow([start, say('Hi'), end, stop]).facts.usage).toMatchObject({ ...counts, output: 12 })
  })

  test('usage is undefined where the vendor reports none', () => {
    const silent = event({ type: 'message_start', message: { model: 'ours' } })
    expect(follow([silent, say('Hi'), stop]).facts.usage).toBeUndefined()
  })
})

describe('the end of a stream', () => {
  test('a missing message_stop is added once the vendor has finished', () => {
    const { facts, closing } = follow([start, finish])
    expect(facts).toMatchObject({ finished: true, ended: false })
    expect(closing).toBe(stop)
  })

  test('counts without a reason to stop do not finish the stream', () => {
    const counted = event({ type: 'message_delta', delta: { stop_reason: null }, usage: { output_tokens: 3 } })
    const { facts } = follow([start, say('Hi'), counted])
    expect(facts).toMatchObject({ finished: false, ended: false, usage: { output: 3 } })
  })

  test.each([
    ['overloaded_error', 529],
    ['rate_limit_error', 429],
    ['timeout_error', 504],
    ['api_error', 500],
    ['authentication_error', 401],
  ])('the error %s in mid-stream is a failure with status %d and is not forwarded', (type, status) => {
    const said = { type: 'error', error: { type, message: 'Busy' } }
    const { text, facts } = follow([start, event(said)])
    expect(text).toEqual([start])
    const inside = { status, body: JSON.stringify(said) }
    expect(facts.failure).toMatchObject({ kind: 'upstream-failed', message: 'Busy', details: { inside } })
  })

  test('an error of unknown type is a failure with the vendor’s message', () => {
    const { facts } = follow([start, event({ type: 'error', error: { type: 'made_up', message: 'Busy' } })])
    expect(facts.failure).toMatchObject({ kind: 'upstream-failed', message: 'Busy' })
    expect(facts.failure?.details.inside).toBeUndefined()
  })

  test.each(['message_delta', 'error'])('a malformed %s event is a failure and is not forwarded', (type) => {
    const { text, facts } = follow([start, `event: ${type}\ndata: {"type":"${type}","usage":{"outp\n\n`])
    expect(text).toEqual([start])
    expect(facts).toMatchObject({ failure: { kind: 'upstream-failed' }, finished: false })
  })

  test('an error in the common protocol’s form is a failure and is not forwarded', () => {
    const { text, facts } = follow([
      start,
      'data: {"error":{"message":"No.","type":"rate_limit_error","code":"429"}}\n\n',
    ])
    expect(text).toEqual([start])
    expect(facts.failure).toMatchObject({ message: 'No.', details: { inside: { status: 429 } } })
  })
})

const block = (content: Record<string, unknown>) =>
  event({ type: 'content_block_start', index: 0, content_block: content })

describe('the measure of delivered output', () => {
  test.each([
    ['message_start', start, 0],
    ['an empty text block', open, 0],
    ['an empty thinking block', block({ type: 'thinking', thinking: '', signature: '' }), 0],
    ['a search result', block({ type: 'web_search_tool_result', content: [] }), 0],
    ['a ping', ping, 0],
    ['a tool call', block({ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }), 1],
    ['redacted thinking', block({ type: 'redacted_thinking', data: 'x' }), 1],
    ['a text delta', say('x'), 1],
  ])('outputEvents is correct after %s', (_name, written, events) => {
    expect(follow([written]).facts.outputEvents).toBe(events)
  })

  test.each([
    ['text', { type: 'text_delta', text: 'word' }],
    ['thinking', { type: 'thinking_delta', thinking: 'word' }],
    ['the input of a tool', { type: 'input_json_delta', partial_json: 'word' }],
    ['a signature', { type: 'signature_delta', signature: 'word' }],
  ])('outputBytes measures %s without the event around it', (_name, delta) => {
    const twenty = Array.from({ length: 20 }, () => event({ type: 'content_block_delta', index: 0, delta }))
    expect(follow([start, open, say('Hi'), ...twenty]).facts).toMatchObject({ outputEvents: 21, outputBytes: 20 * 2 })
  })
})

test('the forwarded stream and its facts do not depend on where the bytes are cut', () => {
  const bytes = Buffer.from(fixture.stream.join(''))
  const whole = follow(fixture.stream)
  fc.assert(
    fc.property(fc.array(fc.nat(bytes.length)), (places) => {
      const splitter = new EventSplitter(1_000_000)
      const events = cut(bytes, places).flatMap((chunk) => splitter.push(chunk))
      const { text, facts, closing } = follow(events.map((event) => Buffer.from(event).toString()))
      expect(text.join('')).toBe(whole.text.join(''))
      expect({ ...facts, closing }).toEqual({ ...whole.facts, closing: whole.closing })
    }),
  )
})
