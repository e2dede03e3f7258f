import { describe, expect, test } from 'bun:test'
import { errorOf } from '../../../test/support/thrown.ts'
import { parseBody, type JsonObject } from '../../base/json.ts'
import { readAsk } from './ask.ts'
import { readConversation } from './read-conversation.ts'

const traits = {
  id: 'm',
  contextTokens: 200_000,
  outputTokensMax: 1_000,
  choicesMax: 1,
  reasoning: false,
  efforts: [],
  sells: () => true,
}

function read(fields: Record<string, unknown>) {
  const text = JSON.stringify({ model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }], ...fields })
  const body = parseBody(text, { depthMax: 128, keysMax: 1_000 }) as JsonObject
  return readConversation(readAsk({ body, files: [], bodyBytes: text.length, header: () => null }, () => traits))
}

function refusal(fields: Record<string, unknown>) {
  return errorOf(() => read(fields)).details.param
}

const text = (text: string, more = {}) => ({ type: 'text', text, ...more })
const user = (...content: unknown[]) => ({ role: 'user', content })
const assistant = (...content: unknown[]) => ({ role: 'assistant', content })
const blocksOf = (...messages: unknown[]): unknown => read({ messages }).turns[0]?.blocks
const systemOf = (system: unknown): unknown => read({ system }).system
const thinkingOf = (fields: Record<string, unknown>): unknown => read(fields).thinking
const said = (text: string) => ({ kind: 'text' as const, text })

describe('instructions', () => {
  test.each([
    ['Be brief.', [said('Be brief.')]],
    ['', []],
    [
      [text('a', { cache_control: { type: 'ephemeral', ttl: '1h' } }), text(''), text('b')],
      [{ ...said('a'), cache: '1h' }, said('b')],
    ],
    [[text('x-anthropic-billing-header: cc_version=2; cc_entrypoint=cli;'), text('You are…')], [said('You are…')]],
    ['x-anthropic-billing-header: cc_version=2;\nBe brief.', [said('Be brief.')]],
  ])('the system field %j is read without empty texts and billing headers', (system, blocks) => {
    expect(systemOf(system)).toEqual(blocks)
  })

  test('leading system messages join the system field, and later ones become turns', () => {
    const system = { role: 'system', content: 'Be brief.' }
    expect(read({ messages: [system, user(text('Hi')), system] })).toMatchObject({
      system: [said('Be brief.')],
      turns: [{ role: 'user' }, { role: 'system', blocks: [said('Be brief.')] }],
    })
  })

  test('a system message between a call and its result moves behind the result', () => {
    const { turns } = read({
      messages: [
        user(text('Hi')),
        assistant({ type: 'tool_use', id: 'a', name: 'f', input: {} }),
        { role: 'system', content: 'Be brief.' },
        user({ type: 'tool_result', tool_use_id: 'a' }),
      ],
    })
    expect(turns.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'system'])
  })
})

describe('turns', () => {
  test('consecutive messages of one role are merged, with tool results first', () => {
    const { turns } = read({
      messages: [
        user(text('Hi')),
        assistant(text('Yes')),
        assistant({ type: 'tool_use', id: 'a', name: 'f', input: { n: 1 } }),
        user(text('And?'), { type: 'tool_result', tool_use_id: 'a', content: 'done', is_error: false }),
        { role: 'user', content: 'Now?' },
      ],
    })
    expect(turns).toEqual([
      { role: 'user', blocks: [said('Hi')] },
      { role: 'assistant', blocks: [said('Yes'), { kind: 'tool-call', id: 'a', name: 'f', argumentsText: '{"n":1}' }] },
      {
        role: 'user',
        blocks: [
          { kind: 'tool-result', callId: 'a', blocks: [said('done')], isError: false, at: 'messages[3].content[1]' },
          said('And?'),
          said('Now?'),
        ],
      },
    ])
  })

  test('empty turns are dropped, and a request without any content is refused', () => {
    const paused = assistant({ type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} })
    expect(read({ messages: [user(text('Hi')), paused, { role: 'user', content: 'Go on' }] }).turns).toEqual([
      { role: 'user', blocks: [said('Hi'), said('Go on')] },
    ])
    expect(refusal({ messages: [user(text(''))] })).toBe('messages')
  })

  test('numbers that a double cannot hold keep their digits in the input of a call', () => {
    const written = JSON.stringify({ messages: [assistant({ type: 'tool_use', id: 'a', name: 'f', input: { n: 7 } })] })
    const body = parseBody(written.replace('7', '9007199254740993'), { depthMax: 9, keysMax: 99 }) as JsonObject
    const ask = readAsk(
      { body: { model: 'm', max_tokens: 1, ...body }, files: [], bodyBytes: 1, header: () => null },
      () => traits,
    )
    expect(readConversation(ask).turns[0]?.blocks).toMatchObject([{ argumentsText: '{"n":9007199254740993}' }])
  })
})

