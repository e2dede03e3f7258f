import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import type { AssistantBlock, Choice, Finish, ReplyEvent } from '../../capabilities/conversation.ts'
import { openWriter } from './reply-writer.ts'
import { askOf, name } from './testing.ts'
import { writeAnswer } from './write-answer.ts'

const messages = [{ role: 'user', content: 'Hi' }]
const plain = askOf({ messages })
const thinking = askOf({ messages, thinking: { type: 'adaptive' } })
const omitting = askOf({ messages, thinking: { type: 'adaptive', display: 'omitted' } })

type Written = { type: string; index?: number; [field: string]: unknown }

/** The events as a client parses them, each with its name checked against its type. */
function parse(text: string): Written[] {
  return text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => {
      const [, named, data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(event) ?? []
      const json = JSON.parse(data) as Written
      expect(json.type).toBe(named ?? '')
      return json
    })
}

function stream(events: readonly ReplyEvent[], ask = plain) {
  const writer = openWriter(ask, name)
  const pieces = events.map((event) => Buffer.from(writer.write([event]) ?? []).toString())
  const ending = Buffer.from(writer.closing({ input: 10, cachedInput: 4, output: 7 })).toString()
  const all = parse(pieces.join('') + ending)
  const [start, ping, ...rest] = all
  const [end, stop] = rest.splice(-2)
  return { pieces, start, ping, blocks: rest.map(brief), end, stop }
}

/** `+0 text`, `0 text_delta Hi`, `-0`: what an event does to its block. */
function brief({ type, index, content_block: block, delta }: Written): string {
  const { type: kind = '', ...fields } = (block ?? delta ?? {}) as Record<string, unknown> & { type?: string }
  const { caller: _, input: __, citations: ___, ...shown } = fields
  const words = Object.values(shown).flatMap((value) =>
    value === '' ? [] : [typeof value === 'string' ? value : JSON.stringify(value)],
  )
  const sign = { content_block_start: '+', content_block_stop: '-' }[type] ?? ''
  return [`${sign}${index ?? type}`, kind, ...words].filter((word) => word !== '').join(' ')
}

const choice = 0
const say = (text: string): ReplyEvent => ({ kind: 'text-delta', choice, text })
const think = (text: string): ReplyEvent => ({ kind: 'thinking-delta', choice, text })
const sign = (signature: string): ReplyEvent => ({ kind: 'thinking-sign', choice, text: '', signature })
const call = (call: number, more = {}): ReplyEvent => ({
  kind: 'tool-call-start',
  choice,
  call,
  id: `id${call}`,
  name: `f${call}`,
  ...more,
})
const grow = (call: number, text: string): ReplyEvent => ({ kind: 'tool-call-delta', choice, call, text })
const finish = (finish: Finish, more = {}): ReplyEvent => ({ kind: 'choice-finish', choice, finish, ...more })

