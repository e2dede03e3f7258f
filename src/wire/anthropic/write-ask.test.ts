import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import type { AssistantBlock, Tool, ToolResultBlock, Turn, UserBlock } from '../../capabilities/conversation.ts'
import { assistant, newLadder, said, tool, user, write } from './testing.ts'
import type { AskTarget } from './write-ask.ts'

const isNew = { efforts: newLadder }

const system = (text: string): Turn => ({ role: 'system', blocks: [said(text)] })
const call = (id: string): AssistantBlock => ({ kind: 'tool-call', id, name: 'f', argumentsText: '{"a":1}' })
const result = (callId: string, text = 'done'): ToolResultBlock => ({
  kind: 'tool-result',
  callId,
  blocks: [said(text)],
  isError: false,
})
const messages = (turns: readonly Turn[], more: Partial<AskTarget> = {}) => write({ turns }, more)['messages']
const text = (text: string) => ({ type: 'text', text })
const use = (id: string) => ({ type: 'tool_use', id, name: 'f', input: { a: 1 } })
const answer = (id: string, words = 'done') => ({ type: 'tool_result', tool_use_id: id, content: [text(words)] })
const lost = (id: string) => ({
  type: 'tool_result',
  tool_use_id: id,
  content: 'There is no result of this call.',
  is_error: true,
})

test('a plain conversation is written with the model, its cap, stream and messages', () => {
  expect(write({}, { stream: true })).toEqual({
    model: 'theirs',
    max_tokens: 64_000,
    stream: true,
    messages: [{ role: 'user', content: [text('Hi')] }],
  })
})

test('seed, logprobs and penalties are left out', () => {
  expect(write({ seed: 1, logprobs: 2, presencePenalty: 1, frequencyPenalty: 1 })).toEqual(write())
})

test.each([
  [undefined, 64_000],
  [100, 100],
  [100_000, 64_000],
])('an output cap of %p is written as max_tokens %p', (outputTokensMax, written) => {
  expect(write(outputTokensMax === undefined ? {} : { outputTokensMax })['max_tokens']).toBe(written)
})

test('empty stop sequences are dropped, and the user label is namespaced', () => {
  expect(write({ stop: ['END', ''], user: 'ann' })).toMatchObject({
    stop_sequences: ['END'],
    metadata: { user_id: 'mine/ann' },
  })
  expect(write({ stop: [''] })).not.toHaveProperty('stop_sequences')
})

test.each([[[' ']], [['  \n']], [['END', '\t']]])('a stop sequence of only white space is refused: %j', (stop) => {
  const refused = expect(() => write({ stop }))
  refused.toThrow("Invalid 'stop'")
  refused.toThrow(expect.objectContaining({ kind: 'bad-request', details: expect.objectContaining({ param: 'stop' }) }))
})

