import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { EventSplitter } from '../../base/sse.ts'
import type { JsonObject } from '../../base/json.ts'
import type { ChatTraits } from '../../capabilities/chat.ts'
import { markGoogle, type Conversation, type Reply, type ReplyEvent } from '../../capabilities/conversation.ts'
import { openaiChat } from './chat.ts'
import { readAnswer } from './read-answer.ts'
import { openReader } from './reply-reader.ts'
import { writeAsk, type TranslationTarget } from './write-ask.ts'

const traits: ChatTraits = {
  id: 'm',
  contextTokens: 100_000,
  outputTokensMax: 1_000,
  choicesMax: 8,
  reasoning: false,
  efforts: [],
  sells: () => true,
}
const target: TranslationTarget = {
  upstreamModel: 'theirs',
  reasoning: false,
  efforts: ['low', 'medium', 'high'],
  takesThoughts: true,
  thinkingSwitch: 'effort',
  outputCap: 'max_tokens',
  usageInStream: 'asked',
  storesByDefault: false,
  namespaced: (label) => label,
}
const name = { requestId: 'req_0123', createdAt: 1_700_000_000_000 }

function askOf(body: JsonObject) {
  return openaiChat.readAsk({ body, files: [], bodyBytes: 1_000, header: () => null }, () => traits)
}

function conversationOf(body: JsonObject): Conversation {
  return openaiChat.readConversation(askOf({ model: 'm', ...body }))
}

const user = { role: 'user', content: 'Hi' }
const plainAsk = askOf({ model: 'm', messages: [user] })
const streamAsk = askOf({ model: 'm', messages: [user], stream: true, stream_options: { include_usage: true } })
const plain: Conversation = {
  system: [],
  turns: [{ role: 'user', blocks: [{ kind: 'text', text: 'Hi' }] }],
  tools: [],
  hostedTools: [],
  stop: [],
}

describe('what a request means', () => {
  test('leading instructions stand apart, later ones keep their place', () => {
    const { system, turns } = conversationOf({
      messages: [
        { role: 'system', content: 'a' },
        { role: 'developer', content: [{ type: 'text', text: 'b' }] },
        user,
        { role: 'system', content: 'c' },
        user,
      ],
    })
    expect(system.map(({ text }) => text)).toEqual(['a', 'b'])
    expect(turns.map(({ role }) => role)).toEqual(['user', 'system', 'user'])
  })

  test('results of parallel calls and the words after them are one turn', () => {
    const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{"a":1}' } })
    const { turns } = conversationOf({
      messages: [
        user,
        { role: 'assistant', content: '', tool_calls: [call('call_1'), call('call_2')] },
        { role: 'tool', tool_call_id: 'call_1', content: 'one' },
        { role: 'tool', tool_call_id: 'call_2', content: [{ type: 'text', text: 'two' }] },
        user,
      ],
    })
    expect(turns[1]?.blocks).toEqual([
      { kind: 'tool-call', id: 'call_1', name: 'f', argumentsText: '{"a":1}' },
      { kind: 'tool-call', id: 'call_2', name: 'f', argumentsText: '{"a":1}' },
    ])
    expect(turns[2]?.blocks.map(({ kind }) => kind)).toEqual(['tool-result', 'tool-result', 'text'])
  })

  test('thoughts come back with their signatures, a call with its own', () => {
    const { turns } = conversationOf({
      messages: [
        user,
        {
          role: 'assistant',
          content: 'Well',
          thinking_blocks: [
            { type: 'thinking', thinking: 'hm', signature: 'sig' },
            { type: 'redacted_thinking', data: 'x' },
          ],
          tool_calls: [
            {
              id: 'c',
              type: 'function',
              function: { name: 'f', arguments: '' },
              extra_content: { google: { thought_signature: 'g' } },
            },
          ],
        },
      ],
    })
    expect(turns[1]?.blocks).toEqual([
      { kind: 'thinking', text: 'hm', signature: 'sig' },
      { kind: 'thinking-redacted', data: 'x' },
      { kind: 'text', text: 'Well' },
      { kind: 'tool-call', id: 'c', name: 'f', argumentsText: '{}', signature: markGoogle('g') },
    ])
  })

  test('media by address and by value', () => {
    const { turns } = conversationOf({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image_url', image_url: { url: 'https://h/a.png', detail: 'low' } },
            { type: 'image_url', image_url: { url: 'data:image/PNG;base64,AAAA' } },
            { type: 'input_audio', input_audio: { data: 'BBBB', format: 'wav' } },
            { type: 'file', file: { file_data: 'data:application/pdf;base64,CCCC', filename: 'a.pdf' } },
          ],
        },
      ],
    })
    expect(turns[0]?.blocks).toEqual([
      { kind: 'image', media: { kind: 'url', url: 'https://h/a.png' }, detail: 'low' },
      { kind: 'image', media: { kind: 'bytes', mediaType: 'image/png', base64: 'AAAA' } },
      { kind: 'audio', media: { kind: 'bytes', mediaType: 'audio/wav', base64: 'BBBB' } },
      { kind: 'document', media: { kind: 'bytes', mediaType: 'application/pdf', base64: 'CCCC' }, title: 'a.pdf' },
    ])
  })

  test.each([
    [
      { messages: [{ role: 'user', content: [{ type: 'video', video: ['https://h/1.png'] }] }] },
      'messages[0].content[0].video',
    ],
    [{ messages: [user], tools: [{ type: 'custom', custom: { name: 'f' } }] }, 'tools[0].type'],
    [
      {
        messages: [
          user,
          { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '[1]' } }] },
        ],
      },
      'messages[1].tool_calls[0].function.arguments',
    ],
    [
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png,xx' } }] }] },
      'messages[0].content[0].image_url.url',
    ],
  ])('what no other protocol takes is refused by its field: %j', (body, param) => {
    expect(() => conversationOf(body as JsonObject)).toThrow(
      expect.objectContaining({ kind: 'bad-request', details: expect.objectContaining({ param }) }),
    )
  })

  test('allowed tools leave the others out', () => {
    const tool = (named: string) => ({ type: 'function', function: { name: named } })
    const { tools, toolChoice } = conversationOf({
      messages: [user],
      tools: [tool('a'), tool('b')],
      tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [tool('b')] } },
    })
    expect(tools.map((one) => one.name)).toEqual(['b'])
    expect(toolChoice).toBe('required')
  })
})