describe('a stream', () => {
  test('a stream begins with one message_start and ends with the usage', () => {
    const { start, ping, blocks, end, stop } = stream([{ kind: 'reply-start' }, say('Hel'), say('lo'), finish('stop')])
    expect(start).toMatchObject({
      type: 'message_start',
      message: {
        id: 'msg_1',
        role: 'assistant',
        model: 'ours',
        content: [],
        stop_reason: null,
        usage: { input_tokens: 0 },
      },
    })
    expect(ping).toEqual({ type: 'ping' })
    expect(blocks).toEqual(['+0 text', '0 text_delta Hel', '0 text_delta lo', '-0'])
    expect(end).toMatchObject({
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { input_tokens: 10, cache_read_input_tokens: 4, cache_creation_input_tokens: 0, output_tokens: 7 },
    })
    expect(stop).toEqual({ type: 'message_stop' })
  })

  test('message_start carries the input counts that are already known', () => {
    const { start } = stream([{ kind: 'usage-count', usage: { input: 3, cachedInput: 2 } }, { kind: 'reply-start' }])
    expect(start).toMatchObject({ message: { usage: { input_tokens: 3, cache_read_input_tokens: 2 } } })
  })

  test('a stream of no events is still a complete message', () => {
    const { start, blocks, end } = stream([])
    expect([start?.type, blocks, end?.['delta']]).toMatchObject(['message_start', [], { stop_reason: 'end_turn' }])
  })

  test('a heartbeat becomes a ping only after the stream has begun', () => {
    const { pieces } = stream([{ kind: 'heartbeat' }, say('x'), { kind: 'heartbeat' }])
    expect([pieces[0], pieces[2]]).toEqual(['', 'event: ping\ndata: {"type":"ping"}\n\n'])
  })

  test('a second choice is dropped', () => {
    expect(stream([say('a'), { kind: 'text-delta', choice: 1, text: 'b' }]).blocks).toEqual([
      '+0 text',
      '0 text_delta a',
      '-0',
    ])
  })

  test('a block is opened only for content, and only one is open at a time', () => {
    expect(
      stream([say(''), think('Hm'), sign('Eq'), say('a'), call(0), grow(0, '{}'), say('b')], thinking).blocks,
    ).toEqual([
      '+0 thinking',
      '0 thinking_delta Hm',
      '0 signature_delta Eq',
      '-0',
      '+1 text',
      '1 text_delta a',
      '-1',
      '+2 tool_use id0 f0',
      '2 input_json_delta {}',
      '-2',
      '+3 text',
      '3 text_delta b',
      '-3',
    ])
  })

  test.each([
    ['before the input', [' ', '\n {"a":', '1} '], ['0 input_json_delta {"a":', '0 input_json_delta 1} ']],
    ['in place of an input', [' ', '\n'], []],
  ])('whitespace %s of a call is not written', (_, pieces, written) => {
    const { blocks } = stream([call(0), ...pieces.map((piece) => grow(0, piece)), finish('tool-calls')])
    expect(blocks).toEqual(['+0 tool_use id0 f0', ...written, '-0'])
  })

  test('a citation is attached to the text before it, and dropped where there is none', () => {
    const cite: ReplyEvent = { kind: 'citation-add', choice, citation: { url: 'https://x', title: 'T' } }
    const { blocks } = stream([cite, say('a'), cite])
    expect(blocks).toEqual([
      '+0 text',
      '0 text_delta a',
      expect.stringContaining('0 citations_delta {"type":"web_search_result_location","url":"https://x"'),
      '-0',
    ])
  })

  test('images and refusals are written as text', () => {
    const image: ReplyEvent = {
      kind: 'image-add',
      choice,
      media: { kind: 'bytes', mediaType: 'image/png', base64: 'AA' },
    }
    const { blocks, end } = stream([image, { kind: 'refusal-delta', choice, text: 'No.' }, finish('stop')])
    expect(blocks.slice(1, 3)).toEqual(['0 text_delta ![image](data:image/png;base64,AA)', '0 text_delta No.'])
    expect(end).toMatchObject({ delta: { stop_reason: 'refusal', stop_details: { type: 'refusal' } } })
  })
})

describe('thinking', () => {
  const events = [think('Hm'), sign('Eq'), { kind: 'thinking-redact', choice, data: 'x' } as const, say('a')]

  test('thinking is shown only to clients that asked for it', () => {
    expect(stream(events).blocks).toEqual(['+0 text', '0 text_delta a', '-0'])
    expect(stream(events, thinking).blocks.slice(0, 6)).toEqual([
      '+0 thinking',
      '0 thinking_delta Hm',
      '0 signature_delta Eq',
      '-0',
      '+1 redacted_thinking x',
      '-1',
    ])
  })

  test.each([
    ['plain thinking', think('Hm'), { kind: 'thinking', text: 'Hm' }],
    ['redacted thinking', { kind: 'thinking-redact', choice, data: 'x' }, { kind: 'thinking-redacted', data: 'x' }],
  ] as const)(
    'hidden thinking still separates the text before it from the text after it: %s',
    (_name, hidden, block) => {
      const texts = ['+0 text', '0 text_delta a', '-0', '+1 text', '1 text_delta \n\nb', '1 text_delta c', '-1']
      expect(stream([hidden, say('a'), hidden, hidden, say('b'), say('c')]).blocks).toEqual(texts)
      const content = whole([block, { kind: 'text', text: 'a' }, block, block, { kind: 'text', text: 'b' }])['content']
      expect(content).toMatchObject([{ text: 'a' }, { text: '\n\nb' }])
    },
  )

  test('hidden thinking separates an image from the text before it, streamed and whole', () => {
    const media = { kind: 'url', url: 'https://h/a.png' } as const
    const { blocks } = stream([say('a'), think('Hm'), { kind: 'image-add', choice, media }])
    expect(blocks.at(-2)).toBe('1 text_delta \n\n![image](https://h/a.png)')
    const content = whole([
      { kind: 'text', text: 'a' },
      { kind: 'thinking', text: 'Hm' },
      { kind: 'image', media, at: '' },
    ])['content']
    expect(content).toMatchObject([{ text: 'a' }, { text: '\n\n![image](https://h/a.png)' }])
  })

  test('omitted thinking is reduced to its signature, and dropped where it has none', () => {
    expect(stream(events, omitting).blocks.slice(0, 3)).toEqual(['+0 thinking', '0 signature_delta Eq', '-0'])
    expect(stream([think('unsigned'), say('a')], omitting).blocks).toEqual(['+0 text', '0 text_delta a', '-0'])
  })

  test('hidden thinking is replaced by an occasional ping', () => {
    const { pieces } = stream([{ kind: 'reply-start' }, ...Array.from({ length: 120 }, () => think('Hm'))])
    expect(pieces.slice(1).filter((piece) => piece.includes('ping'))).toHaveLength(2)
  })
})