describe('the content of a user turn', () => {
  const source = { type: 'base64', media_type: 'image/png', data: 'AA' }
  const bytes = { kind: 'bytes', mediaType: 'image/png', base64: 'AA' }

  test.each([
    [
      { type: 'image', source },
      { kind: 'image', media: bytes },
    ],
    [
      { type: 'image', source: { type: 'url', url: 'https://x' } },
      { kind: 'image', media: { kind: 'url', url: 'https://x' } },
    ],
    [
      { type: 'image', source: { type: 'file', file_id: 'f' } },
      { kind: 'image', media: { kind: 'file', id: 'f' } },
    ],
    [
      { type: 'document', source: { ...source, media_type: 'application/pdf' }, title: 'T', context: 'C' },
      { kind: 'document', media: { ...bytes, mediaType: 'application/pdf' }, title: 'T', context: 'C' },
    ],
    [
      { type: 'document', source: { type: 'text', data: 'words' }, citations: { enabled: true } },
      { kind: 'document', media: { kind: 'text', text: 'words' }, isCited: true },
    ],
    [
      { type: 'document', source: { type: 'content', content: [text('a'), text('b')] } },
      { kind: 'document', media: { kind: 'text', text: 'a\nb' } },
    ],
    [
      { type: 'search_result', source: 'https://x', title: 'T', content: [text('a')] },
      { kind: 'document', media: { kind: 'text', text: 'a' }, title: 'T', context: 'https://x' },
    ],
    [text('a', { cache_control: { type: 'ephemeral' } }), { ...said('a'), cache: '5m' }],
  ])('the user block %j is read into a neutral block', (block, read) => {
    const place = read.kind === 'text' ? {} : { at: 'messages[0].content[0]' }
    expect(blocksOf(user(block))).toEqual([{ ...read, ...place }])
  })

  test('a tool reference in a result becomes text, and a browser state is left out', () => {
    const content = [
      { type: 'tool_reference', tool_name: 'grep' },
      { type: 'browser_state' },
      { type: 'image', source },
    ]
    expect(blocksOf(user({ type: 'tool_result', tool_use_id: 'a', content, is_error: true }))).toEqual([
      {
        kind: 'tool-result',
        callId: 'a',
        isError: true,
        at: 'messages[0].content[0]',
        blocks: [
          said('The tool grep can be called now.'),
          { kind: 'image', media: bytes, at: 'messages[0].content[0].content[2]' },
        ],
      },
    ])
  })

  test('a tool_removal block is left out of user and system turns', () => {
    const change = { type: 'tool_removal', tool: { type: 'tool_reference', name: 'f' } }
    expect(blocksOf(user(change, text('Hi')))).toEqual([said('Hi')])
    const messages = [user(text('Hi')), { role: 'system', content: [change, text('Be brief.')] }]
    expect(read({ messages }).turns.at(-1)).toEqual({ role: 'system', blocks: [said('Be brief.')] })
  })

  test('a container upload is refused', () => {
    expect(refusal({ messages: [user(text('Hi'), { type: 'container_upload', file_id: 'f' })] })).toBe(
      'messages[0].content[1].type',
    )
  })

  test('MCP servers are refused, while null and an empty list are accepted', () => {
    expect(refusal({ mcp_servers: [{ type: 'url', url: 'https://h/mcp', name: 'h' }] })).toBe('mcp_servers')
    for (const none of [null, []]) expect(read({ mcp_servers: none }).turns).toHaveLength(1)
  })

  test('the container field is ignored', () => {
    for (const container of [null, 'container_1', { skills: [{ type: 'anthropic', skill_id: 'pdf' }] }]) {
      expect(read({ container })).toEqual(read({}))
    }
  })

  test.each([
    ['block type', { messages: [user({ type: 'x'.repeat(3_000) })] }],
    ['kind of thinking', { thinking: { type: 'x'.repeat(3_000) } }],
    ['effort', { output_config: { effort: 'x'.repeat(3_000) } }],
    ['tool type', { tools: [{ type: `${'x'.repeat(3_000)}_20250101`, name: 'f' }] }],
    ['tool choice', { tool_choice: { type: 'tool', name: 'x'.repeat(3_000) } }],
  ])('a refusal quotes at most 100 characters of an invalid %s', (_, fields) => {
    expect(() => read(fields)).toThrow(/x{50}/)
    expect(() => read(fields)).not.toThrow(/x{101}/)
  })

  test('a cache hint on the whole request applies to its last block', () => {
    expect(read({ cache_control: { type: 'ephemeral' } }).turns).toEqual([
      { role: 'user', blocks: [{ ...said('Hi'), cache: '5m' }] },
    ])
  })
})

