import { describe, expect, test } from 'bun:test'
import { errorOf } from '../../../test/support/thrown.ts'
import type { JsonObject } from '../../base/json.ts'
import { markGoogle, type Conversation, type ReplyEvent } from '../../capabilities/conversation.ts'
import { plainConversation as plain } from '../../capabilities/testing.ts'
import { openaiChat } from './chat.ts'
import { readAnswer } from './read-answer.ts'
import { openReader } from './reply-reader.ts'
import { askOf, name, plainAsk, streamAsk, target, user } from './testing.ts'
import { writeAsk, type TranslationTarget } from './write-ask.ts'

function conversationOf(body: JsonObject): Conversation {
  return openaiChat.readConversation(askOf({ model: 'm', ...body }))
}

function refusalOf(body: JsonObject): string | undefined {
  return errorOf(() => conversationOf(body)).details.param
}

const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{"a":1}' } })
const only = (mode: string, ...tools: JsonObject[]) => ({ type: 'allowed_tools', allowed_tools: { mode, tools } })
const tool = (named: string) => ({ type: 'function', function: { name: named } })

function written(conversation: Partial<Conversation>, to: Partial<TranslationTarget> = {}): Record<string, unknown> {
  return JSON.parse(writeAsk(plainAsk, { ...plain, ...conversation }, { ...target, ...to })) as Record<string, unknown>
}