describe('the order that the vendor enforces', () => {
  test('all results of a turn are written in one message, before any text', () => {
    const turns = [
      user(said('Hi')),
      assistant(said('Wait'), call('a'), call('b')),
      user(said('And?'), result('b', 'B')),
      system('Be brief.'),
      user(result('a', 'A'), said('Now?')),
    ]
    expect(messages(turns, isNew)).toEqual([
      { role: 'user', content: [text('Hi')] },
      { role: 'assistant', content: [text('Wait'), use('a'), use('b')] },
      { role: 'user', content: [answer('a', 'A'), answer('b', 'B'), text('And?'), text('Now?')] },
      { role: 'system', content: [text('Be brief.')] },
    ])
  })

  test('a call without a result gets an error result, and a result without a call becomes text', () => {
    expect(
      messages([user(said('Hi'), result('x', 'stray')), assistant(call('a'), call('b')), user(result('b'))]),
    ).toEqual([
      { role: 'user', content: [text('Hi'), text('stray')] },
      { role: 'assistant', content: [use('a'), use('b')] },
      { role: 'user', content: [lost('a'), answer('b')] },
    ])
    expect(messages([user(said('Hi')), assistant(call('a')), assistant(said('Well')), user(said('So?'))])).toEqual([
      { role: 'user', content: [text('Hi')] },
      { role: 'assistant', content: [use('a')] },
      { role: 'user', content: [lost('a')] },
      { role: 'assistant', content: [text('Well')] },
      { role: 'user', content: [text('So?')] },
    ])
    expect(messages([user(said('Hi')), assistant(call('a'))])).toMatchObject([{}, {}, { content: [lost('a')] }])
  })

  test('call ids are encoded in the vendor’s alphabet and made unique', () => {
    const turns = [
      user(said('Hi')),
      assistant(call('f:0'), call('f:0')),
      user(result('f:0', 'A'), result('f:0', 'B')),
      assistant(call('f:0')),
      user(result('f:0', 'C')),
    ]
    expect(messages(turns)).toEqual([
      { role: 'user', content: [text('Hi')] },
      { role: 'assistant', content: [use('tpk_Zjow'), use('tpk_Zjow_2')] },
      { role: 'user', content: [answer('tpk_Zjow', 'A'), answer('tpk_Zjow_2', 'B')] },
      { role: 'assistant', content: [use('tpk_Zjow_3')] },
      { role: 'user', content: [answer('tpk_Zjow_3', 'C')] },
    ])
  })

  test('the first message is always a user’s', () => {
    expect(messages([assistant(said('Hello')), user(said('Hi'))])).toMatchObject([
      { role: 'user' },
      { role: 'assistant' },
      { role: 'user', content: [text('Hi')] },
    ])
    expect(messages([])).toMatchObject([{ role: 'user' }])
  })

  test('a prefill loses its trailing space, and newer models get a user message after it', () => {
    const turns = [user(said('Hi')), assistant(said('Once upon '))]
    expect(messages(turns)).toMatchObject([{}, { role: 'assistant', content: [text('Once upon')] }])
    expect(messages(turns, isNew)).toMatchObject([{}, {}, { role: 'user', content: [text('Go on.')] }])
  })

  test('blank texts, and turns of nothing but blank texts, are dropped', () => {
    const empty = assistant(said(' '), { kind: 'refusal', text: '' })
    expect(messages([user(said('Hi'), said('')), empty, user(said('So?'))])).toEqual([
      { role: 'user', content: [text('Hi'), text('So?')] },
    ])
  })
})

describe('instructions', () => {
  test('system turns before the first user turn join the system field', () => {
    expect(write({ system: [said('a'), said('')], turns: [system('b'), user(said('Hi'))] })).toMatchObject({
      system: [text('a'), text('b')],
      messages: [{ role: 'user', content: [text('Hi')] }],
    })
  })

  test('instructions in mid-conversation become tagged user text for older models', () => {
    expect(messages([user(said('Hi')), system('Be brief.')])).toEqual([
      { role: 'user', content: [text('Hi'), text('<system>\nBe brief.\n</system>')] },
    ])
  })
})

const shown = (block: UserBlock) => messages([user(block)])
const bytes = (mediaType: string, base64 = 'SGk=') => ({ kind: 'bytes' as const, mediaType, base64 })
const png = 'iVBORw0KGgo='