describe('the content of an assistant turn', () => {
  test('thinking, signatures and citations are kept, and hosted tool results are left out', () => {
    const blocks = blocksOf(
      assistant(
        { type: 'thinking', thinking: 'Hm', signature: 'Eq' },
        { type: 'redacted_thinking', data: 'x' },
        { type: 'thinking', thinking: 'unsigned', signature: '' },
        text('Hi', {
          citations: [{ type: 'web_search_result_location', url: 'https://x', title: 'T', cited_text: 'c' }],
        }),
        { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
      ),
    )
    expect(blocks).toEqual([
      { kind: 'thinking', text: 'Hm', signature: 'Eq' },
      { kind: 'thinking-redacted', data: 'x' },
      { kind: 'thinking', text: 'unsigned' },
      { ...said('Hi'), citations: [{ url: 'https://x', title: 'T', citedText: 'c' }] },
    ])
  })

  test('a signature in a thinking block right before a call, or in the call, is read with the call', () => {
    const carried = { type: 'thinking', thinking: '', signature: 'google:abc' }
    const call = { type: 'tool_use', id: 'tpk_ZjowIQ', name: 'f', input: {} }
    const signed = { ...call, extra_content: { google: { thought_signature: 'abc' } } }
    for (const blocks of [[carried, call], [signed]]) {
      expect(blocksOf(assistant(...blocks))).toEqual([
        { kind: 'tool-call', id: 'f:0!', name: 'f', argumentsText: '{}', signature: 'google:abc' },
      ])
    }
  })
})

describe('tools', () => {
  const schema = { type: 'object', properties: {} }

  test('client tools, web searches and vendor-defined tools that clients run are read', () => {
    const tools = [
      { name: 'f', description: 'd', input_schema: schema, strict: true, cache_control: { type: 'ephemeral' } },
      { type: 'custom', name: 'g', input_schema: schema, defer_loading: true },
      { type: 'web_search_20250305', name: 'web_search', max_uses: 8 },
      { type: 'bash_20250124', name: 'bash' },
      { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool' },
      { type: 'tool_search_tool_bm25_20251119', name: 'tool_search_tool_bm25' },
    ]
    const conversation = read({ tools })
    expect(conversation.hostedTools).toEqual([{ kind: 'web-search', usesMax: 8 }])
    expect(conversation.tools.map(({ name }) => name)).toEqual(['f', 'g', 'bash', 'str_replace_based_edit_tool'])
    expect(conversation.tools[0]).toEqual({ name: 'f', description: 'd', schema, isStrict: true, cache: '5m' })
    expect(conversation.tools[2]?.schema).toMatchObject({ properties: { command: { type: 'string' } } })
  })

  test('deferred tools are offered once they are referenced, called or chosen', () => {
    const tools = ['f', 'g', 'h', 'i', 'never'].map((name) => {
      return { name, input_schema: schema, ...(name !== 'f' && { defer_loading: true }) }
    })
    expect(read({ tools }).tools.map(({ name }) => name)).toEqual(['f'])
    const reference = { type: 'tool_reference', tool_name: 'g' }
    const messages = [
      { role: 'user', content: 'Find me a tool.' },
      {
        role: 'assistant',
        content: [
          { type: 'tool_use', id: 't1', name: 'f', input: {} },
          { type: 'tool_use', id: 't2', name: 'h', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 't1', content: [reference] },
          { type: 'tool_result', tool_use_id: 't2' },
        ],
      },
    ]
    const conversation = read({ tools, messages, tool_choice: { type: 'tool', name: 'i' } })
    expect(conversation.tools.map(({ name }) => name)).toEqual(['f', 'g', 'h', 'i'])
  })

  test.each(['computer_20251124', 'memory_20250818', 'web_fetch_20250910', 'mcp_toolset', 'made_up'])(
    'a tool of type %s is refused in translation',
    (type) => {
      expect(
        refusal({
          tools: [
            { name: 'f', input_schema: schema },
            { type, name: 'x' },
          ],
        }),
      ).toBe('tools[1].type')
    },
  )

  test.each([
    [{ type: 'auto' }, { toolChoice: 'auto' }],
    [
      { type: 'any', disable_parallel_tool_use: true },
      { toolChoice: 'required', parallelTools: false },
    ],
    [{ type: 'tool', name: 'f' }, { toolChoice: { name: 'f' } }],
    [{ type: 'none' }, { toolChoice: 'none' }],
    [{ type: 'tool', name: 'web_search' }, {}],
    [undefined, {}],
  ])('the tool choice %j is read', (tool_choice, choice) => {
    const tools = [
      { name: 'f', input_schema: schema },
      { type: 'web_search_20250305', name: 'web_search' },
    ]
    const { toolChoice, parallelTools } = read({ tools, tool_choice })
    expect(JSON.stringify({ toolChoice, parallelTools })).toBe(JSON.stringify(choice))
  })

  test('a tool choice that no offered tool can satisfy is refused', () => {
    const tools = [{ name: 'f', input_schema: schema }]
    expect(refusal({ tools, tool_choice: { type: 'tool', name: 'zz' } })).toBe('tool_choice.name')
    expect(refusal({ tool_choice: { type: 'tool', name: 'zz' } })).toBe('tool_choice.name')
    expect(refusal({ tools: [], tool_choice: { type: 'any' } })).toBe('tool_choice')
    expect(read({ tools: [], tool_choice: { type: 'auto' } }).toolChoice).toBe('auto')
  })

  test.each(['a b', 'ä', 'x'.repeat(129)])('the invalid tool name %s is refused by its path', (name) => {
    const tools = [
      { name: 'f', input_schema: schema },
      { name, input_schema: schema },
    ]
    expect(refusal({ tools })).toBe('tools[1].name')
  })
})

describe('thinking', () => {
  test.each([
    [{ thinking: { type: 'enabled', budget_tokens: 2_000 } }, { budget: 2_000, isShown: true }],
    [{ thinking: { type: 'adaptive' } }, { isShown: true }],
    [
      { thinking: { type: 'adaptive', display: 'omitted' }, output_config: { effort: 'high' } },
      { effort: 'high', isShown: false },
    ],
    [{ thinking: { type: 'disabled' } }, { effort: 'none', isShown: false }],
    [{ output_config: { effort: 'low' } }, { effort: 'low', isShown: false }],
    [{ thinking: { type: 'between_tools' } }, { isShown: true }],
    [{ thinking: null, output_config: { effort: null } }, undefined],
    [{}, undefined],
  ])('thinking is read as effort, budget and visibility from %j', (fields, thinking) => {
    expect(thinkingOf(fields)).toEqual(thinking)
  })

  test('unknown thinking types and efforts are refused', () => {
    expect(refusal({ thinking: { type: 'zzz' } })).toBe('thinking.type')
    expect(refusal({ output_config: { effort: 'zzz' } })).toBe('output_config.effort')
    expect(refusal({ thinking: { type: 'disabled' }, output_config: { effort: 'zzz' } })).toBe('output_config.effort')
  })
})

describe('other fields', () => {
  test('sampling, stop sequences, user, output cap and format are read', () => {
    const format = { type: 'json_schema', schema: { type: 'object' } }
    const fields = { stop_sequences: ['x'], temperature: 0.5, top_p: 0.9, top_k: 5, metadata: { user_id: 'ann' } }
    expect(read({ ...fields, max_tokens: 5_000, output_config: { format } })).toMatchObject({
      stop: ['x'],
      temperature: 0.5,
      topP: 0.9,
      topK: 5,
      user: 'ann',
      outputTokensMax: 1_000,
      format: { kind: 'schema', schema: { type: 'object' } },
    })
    const { topP, topK } = read({ top_p: -1, top_k: -1 })
    expect([topP, topK]).toEqual([undefined, undefined])
    expect(read({ output_format: format }).format).toEqual({ kind: 'schema', schema: { type: 'object' } })
    expect(read({ output_config: { format: null } }).format).toBeUndefined()
  })

  test('an unknown output format is refused', () => {
    expect(refusal({ output_config: { format: { type: 'xml' } } })).toBe('output_config.format.type')
    expect(refusal({ output_format: { type: 'xml' } })).toBe('output_format.type')
  })

  test('a max_tokens of 0, which only warms a cache, is refused in translation', () => {
    expect(refusal({ max_tokens: 0 })).toBe('max_tokens')
  })
})