function read(...chunks: unknown[]): ReplyEvent[] {
  const reader = openReader()
  return chunks.flatMap((chunk) => reader.read(Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`)))
}

const delta = (written: JsonObject) => ({ choices: [{ index: 0, delta: { tool_calls: [written] } }] })

describe('a request read as a conversation', () => {
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

  test('arguments that were cut off or hold a __proto__ key are kept as unparsed_arguments', () => {
    const cut = { id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":' } }
    const polluting = { id: 'd', type: 'function', function: { name: 'f', arguments: '{"__proto__":0}' } }
    const old = { name: 'f', arguments: '[1]' }
    const { turns } = conversationOf({
      messages: [user, { role: 'assistant', content: null, tool_calls: [cut, polluting], function_call: old }],
    })
    expect(turns[1]?.blocks).toMatchObject([
      { argumentsText: '{"unparsed_arguments":"{\\"a\\":"}' },
      { argumentsText: '{"unparsed_arguments":"{\\"__proto__\\":0}"}' },
      { argumentsText: '{"unparsed_arguments":"[1]"}' },
    ])
  })

  test('thinking and calls are read with their signatures', () => {
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

  test('media are read from URLs and from inline data', () => {
    const { turns } = conversationOf({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image_url', image_url: { url: 'https://h/a.png', detail: 'low' } },
            { type: 'image_url', image_url: { url: 'data:image/PNG;base64,AAAA' } },
            { type: 'input_audio', input_audio: { data: 'BBBB', format: 'wav' } },
            { type: 'file', file: { file_data: 'data:application/pdf;base64,CCCC', filename: 'a.pdf' } },
            { type: 'image_url', image_url: { url: 'DATA:image/png;name=a;x=y;BASE64,DDDD,' } },
          ],
        },
      ],
    })
    expect(turns[0]?.blocks).toEqual(
      [
        { kind: 'image', media: { kind: 'url', url: 'https://h/a.png' }, detail: 'low' },
        { kind: 'image', media: { kind: 'bytes', mediaType: 'image/png', base64: 'AAAA' } },
        { kind: 'audio', media: { kind: 'bytes', mediaType: 'audio/wav', base64: 'BBBB' } },
        { kind: 'document', media: { kind: 'bytes', mediaType: 'application/pdf', base64: 'CCCC' }, title: 'a.pdf' },
        { kind: 'image', media: { kind: 'bytes', mediaType: 'image/png', base64: 'DDDD,' } },
      ].map((block, index) => ({ ...block, at: `messages[0].content[${index}]` })) as never,
    )
  })

  test.each([
    [
      { messages: [{ role: 'user', content: [{ type: 'video', video: ['https://h/1.png'] }] }] },
      'messages[0].content[0].video',
    ],
    [{ messages: [user], tools: [{ type: 'custom', custom: { name: 'f' } }] }, 'tools[0].type'],
    [
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png,xx' } }] }] },
      'messages[0].content[0].image_url.url',
    ],
  ])('content that no other protocol takes is refused by its field: %j', (body, param) => {
    expect(() => conversationOf(body as JsonObject)).toThrow(
      expect.objectContaining({ kind: 'bad-request', details: expect.objectContaining({ param }) }),
    )
  })

  test('legacy functions are read as tools, called one at a time and answered with function_call', () => {
    const functions = [{ name: 'f', description: 'd', parameters: { type: 'object' } }]
    const ask = askOf({ model: 'm', messages: [user], functions, function_call: { name: 'f' }, stream: true })
    expect(openaiChat.readConversation(ask)).toMatchObject({
      tools: [{ name: 'f', description: 'd', schema: { type: 'object' } }],
      toolChoice: { name: 'f' },
      parallelTools: false,
    })
    const block = { kind: 'tool-call', id: 'c', name: 'f', argumentsText: '{}' } as const
    const answer = { choices: [{ blocks: [block], finish: 'tool-calls' as const }], usage: undefined }
    const body = JSON.parse(Buffer.from(openaiChat.writeAnswer(ask, answer, name)).toString()) as JsonObject
    expect(body['choices']).toMatchObject([
      { message: { content: null, function_call: { name: 'f', arguments: '{}' } }, finish_reason: 'function_call' },
    ])
    const writer = openaiChat.openWriter(ask, name)
    const pieces = [
      { kind: 'tool-call-start', choice: 0, call: 0, id: 'c', name: 'f' },
      { kind: 'tool-call-delta', choice: 0, call: 1, text: 'a second one has no place' },
      { kind: 'choice-finish', choice: 0, finish: 'tool-calls' },
    ] as const
    const stream = pieces.map((piece) => Buffer.from(writer.write([piece]) ?? '').toString())
    expect(stream[0]).toContain('"function_call":{"name":"f","arguments":""}')
    expect(stream[1]).toBe('')
    expect(stream[2]).toContain('"finish_reason":"function_call"')
  })

  test('allowed_tools limits the tools that are offered', () => {
    const { tools, toolChoice } = conversationOf({
      messages: [user],
      tools: [tool('a'), tool('b')],
      tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [tool('b')] } },
    })
    expect(tools.map((one) => one.name)).toEqual(['b'])
    expect(toolChoice).toBe('required')
  })

  test.each([
    [only('required', tool('a'), tool('zz')), 'tool_choice.allowed_tools.tools[1]'],
    [only('auto', tool('zz')), 'tool_choice.allowed_tools.tools[0]'],
    [only('required', { type: 'function', name: 'a' }), 'tool_choice.allowed_tools.tools[0]'],
    [only('required'), 'tool_choice.allowed_tools.tools'],
    [{ type: 'function', function: { name: 'zz' } }, 'tool_choice'],
  ])('a choice of a tool that is not offered is refused: %j', (tool_choice, param) => {
    expect(refusalOf({ messages: [user], tools: [tool('a'), tool('b')], tool_choice })).toBe(param)
  })

  test('a function_call that names a function that is not offered is refused', () => {
    const functions = [{ name: 'f' }]
    expect(refusalOf({ messages: [user], functions, function_call: { name: 'zz' } })).toBe('function_call.name')
  })
})

describe('a conversation written for a vendor', () => {
  test('a reasoning model gets a developer message and max_completion_tokens, and no sampling', () => {
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

  test('images in a tool result move to the user message after it', () => {
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

  test('the output cap is at most what the model can produce', () => {
    expect(written({ outputTokensMax: 128_000 }, { outputTokensMax: 16_384 })['max_tokens']).toBe(16_384)
    expect(written({ outputTokensMax: 5 }, { outputTokensMax: 16_384 })['max_tokens']).toBe(5)
  })

  test('overlong call ids are replaced, and too many stops or documents by reference are refused', () => {
    const long = 'x'.repeat(60)
    const body = written({
      turns: [
        { role: 'assistant', blocks: [{ kind: 'tool-call', id: long, name: 'f', argumentsText: '{}' }] },
        { role: 'user', blocks: [{ kind: 'tool-result', callId: long, isError: false, blocks: [] }] },
      ],
    })
    const [made, answered] = body['messages'] as [{ tool_calls: { id: string }[] }, { tool_call_id: string }]
    expect(made.tool_calls[0]?.id).toMatch(/^call_[0-9a-f]{32}$/)
    expect(answered.tool_call_id).toBe(made.tool_calls[0]?.id ?? '')

    expect(() => written({ stop: ['a', 'b', 'c', 'd', 'e'] })).toThrow('at most 4')
    for (const media of [
      { kind: 'url', url: 'https://h/a.pdf' },
      { kind: 'file', id: 'file_1' },
    ] as const) {
      expect(() => written({ turns: [{ role: 'user', blocks: [{ kind: 'document', media }] }] })).toThrow('bytes')
    }
  })

  test.each([
    [{ type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }, true],
    [{ type: 'object', properties: { a: { type: 'string' } }, additionalProperties: false }, undefined],
    [{ type: 'object', properties: {}, required: [] }, undefined],
    [{ type: 'array', items: { type: 'string', pattern: '^a' } }, undefined],
  ])('an answer schema is strict only where it can be: %j', (schema, strict) => {
    const format = written({ format: { kind: 'schema', schema } })['response_format'] as JsonObject
    expect((format['json_schema'] as JsonObject)['strict']).toBe(strict)
  })

  test.each([
    [{ effort: 'max', isShown: true }, 'high'],
    [{ effort: 'minimal', isShown: true }, 'low'],
    [{ budget: 1_024, isShown: true }, 'low'],
    [{ budget: 31_999, isShown: true }, 'high'],
    [{ effort: 'none', isShown: false }, 'low'],
  ] as const)('thinking %j is written as the effort %p', (thinking, effort) => {
    expect(written({ thinking })['reasoning_effort']).toBe(effort)
  })
})

describe('a stream as vendors really send it', () => {
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

  test('calls that share an index are told apart by their ids', () => {
    const events = read(
      delta({ index: 0, id: 'a', function: { name: 'f', arguments: '{"x":' } }),
      delta({ index: 0, id: 'b', function: { name: 'g', arguments: '' } }),
      delta({ index: 0, id: '', function: { arguments: '{}' } }),
      delta({ index: 0, id: 'a', function: { name: 'f', arguments: '1}' } }),
      delta({ index: 0, id: 'odd', function: { arguments: ' ' } }),
    )
    expect(events.slice(1)).toEqual([
      { kind: 'tool-call-start', choice: 0, call: 0, id: 'a', name: 'f' },
      { kind: 'tool-call-delta', choice: 0, call: 0, text: '{"x":' },
      { kind: 'tool-call-start', choice: 0, call: 1, id: 'b', name: 'g' },
      { kind: 'tool-call-delta', choice: 0, call: 1, text: '{}' },
      { kind: 'tool-call-delta', choice: 0, call: 0, text: '1}' },
      { kind: 'tool-call-delta', choice: 0, call: 1, text: ' ' },
    ])
  })

  test('content in parts, as Mistral sends it, is read as thinking and text', () => {
    const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] }
    const more = { type: 'thinking', thinking: [{ type: 'text', text: ', so.' }] }
    const content = [thinking, more, { type: 'reference', reference_ids: [1] }, { type: 'text', text: 'Hi' }]
    expect(read({ choices: [{ index: 0, delta: { content } }] }).slice(1)).toEqual([
      { kind: 'thinking-delta', choice: 0, text: 'Hm, so.' },
      { kind: 'text-delta', choice: 0, text: 'Hi' },
    ])
    const answer = { choices: [{ message: { role: 'assistant', content }, finish_reason: 'stop' }] }
    expect(readAnswer(Buffer.from(JSON.stringify(answer))).choices[0]?.blocks).toEqual([
      { kind: 'thinking', text: 'Hm, so.' },
      { kind: 'text', text: 'Hi' },
    ])
  })

  test('a call without arguments has an empty object as arguments unless it was cut off', () => {
    const tool_calls = ['a', 'b'].map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '' } }))
    const argumentsFor = (finish_reason: string) => {
      const answer = { choices: [{ message: { content: null, tool_calls }, finish_reason }] }
      const { blocks = [] } = readAnswer(Buffer.from(JSON.stringify(answer))).choices[0] ?? {}
      return blocks.map((block) => block.kind === 'tool-call' && block.argumentsText)
    }
    expect(argumentsFor('tool_calls')).toEqual(['{}', '{}'])
    expect(argumentsFor('length')).toEqual(['{}', ''])
  })

  test('a reply with a call finishes with tool-calls even if the vendor says stop', () => {
    const events = read(delta({ index: 3, id: 'c', function: { name: 'f', arguments: '{}' } }), {
      choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
    })
    expect(events.at(-1)).toEqual({ kind: 'choice-finish', choice: 0, finish: 'tool-calls' })
  })

  test('an error event and an unreadable event are failures', () => {
    expect(read({ error: { message: 'no' } })[0]).toMatchObject({ kind: 'failure', error: { message: 'no' } })
    expect(openReader().read(Buffer.from('data: {"a\n\n'))[0]).toMatchObject({ kind: 'failure' })
  })

  test('a comment is read as a heartbeat', () => {
    expect(openReader().read(Buffer.from(': ping\n\n'))).toEqual([{ kind: 'heartbeat' }])
  })
})

test('a signature is written with the whole thinking text that it signs', () => {
  const writer = openaiChat.openWriter(streamAsk, name)
  const bytesOf = (event: ReplyEvent) => Buffer.from(writer.write([event]) ?? '').toString()
  bytesOf({ kind: 'thinking-delta', choice: 0, text: 'a' })
  bytesOf({ kind: 'thinking-delta', choice: 0, text: 'b' })
  bytesOf({ kind: 'thinking-sign', choice: 0, text: 'ab', signature: 's' })
  expect(bytesOf({ kind: 'choice-finish', choice: 0, finish: 'stop' })).toContain(
    '"thinking_blocks":[{"type":"thinking","thinking":"ab","signature":"s"}]',
  )
})