describe('media in a user turn', () => {
  test.each([
    [bytes('image/jpg'), { type: 'base64', media_type: 'image/jpeg', data: 'SGk=' }],
    [bytes('image/jpeg', png), { type: 'base64', media_type: 'image/png', data: png }],
    [
      { kind: 'url' as const, url: 'https://x' },
      { type: 'url', url: 'https://x' },
    ],
  ])('the image %j is written with its source', (media, source) => {
    expect(shown({ kind: 'image', media })).toMatchObject([{ content: [{ type: 'image', source }] }])
  })

  test.each([
    [bytes('application/pdf'), { type: 'base64', media_type: 'application/pdf', data: 'SGk=' }],
    [bytes('text/markdown'), { type: 'text', media_type: 'text/plain', data: 'Hi' }],
    [
      { kind: 'text' as const, text: 'Hi' },
      { type: 'text', media_type: 'text/plain', data: 'Hi' },
    ],
  ])('the document %j is written with its source, title, context and citations', (media, source) => {
    const block = { kind: 'document' as const, media, title: 'T', context: 'C', isCited: true }
    const facts = { title: 'T', context: 'C', citations: { enabled: true } }
    expect(shown(block)).toMatchObject([{ content: [{ type: 'document', source, ...facts }] }])
  })

  test.each([
    ['audio', { kind: 'audio', media: bytes('audio/wav') }],
    ['video', { kind: 'video', media: bytes('video/mp4') }],
    ['files', { kind: 'document', media: bytes('application/zip') }],
    ['file', { kind: 'image', media: { kind: 'file', id: 'file-1' } }],
  ] as const)('unsupported media are refused with a message that names %s', (word, block) => {
    expect(() => shown(block)).toThrow(word)
  })
})

describe('thinking of earlier turns', () => {
  test('only redacted thinking and thinking that the vendor itself signed are sent back', () => {
    const turn = assistant(
      { kind: 'thinking', text: 'Hm', signature: 'Eq' },
      { kind: 'thinking', text: 'unsigned' },
      { kind: 'thinking', text: 'other', signature: 'google:x' },
      { kind: 'thinking-redacted', data: 'x' },
      said('Hi'),
    )
    expect(messages([user(said('Hi')), turn, user(said('So?'))])).toMatchObject([
      {},
      {
        content: [
          { type: 'thinking', thinking: 'Hm', signature: 'Eq' },
          { type: 'redacted_thinking', data: 'x' },
          text('Hi'),
        ],
      },
      {},
    ])
  })
})

const search = (usesMax?: number) =>
  write({ hostedTools: [{ kind: 'web-search', ...(usesMax !== undefined && { usesMax }) }] })['tools']

describe('tools', () => {
  test('tool schemas are written as plain objects, and strict where that was asked for', () => {
    const loose: Tool = { name: 'g', description: 'd', schema: { anyOf: [], properties: { a: {} } } }
    expect(write({ tools: [tool, loose, { ...tool, name: 'h', isStrict: true }] })['tools']).toEqual([
      { name: 'f', input_schema: { type: 'object', properties: {} } },
      { name: 'g', description: 'd', input_schema: { type: 'object', properties: { a: {} } } },
      { name: 'h', strict: true, input_schema: { type: 'object', properties: {}, additionalProperties: false } },
    ])
  })

  test('max_uses of a hosted search is capped at the number of searches held for', () => {
    expect(search()).toEqual([{ type: 'web_search_20250305', name: 'web_search', max_uses: 5 }])
    expect(search(3)).toMatchObject([{ max_uses: 3 }])
    expect(search(9)).toMatchObject([{ max_uses: 5 }])
  })

  test.each([
    [{}, undefined],
    [{ toolChoice: 'auto' }, { type: 'auto' }],
    [{ toolChoice: 'required' }, { type: 'any' }],
    [{ toolChoice: 'none', parallelTools: false }, { type: 'none' }],
    [
      { toolChoice: { name: 'f' }, parallelTools: false },
      { type: 'tool', name: 'f', disable_parallel_tool_use: true },
    ],
    [{ parallelTools: false }, { type: 'auto', disable_parallel_tool_use: true }],
    [{ parallelTools: true }, undefined],
  ] as const)('the tool choice %j is translated, and left out where there are no tools', (fields, choice) => {
    expect(write({ ...fields, tools: [tool] })['tool_choice']).toEqual(choice)
    expect(write(fields)).not.toHaveProperty('tool_choice')
  })

  test.each([
    [{ toolChoice: 'required' }, { type: 'auto' }, 'Answer by calling one of the tools, not in words.'],
    [
      { toolChoice: { name: 'f' }, parallelTools: false },
      { type: 'auto', disable_parallel_tool_use: true },
      'Answer by calling the tool f, not in words.',
    ],
  ] as const)('a model that cannot be forced is asked in words: %j', (fields, choice, text) => {
    const system = [said('Be brief.')]
    const body = write({ ...fields, system, tools: [tool] }, { rules: ['refuses-forced-calls'] })
    expect(body).toMatchObject({
      tool_choice: choice,
      system: [
        { type: 'text', text: 'Be brief.' },
        { type: 'text', text },
      ],
    })
    expect(write({ ...fields, system }, { rules: ['refuses-forced-calls'] })).toEqual(write({ system }))
    const searching = write({ ...fields, hostedTools: [{ kind: 'web-search' }] }, { rules: ['refuses-forced-calls'] })
    expect(searching).toMatchObject({ tool_choice: choice, system: [{ type: 'text', text }] })
  })

  test('tools that were called but are no longer offered are listed with tool_choice none', () => {
    expect(write({ turns: [user(said('Hi')), assistant(call('a')), user(result('a'))] })).toMatchObject({
      tools: [{ name: 'f', input_schema: { type: 'object' } }],
      tool_choice: { type: 'none' },
    })
  })
})