describe('tool calls', () => {
  test('consecutive calls are written as their arguments arrive', () => {
    const { pieces, blocks } = stream([call(0), grow(0, '{"a":'), grow(0, '1}'), call(1), grow(1, '{}')])
    expect(blocks).toEqual([
      '+0 tool_use id0 f0',
      '0 input_json_delta {"a":',
      '0 input_json_delta 1}',
      '-0',
      '+1 tool_use id1 f1',
      '1 input_json_delta {}',
      '-1',
    ])
    expect(pieces.every((piece) => piece !== '')).toBe(true)
  })

  test('interleaved calls are written one after another', () => {
    const events = [
      call(0),
      call(1),
      grow(1, '{"b"'),
      grow(0, '{"a"'),
      grow(1, ':2}'),
      grow(0, ':1}'),
      finish('tool-calls'),
    ]
    expect(stream(events).blocks).toEqual([
      '+0 tool_use id0 f0',
      '0 input_json_delta {"a"',
      '0 input_json_delta :1}',
      '-0',
      '+1 tool_use id1 f1',
      '1 input_json_delta {"b":2}',
      '-1',
    ])
  })

  test('text between the parts of a call waits until the call is complete', () => {
    const mixed = [call(0), grow(0, '{"a":'), say('Mean'), call(1), say('while'), grow(1, '{}'), grow(0, '1}')]
    expect(stream([...mixed, say(', so.'), finish('tool-calls')]).blocks).toEqual([
      '+0 tool_use id0 f0',
      '0 input_json_delta {"a":',
      '0 input_json_delta 1}',
      '-0',
      '+1 text',
      '1 text_delta Mean',
      '-1',
      '+2 tool_use id1 f1',
      '2 input_json_delta {}',
      '-2',
      '+3 text',
      '3 text_delta while',
      '3 text_delta , so.',
      '-3',
    ])
    // A call that never becomes complete holds the later blocks back until the end of the reply.
    expect(stream([call(0), grow(0, '{"a'), say('Hi'), finish('length')]).blocks.slice(-4)).toEqual([
      '-0',
      '+1 text',
      '1 text_delta Hi',
      '-1',
    ])
  })

  test('calls without arguments are written, and stop_reason is tool_use', () => {
    expect(stream([call(0), call(1), finish('stop')])).toMatchObject({
      blocks: ['+0 tool_use id0 f0', '-0', '+1 tool_use id1 f1', '-1'],
      end: { delta: { stop_reason: 'tool_use' } },
    })
  })

  test('the signature of a call is written in a thinking block before it, or in the call if no thinking was asked', () => {
    const signed = [call(0, { signature: 'google:x' }), grow(0, '{}')]
    for (const ask of [thinking, omitting]) {
      expect(stream(signed, ask).blocks).toEqual([
        '+0 thinking',
        '0 signature_delta google:x',
        '-0',
        '+1 tool_use id0 f0',
        '1 input_json_delta {}',
        '-1',
      ])
    }
    expect(stream(signed).blocks).toEqual([
      '+0 tool_use id0 f0 {"google":{"thought_signature":"x"}}',
      '0 input_json_delta {}',
      '-0',
    ])
  })

  test('a call id outside the protocol’s alphabet is encoded', () => {
    expect(stream([call(0, { id: 'f:0!' })]).blocks[0]).toBe('+0 tool_use tpk_ZjowIQ f0')
  })
})