describe('what a vendor is asked', () => {
  const written = (conversation: Partial<Conversation>, to: Partial<TranslationTarget> = {}) =>
    JSON.parse(writeAsk(plainAsk, { ...plain, ...conversation }, { ...target, ...to })) as Record<string, unknown>

  test('a model of the reasoning class gets no sampling, a developer and its own cap', () => {
    const body = written(
      { system: [{ kind: 'text', text: 's' }], temperature: 0.3, stop: ['x'], outputTokensMax: 9 },
      { reasoning: true, outputCap: 'either' },
    )
    expect(body).toEqual({
      model: 'theirs',
      messages: [
        { role: 'developer', content: 's' },
        { role: 'user', content: 'Hi' },
      ],
      max_completion_tokens: 9,
    })
  })

  test('pictures in a result follow in a message of their own', () => {
    const image = { kind: 'image', media: { kind: 'url', url: 'https://h/a.png' } } as const
    const body = written({
      turns: [
        ...plain.turns,
        { role: 'assistant', blocks: [{ kind: 'tool-call', id: 'c', name: 'f', argumentsText: '{}' }] },
        {
          role: 'user',
          blocks: [
            { kind: 'tool-result', callId: 'c', isError: true, blocks: [{ kind: 'text', text: 'no' }, image] },
            { kind: 'text', text: 'Go on' },
          ],
        },
      ],
    })
    expect((body['messages'] as JsonObject[]).slice(2)).toEqual([
      { role: 'tool', tool_call_id: 'c', content: 'Error: no' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Attached to the result of c:' },
          { type: 'image_url', image_url: { url: 'https://h/a.png' } },
          { type: 'text', text: 'Go on' },
        ],
      },
    ])
  })

  test.each([
    [{ effort: 'max', isShown: true }, 'high'],
    [{ effort: 'minimal', isShown: true }, 'low'],
    [{ budget: 1_024, isShown: true }, 'low'],
    [{ budget: 31_999, isShown: true }, 'high'],
    [{ effort: 'none', isShown: false }, undefined],
  ] as const)('%j is the effort %p', (thinking, effort) => {
    expect(written({ thinking })['reasoning_effort']).toBe(effort)
  })
})