const hinted = (text: string, cache: '5m' | '1h') => ({ ...said(text), cache })
const marksOf = (body: JsonObject) => JSON.stringify(body).match(/"cache_control":\{[^}]*\}/g) ?? []

describe('cache hints', () => {
  test('cache hints are written on the blocks that carry them', () => {
    const body = write({
      tools: [{ ...tool, cache: '1h' }],
      system: [hinted('a', '1h')],
      turns: [user(hinted('b', '5m'))],
    })
    expect(marksOf(body)).toEqual([
      '"cache_control":{"type":"ephemeral","ttl":"1h"}',
      '"cache_control":{"type":"ephemeral"}',
      '"cache_control":{"type":"ephemeral","ttl":"1h"}',
    ])
  })

  test('only the last four cache hints are kept, and none after a short one is long', () => {
    const blocks = [1, 2, 3, 4, 5].map((at) => hinted(String(at), at === 3 ? '5m' : '1h'))
    const [turn] = write({ turns: [user(...blocks)] })['messages'] as readonly { content: JsonObject[] }[]
    expect(turn?.content.map((block) => block['cache_control'])).toEqual([
      undefined,
      { type: 'ephemeral', ttl: '1h' },
      { type: 'ephemeral' },
      { type: 'ephemeral' },
      { type: 'ephemeral' },
    ])
  })
})

const strictly = (name: string, properties: JsonObject, required: readonly string[] = []): Tool => {
  return { name, schema: { type: 'object', properties, required }, isStrict: true }
}
const fields = (count: number, schema: JsonObject) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, schema]))