const reasons = [
  ['stop', false, 'end_turn'],
  ['stop', true, 'tool_use'],
  ['tool-calls', true, 'tool_use'],
  ['tool-calls', false, 'end_turn'],
  ['length', true, 'max_tokens'],
  ['refusal', false, 'refusal'],
  ['pause', false, 'pause_turn'],
] as const

describe('the stop reason', () => {
  test.each(reasons)('the finish %s is written as its stop_reason, with calls: %p', (reason, calls, written) => {
    const { end } = stream([...(calls ? [call(0)] : [say('a')]), finish(reason)])
    expect(end).toMatchObject({ delta: { stop_reason: written } })
  })

  test('the stop sequence that ended the reply is named', () => {
    const { end } = stream([say('a'), finish('stop-sequence', { stopSequence: 'END' })])
    expect(end).toMatchObject({ delta: { stop_reason: 'stop_sequence', stop_sequence: 'END' } })
  })
})

const whole = (blocks: readonly AssistantBlock[], more: Partial<Choice> = {}, ask = plain) => {
  const reply = { choices: [{ blocks, finish: 'stop', ...more } as const], usage: { input: 5, output: 2 } }
  return JSON.parse(Buffer.from(writeAnswer(ask, reply, name)).toString()) as JsonObject
}
const text: AssistantBlock = { kind: 'text', text: 'Hi' }
const made: AssistantBlock = { kind: 'tool-call', id: 'a', name: 'f', argumentsText: '{"n":9007199254740993}' }

describe('a whole answer', () => {
  test('a whole answer is written as a message', () => {
    expect(whole([text])).toEqual({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'ours',
      container: null,
      // No `citations: null`: clients that expect a list would fail to parse the whole answer.
      content: [{ type: 'text', text: 'Hi' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      stop_details: null,
      usage: expect.objectContaining({ input_tokens: 5, output_tokens: 2 }),
    })
  })

  test('an answer with calls stops with tool_use and keeps the digits of large numbers', () => {
    const reply = { choices: [{ blocks: [made], finish: 'stop' as const }], usage: undefined }
    const written = Buffer.from(writeAnswer(plain, reply, name)).toString()
    expect(written).toContain('"input":{"n":9007199254740993}')
    expect(written).toContain('"stop_reason":"tool_use"')
    expect(JSON.parse(written)).toMatchObject({ usage: { input_tokens: 2 } })
  })

  test('arguments that are not a JSON object are kept as unparsed_arguments', () => {
    const broken = { ...made, argumentsText: '{"a":' }
    expect(whole([broken])['content']).toMatchObject([{ input: { unparsed_arguments: '{"a":' } }])
  })

  test('the signature of a call is in a thinking block before it, or in the call if no thinking was asked', () => {
    const written = (ask: typeof plain) => whole([{ ...made, signature: 'google:x' }], {}, ask)['content']
    const before = { type: 'thinking', thinking: '', signature: 'google:x' }
    expect(written(thinking)).toEqual([before, expect.not.objectContaining({ extra_content: expect.anything() })])
    expect(written(plain)).toMatchObject([{ type: 'tool_use', extra_content: { google: { thought_signature: 'x' } } }])
  })

  test('thinking is shown, omitted or left out as the client asked', () => {
    const thought: AssistantBlock = { kind: 'thinking', text: 'Hm', signature: 'Eq' }
    const shown = (ask: typeof plain) => whole([thought, { kind: 'thinking', text: 'x' }, text], {}, ask)['content']
    expect(shown(plain)).toMatchObject([{ type: 'text' }])
    expect(shown(thinking)).toMatchObject([
      { thinking: 'Hm', signature: 'Eq' },
      { thinking: 'x', signature: '' },
      { type: 'text' },
    ])
    expect(shown(omitting)).toMatchObject([{ thinking: '', signature: 'Eq' }, { type: 'text' }])
  })

  test('a refusal is written as text with the stop_reason refusal', () => {
    expect(whole([{ kind: 'refusal', text: 'No.' }])).toMatchObject({
      content: [{ type: 'text', text: 'No.' }],
      stop_reason: 'refusal',
    })
  })
})