const text = fc.string({ minLength: 1, maxLength: 20 })
const id = fc.stringMatching(/^[A-Za-z0-9_-]{1,20}$/)
const object = fc.dictionary(id, fc.oneof(fc.string(), fc.integer(), fc.boolean()), {
  maxKeys: 3,
  noNullPrototype: true,
})
const call = fc.record({
  kind: fc.constant('tool-call' as const),
  id,
  name: id,
  argumentsText: object.map((o) => JSON.stringify(o)),
})
const bytes = fc.record({
  kind: fc.constant('bytes' as const),
  mediaType: fc.constantFrom('image/png', 'image/jpeg'),
  base64: fc.uint8Array({ minLength: 1, maxLength: 12 }).map((array) => Buffer.from(array).toString('base64')),
})
const image = fc.record({
  kind: fc.constant('image' as const),
  media: fc.oneof(bytes, fc.record({ kind: fc.constant('url' as const), url: fc.webUrl() })),
})
const said = text.map((value) => ({ kind: 'text' as const, text: value }))
const result = fc.record({
  kind: fc.constant('tool-result' as const),
  callId: id,
  blocks: fc.tuple(said),
  isError: fc.constant(false),
})
const userTurn = fc
  .tuple(fc.array(result, { maxLength: 2 }), fc.array(fc.oneof(said, image), { maxLength: 3 }))
  .map(([results, others]) => ({ role: 'user' as const, blocks: [...results, ...others] }))
  .filter(({ blocks }) => blocks.length > 0)
const assistantTurn = fc
  .tuple(fc.option(said, { nil: undefined }), fc.array(call, { maxLength: 2 }))
  .map(([spoken, calls]) => ({
    role: 'assistant' as const,
    blocks: [...(spoken === undefined ? [] : [spoken]), ...calls],
  }))
  .filter(({ blocks }) => blocks.length > 0)
const conversation = fc.record({
  turns: fc.array(fc.tuple(userTurn, assistantTurn), { minLength: 1, maxLength: 3 }).map((pairs) => pairs.flat()),
  tools: fc.array(fc.record({ name: id, description: text, schema: fc.constant({ type: 'object', properties: {} }) }), {
    minLength: 1,
    maxLength: 3,
  }),
  toolChoice: fc.oneof(fc.constantFrom('auto' as const, 'none' as const, 'required' as const), fc.record({ name: id })),
  outputTokensMax: fc.integer({ min: 1, max: 1_000 }),
  temperature: fc.integer({ min: 0, max: 20 }).map((tenths) => tenths / 10),
  stop: fc.array(text, { maxLength: 4 }),
  seed: fc.integer(),
})

test('translating there and back keeps all that the common protocol can say', () => {
  fc.assert(
    fc.property(conversation, (given) => {
      const meant: Conversation = { ...given, system: [{ kind: 'text', text: 'Be brief.' }], hostedTools: [] }
      const body = JSON.parse(writeAsk(plainAsk, meant, target)) as JsonObject
      expect(openaiChat.readConversation(askOf({ ...body, model: 'm' }))).toEqual(meant)
    }),
  )
})

const usage = fc.record({
  input: fc.nat(1_000),
  cachedInput: fc.nat(1_000),
  output: fc.nat(1_000),
  reasoning: fc.constant(0),
})
const reply = fc.record({
  choices: fc.array(
    fc
      .tuple(fc.option(text, { nil: undefined }), fc.option(text, { nil: undefined }), fc.array(call, { maxLength: 2 }))
      .map(([thought, spoken, calls]): Reply['choices'][number] => ({
        blocks: [
          ...(thought === undefined ? [] : [{ kind: 'thinking' as const, text: thought }]),
          ...(spoken === undefined ? [] : [{ kind: 'text' as const, text: spoken }]),
          ...calls,
        ],
        finish: calls.length > 0 ? 'tool-calls' : 'stop',
      })),
    { minLength: 1, maxLength: 3 },
  ),
  usage,
})

test('a reply written and read again is the same', () => {
  fc.assert(
    fc.property(reply, (given) => {
      const read = readAnswer(openaiChat.writeAnswer(plainAsk, given, name))
      expect(read.choices).toEqual(given.choices)
      expect(read.usage).toMatchObject(given.usage)
    }),
  )
})