describe('the vendor’s limits on strict tools', () => {
  const many = (count: number) => Array.from({ length: count }, (_, at) => strictly(`f${at}`, {}))
  const text = { type: 'string' }
  const deep = { type: 'array', items: { type: 'object', properties: fields(25, text), required: [] } }
  const maybe = { anyOf: [text, { type: 'null' }] }
  const all = (count: number) => Object.keys(fields(count, text))

  test.each([
    ['20 tools', many(20), true],
    ['21 tools', many(21), false],
    ['24 optional properties', [strictly('f', fields(24, text))], true],
    ['25 optional properties in two tools', [strictly('f', fields(20, text)), strictly('g', fields(5, text))], false],
    ['25 optional properties inside a list', [strictly('f', { deep }, ['deep'])], false],
    ['40 required properties', [strictly('f', fields(40, text), all(40))], true],
    ['16 properties of several types', [strictly('f', fields(16, maybe), all(16))], true],
    ['17 properties of several types', [strictly('f', fields(17, { type: ['string', 'null'] }), all(17))], false],
  ])('tools stay strict within the limits and lose strict beyond them: %s', (_what, tools, isHeld) => {
    const loose: Tool = { name: 'loose', schema: { type: 'object', properties: fields(99, maybe) } }
    const written = write({ tools: [...tools, loose] })['tools'] as JsonObject[]
    expect(new Set(written.slice(0, -1).map(({ strict }) => strict))).toEqual(new Set([isHeld ? true : undefined]))
    expect(written).toHaveLength(tools.length + 1)
    if (!isHeld) expect(written[0]?.['input_schema']).toEqual(tools[0]?.schema)
  })

  const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } }, required: ['next'] }
  const shared = { type: 'object', properties: { left: { $ref: '#/$defs/leaf' }, right: { $ref: '#/$defs/leaf' } } }
  const ofNodes = {
    type: 'object',
    properties: { first: { $ref: '#/$defs/node' } },
    required: ['first'],
    $defs: { node },
  }

  const chain = Array.from({ length: 2_000 }, (_, at) => {
    return [`d${at}`, { type: 'object', properties: { a: { $ref: `#/$defs/d${at + 1}` } }, required: ['a'] }] as const
  })
  const ofChain = { ...ofNodes, properties: { first: { $ref: '#/$defs/d0' } }, $defs: Object.fromEntries(chain) }

  test.each([
    ['through a definition', ofNodes, false],
    ['or leads too deep to tell', ofChain, false],
    ['through its root', { type: 'object', properties: { kids: { type: 'array', items: { $ref: '#' } } } }, false],
    ['not if a definition is only used twice', { ...shared, $defs: { leaf: text } }, true],
    ['not if a reference points nowhere', { type: 'object', properties: { gone: { $ref: '#/$defs/gone' } } }, true],
  ])('a tool loses strict only if its schema contains itself: %s', (_how, schema, isHeld) => {
    const [written] = write({ tools: [{ name: 'f', schema, isStrict: true }] })['tools'] as JsonObject[]
    expect(written?.['strict']).toBe(isHeld ? true : undefined)
    if (!isHeld) expect(written?.['input_schema']).toEqual(schema)
  })

  test('a tool whose objects have free names is not strict, because they would have to stay empty', () => {
    const byName = { type: 'object', additionalProperties: { type: 'integer' } }
    const schema = { type: 'object', properties: { byName }, required: ['byName'] }
    const tools = [{ name: 'free', schema, isStrict: true }, strictly('f', {})]
    expect(write({ tools })['tools']).toEqual([
      { name: 'free', input_schema: schema },
      expect.objectContaining({ name: 'f', strict: true }),
    ])
  })

  test('a recursive answer schema is put into the instructions, while tools stay strict', () => {
    const asked = write({ format: { kind: 'schema', schema: ofNodes }, tools: [strictly('f', {})] })
    expect(asked).not.toHaveProperty('output_config')
    const words = 'Answer with JSON of this schema and nothing else: no words around it, no code fence.'
    expect(asked['system']).toEqual([{ type: 'text', text: `${words}\n${JSON.stringify(ofNodes)}` }])
    expect(asked['tools']).toMatchObject([{ strict: true }])
  })

  test('the schema of the answer counts towards the limits on strict tools', () => {
    const format = { kind: 'schema', schema: { type: 'object', properties: fields(20, text) } } as const
    const [written] = write({ format, tools: [strictly('f', fields(5, text))] })['tools'] as JsonObject[]
    expect(written).not.toHaveProperty('strict')
  })
})

test('instructions without messages are the user’s message', () => {
  const alone = write({ system: [said('Write a poem.'), said('Rhyme.')], turns: [] })
  expect(alone['messages']).toEqual([{ role: 'user', content: [text('Write a poem.'), text('Rhyme.')] }])
  expect(alone).not.toHaveProperty('system')
  expect(write({ turns: [system('Write a poem.')] })['messages']).toEqual(
    write({ system: [said('Write a poem.')], turns: [] })['messages'],
  )
})