/** A reply as the events of its making, in small pieces. */
function eventsOf({ choices, usage: used }: Reply): ReplyEvent[] {
  const events: ReplyEvent[] = [{ kind: 'reply-start' }]
  for (const [choice, { blocks, finish }] of choices.entries()) {
    let calls = 0
    for (const block of blocks) {
      if (block.kind === 'text')
        events.push(...[...block.text].map((piece) => ({ kind: 'text-delta' as const, choice, text: piece })))
      if (block.kind === 'thinking') events.push({ kind: 'thinking-delta', choice, text: block.text })
      if (block.kind === 'tool-call') {
        events.push({ kind: 'tool-call-start', choice, call: calls, id: block.id, name: block.name })
        events.push({ kind: 'tool-call-delta', choice, call: calls, text: block.argumentsText })
        calls++
      }
    }
    events.push({ kind: 'choice-finish', choice, finish })
  }
  if (used !== undefined) events.push({ kind: 'usage-count', usage: used })
  return events
}

test('a stream written and read again, cut anywhere on its way, says the same', () => {
  fc.assert(
    fc.property(reply, fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 20 }), (given, cuts) => {
      const writer = openaiChat.openWriter(streamAsk, name)
      const events = eventsOf(given)
      const written = [...events.map((event) => writer.write([event])), writer.closing(given.usage)]
      const whole = Buffer.concat(written.filter((piece) => piece !== undefined))
      const splitter = new EventSplitter(1_000_000)
      const reader = openReader()
      const read: ReplyEvent[] = []
      for (let at = 0, turn = 0; at < whole.length; turn++) {
        const end = at + (cuts[turn % cuts.length] ?? 1)
        for (const event of splitter.push(whole.subarray(at, end))) read.push(...reader.read(event))
        at = end
      }
      const kept = events.filter(({ kind }) => kind !== 'usage-count')
      expect(read.filter(({ kind }) => kind !== 'usage-count' && kind !== 'reply-end')).toEqual(
        kept.map((event) => (event.kind === 'reply-start' ? { ...event, id: 'chatcmpl-0123' } : event)),
      )
      expect(read.at(-1)).toEqual({ kind: 'reply-end' })
      expect(read.findLast(({ kind }) => kind === 'usage-count')).toMatchObject({ usage: given.usage })
    }),
    { numRuns: 50 },
  )
})

describe('a stream as vendors really send it', () => {
  const read = (...chunks: unknown[]) => {
    const reader = openReader()
    return chunks.flatMap((chunk) => reader.read(Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`)))
  }
  const delta = (tool: JsonObject) => ({ choices: [{ index: 0, delta: { tool_calls: [tool] } }] })

  test('later deltas of a call with an empty id do not begin another', () => {
    const events = read(
      delta({ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '' } }),
      delta({ index: 0, id: '', type: 'function', function: { arguments: '{}' } }),
    )
    expect(events.slice(1)).toEqual([
      { kind: 'tool-call-start', choice: 0, call: 0, id: 'c', name: 'f' },
      { kind: 'tool-call-delta', choice: 0, call: 0, text: '{}' },
    ])
  })

  test('a call is a call although the vendor says stop', () => {
    const events = read(delta({ index: 3, id: 'c', function: { name: 'f', arguments: '{}' } }), {
      choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
    })
    expect(events.at(-1)).toEqual({ kind: 'choice-finish', choice: 0, finish: 'tool-calls' })
  })

  test('an error, and what cannot be read, is a failure', () => {
    expect(read({ error: { message: 'no' } })[0]).toMatchObject({ kind: 'failure', error: { message: 'no' } })
    expect(openReader().read(Buffer.from('data: {"a\n\n'))[0]).toMatchObject({ kind: 'failure' })
  })

  test('a comment is a sign of life', () => {
    expect(openReader().read(Buffer.from(': ping\n\n'))).toEqual([{ kind: 'heartbeat' }])
  })
})

test('a signature is written with the whole thought that it signs', () => {
  const writer = openaiChat.openWriter(streamAsk, name)
  const bytesOf = (event: ReplyEvent) => Buffer.from(writer.write([event]) ?? '').toString()
  bytesOf({ kind: 'thinking-delta', choice: 0, text: 'a' })
  bytesOf({ kind: 'thinking-delta', choice: 0, text: 'b' })
  expect(bytesOf({ kind: 'thinking-sign', choice: 0, signature: 's' })).toContain(
    '"thinking_blocks":[{"type":"thinking","thinking":"ab","signature":"s"}]',
  )
})
