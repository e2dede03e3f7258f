import { describe, expect, test } from 'bun:test'
import { errorOf } from '../../../test/support/thrown.ts'
import { GatewayError } from '../../base/errors.ts'
import { parseBody, type JsonObject } from '../../base/json.ts'
import type { ChatTraits } from '../../capabilities/chat.ts'
import { plainModel } from '../../capabilities/testing.ts'
import { readAsk, readCountAsk } from './ask.ts'
import { estimateInput } from './estimate.ts'

const plain: ChatTraits = {
  ...plainModel,
  contextTokens: 200_000,
  choicesMax: 1,
  sells: (unit) => unit === 'input' || unit === 'output',
}
const searching: ChatTraits = { ...plain, sells: () => true }
const base = { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] }

function asked(body: Record<string, unknown>, headers: Record<string, string> = {}) {
  const text = JSON.stringify(body)
  return {
    body: parseBody(text, { depthMax: 128, keysMax: 1_000 }) as JsonObject,
    files: [],
    bodyBytes: text.length,
    header: (name: string) => headers[name] ?? null,
  }
}

const read = (fields: Record<string, unknown>, traits = plain, headers = {}) =>
  readAsk(asked({ ...base, ...fields }, headers), () => traits)

function refusal(make: () => unknown) {
  const { kind, message, details } = errorOf(make)
  return { kind, param: details.param, code: details.code, message }
}

const count = (body: Record<string, unknown>) => readCountAsk(asked(body), () => plain)
const estimate = (fields: Record<string, unknown>) => estimateInput(count({ ...base, ...fields }))

function lookUp(): never {
  throw new GatewayError('unknown-model', 'no')
}

const user = (...content: unknown[]) => [{ role: 'user', content }]
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA' } }
const call = { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } }
const result = { type: 'tool_result', tool_use_id: 'toolu_1' }
const tool = { name: 'f', input_schema: { type: 'object' } }

/** For every field: values it takes, and values it refuses with the error's code. */
const table: readonly {
  field: string
  takes: readonly unknown[]
  refuses: readonly (readonly [value: unknown, code: string, param?: string])[]
}[] = [
  {
    field: 'messages',
    takes: [
      [{ role: 'user', content: 'Hi' }],
      user({ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral', ttl: '1h' }, odd: 1 }),
      user(image, { type: 'image', source: { type: 'url', url: 'https://x/y.png' } }),
      user({ type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' }, title: null }),
      user({ type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'x' }] } }),
      user({ type: 'something_new', odd: { deep: true } }),
      [
        { role: 'user', content: 'Hi' },
        { role: 'system', content: [{ type: 'text', text: 'Be brief.' }] },
        { role: 'assistant', content: [{ type: 'thinking', thinking: '', signature: 'Eq' }, call] },
        { role: 'user', content: [{ ...result, content: [image, { type: 'tool_reference', tool_name: 'f' }] }] },
        { role: 'assistant', content: [{ type: 'redacted_thinking', data: 'x' }] },
      ],
    ],
    refuses: [
      [undefined, 'missing_required_parameter'],
      ['Hi', 'invalid_type'],
      [[], 'invalid_value'],
      [[{ role: 'tool', content: 'Hi' }], 'invalid_value', 'messages[0].role'],
      [[{ role: 'user' }], 'missing_required_parameter', 'messages[0].content'],
      [[{ role: 'user', content: 5 }], 'invalid_type', 'messages[0].content'],
      [user({ text: 'x' }), 'invalid_value', 'messages[0].content[0].type'],
      [user({ type: 'text', text: 'a' }, { type: 'text', text: 5 }), 'invalid_type', 'messages[0].content[1].text'],
      [user({ type: 'image' }), 'missing_required_parameter', 'messages[0].content[0].source'],
      [user({ type: 'image', source: { type: 'odd' } }), 'invalid_value', 'messages[0].content[0].source.type'],
      [
        user({ type: 'image', source: { type: 'url' } }),
        'missing_required_parameter',
        'messages[0].content[0].source.url',
      ],
      [user({ type: 'tool_result' }), 'missing_required_parameter', 'messages[0].content[0].tool_use_id'],
      [user({ ...result, is_error: 'no' }), 'invalid_type', 'messages[0].content[0].is_error'],
      [[{ role: 'assistant', content: [{ ...call, input: '{}' }] }], 'invalid_type', 'messages[0].content[0].input'],
    ],
  },
  {
    field: 'max_tokens',
    takes: [0, 1, 1_000_000],
    refuses: [
      [undefined, 'missing_required_parameter'],
      [-1, 'invalid_value'],
      [1.5, 'invalid_type'],
      ['5', 'invalid_type'],
    ],
  },
  {
    field: 'system',
    takes: ['Be brief.', [{ type: 'text', text: 'a', cache_control: null }], null],
    refuses: [
      [5, 'invalid_type'],
      [[{ type: 'image' }], 'invalid_value', 'system[0].type'],
    ],
  },
  { field: 'stream', takes: [true, false, null], refuses: [['true', 'invalid_type']] },
  { field: 'stop_sequences', takes: [['x'], [], null], refuses: [['x', 'invalid_type']] },
  {
    field: 'metadata',
    takes: [{ user_id: '{"a":1}' }, { user_id: null }, {}, null],
    refuses: [[{ user_id: 5 }, 'invalid_type', 'metadata.user_id']],
  },
  {
    field: 'tools',
    takes: [
      [tool],
      [{ ...tool, type: 'custom', strict: true, defer_loading: true, odd: 1 }],
      [{ type: 'bash_20250124', name: 'bash' }],
      [{ type: 'text_editor_20250728', name: 'str_replace_based_edit_tool' }],
      [{ type: 'computer_20251124', name: 'computer', display_width_px: 1 }],
      [{ type: 'memory_20250818', name: 'memory' }],
      [{ type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' }],
      [{ type: 'web_fetch_20250910', name: 'web_fetch' }],
      [{ type: 'mcp_toolset', mcp_server_name: 'x' }],
      [],
      null,
    ],
    refuses: [
      [{}, 'invalid_type'],
      [[{ name: 5 }], 'invalid_type', 'tools[0].name'],
      [[{ ...tool, input_schema: 'x' }], 'invalid_type', 'tools[0].input_schema'],
      [[tool, { type: 'code_execution_20250825', name: 'code_execution' }], 'unsupported_value', 'tools[1].type'],
      [[{ type: 'advisor_20260301', name: 'advisor' }], 'unsupported_value', 'tools[0].type'],
    ],
  },
  {
    field: 'tool_choice',
    takes: [
      { type: 'auto', disable_parallel_tool_use: true },
      { type: 'any' },
      { type: 'tool', name: 'f' },
      { type: 'none' },
      null,
    ],
    refuses: [
      ['auto', 'invalid_type'],
      [{ type: 'odd' }, 'invalid_value', 'tool_choice.type'],
      [{ type: 'tool' }, 'missing_required_parameter', 'tool_choice.name'],
    ],
  },
  {
    field: 'thinking',
    takes: [
      { type: 'enabled', budget_tokens: 1_024 },
      { type: 'adaptive', display: 'omitted' },
      { type: 'disabled' },
      { type: 'between_tools' },
      { type: 'something_new' },
      null,
    ],
    refuses: [
      [{ type: 'enabled', budget_tokens: 1_023 }, 'invalid_value', 'thinking.budget_tokens'],
      [true, 'invalid_type'],
    ],
  },
  {
    field: 'output_config',
    takes: [{ effort: 'low', format: { type: 'json_schema', schema: {} } }, { task_budget: {} }, null],
    refuses: [[{ effort: 5 }, 'invalid_type', 'output_config.effort']],
  },
  {
    field: 'temperature',
    takes: [0, 0.5, 1, null],
    refuses: [
      [1.01, 'invalid_value'],
      ['1', 'invalid_type'],
    ],
  },
  {
    field: 'top_p',
    takes: [0, 1, -1, null],
    refuses: [
      [-0.1, 'invalid_value'],
      [-2, 'invalid_value'],
    ],
  },
  {
    field: 'top_k',
    takes: [0, 40, -1, null],
    refuses: [
      [0.5, 'invalid_type'],
      [-2, 'invalid_value'],
    ],
  },
  {
    field: 'service_tier',
    takes: ['auto', 'standard_only', null],
    refuses: [['priority', 'unsupported_value']],
  },
  { field: 'speed', takes: ['standard', null], refuses: [['fast', 'unsupported_value']] },
  { field: 'inference_geo', takes: ['global', null], refuses: [['us', 'unsupported_value']] },
  { field: 'plugins', takes: [null], refuses: [[[{ id: 'web' }], 'unsupported_value']] },
  { field: 'fallbacks', takes: [null], refuses: [['default', 'unsupported_value']] },
  { field: 'thread', takes: [null], refuses: [[{ type: 'create' }, 'thread_unsupported_request']] },
  { field: 'context_management', takes: [{ edits: [] }, 5], refuses: [] },
]

describe.each(table)('the field $field', ({ field, takes, refuses }) => {
  test.each(takes.map((value) => [JSON.stringify(value), value] as const))('%s is accepted', (_shown, value) => {
    expect(read({ [field]: value }).model).toBe('m')
  })

  test
    .if(refuses.length > 0)
    .each(
      refuses.map(([value, code, param]) => [JSON.stringify(value) ?? 'nothing', value, code, param ?? field] as const),
    )('%s is refused with its param and code', (_shown, value, code, param) => {
    expect(refusal(() => read({ [field]: value }))).toMatchObject({ kind: 'bad-request', param, code })
  })
})

test('a thread is refused in a request to count tokens too, and null counts as absent', () => {
  const thread = { type: 'continue', id: 'thread_1' }
  expect(refusal(() => count({ ...base, thread }))).toMatchObject({
    param: 'thread',
    code: 'thread_unsupported_request',
  })
  expect(count({ ...base, thread: null }).model).toBe('m')
})

describe('the facts of an ask', () => {
  test('a plain request is read into the facts of a chat ask', () => {
    expect(read({ stream: true })).toMatchObject({
      protocol: 'anthropic',
      capability: 'chat',
      model: 'm',
      stream: true,
      usageShown: true,
      choices: 1,
      outputTokensMax: 100,
      searchesMax: 0,
      headers: { 'anthropic-version': '2023-06-01' },
    })
  })

  test('max_tokens is limited to the model’s maximum, and 0 stays 0', () => {
    expect(read({ max_tokens: 5_000 }).outputTokensMax).toBe(1_000)
    expect(read({ max_tokens: 0 }).outputTokensMax).toBe(0)
  })

  test('beta headers that raise the model’s limits raise the bounds of the ask', () => {
    const open = { 'anthropic-beta': 'a-2025-01-01,context-1m-2025-08-07,output-128k-2025-02-19' }
    const ask = read({ max_tokens: 500_000, tools: [{ type: 'web_fetch_20250910' }] }, plain, open)
    expect(ask).toMatchObject({ outputTokensMax: 128_000, inputTokensMax: 1_000_000 })
    expect(ask.believable).toEqual({ input: 1_000_000, output: 128_000 })
  })

  test('the version and beta headers of the protocol are kept, other headers are not', () => {
    const headers = {
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'x-2026-01-01',
      'anthropic-workspace-id': 'w',
    }
    expect(read({}, plain, headers).headers).toEqual({
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'x-2026-01-01',
    })
  })

  test('a missing, malformed or unknown model is refused', () => {
    expect(refusal(() => readAsk(asked(base), lookUp)).kind).toBe('unknown-model')
    expect(refusal(() => readAsk(asked({ ...base, model: 5 }), lookUp))).toMatchObject({ param: 'model' })
    for (const body of [{}, { ...base, model: '' }]) {
      expect(refusal(() => readAsk(asked(body), lookUp))).toMatchObject({ code: 'missing_required_parameter' })
    }
  })

  test('a number that a double cannot hold is refused as max_tokens and kept exactly as temperature', () => {
    const huge = JSON.stringify(base).replace('100', '9007199254740993')
    const body = parseBody(huge, { depthMax: 9, keysMax: 99 }) as JsonObject
    const wrong = { body, files: [], bodyBytes: 1, header: () => null }
    expect(refusal(() => readAsk(wrong, () => plain))).toMatchObject({ param: 'max_tokens' })
    const fine = JSON.stringify({ ...base, temperature: 7 }).replace('7', '0.70000000000000000001')
    const ask = readAsk({ ...wrong, body: parseBody(fine, { depthMax: 9, keysMax: 99 }) as JsonObject }, () => plain)
    expect(JSON.stringify(ask.native)).toContain('0.70000000000000000001')
  })
})

const bytesOf = (fields: Record<string, unknown>) => JSON.stringify({ ...base, ...fields }).length
const over = (fields: Record<string, unknown>, traits = plain) => read(fields, traits).inputTokensMax - bytesOf(fields)
const pdf = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AA' } }

describe('the bound of the input', () => {
  test('the bound is the bytes of the body plus allowances for images and tools', () => {
    expect(over({})).toBe(0)
    expect(over({ messages: user(image) })).toBe(50_000)
    expect(over({ messages: user({ ...result, content: [image, image] }) })).toBe(100_000)
    expect(over({ tools: [tool] })).toBe(1_000)
    expect(over({ tools: [{ type: 'bash_20250124', name: 'bash' }] })).toBe(11_000)
    const source = { type: 'content', content: [image] }
    expect(over({ messages: user({ type: 'document', source }) })).toBe(50_000)
    expect(over({ messages: user({ type: 'document', source: { type: 'text', data: 'x' } }) })).toBe(0)
  })

  test.each([
    [{ messages: user(pdf) }],
    [{ messages: user({ type: 'document', source: { type: 'url', url: 'https://x/y.pdf' } }) }],
    [{ messages: user({ type: 'document', source: { type: 'file', file_id: 'f' } }) }],
    [{ tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] }],
    [{ tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
    [{ mcp_servers: [{ url: 'https://x' }] }],
  ])('the bound is the model’s context window where the body does not limit it: %j', (fields) => {
    expect(read(fields, searching).inputTokensMax).toBe(200_000)
  })
})

const search = { type: 'web_search_20260209', name: 'web_search' }

describe('web searches', () => {
  test('searchesMax is the client’s max_uses, or else the most that a turn can make', () => {
    expect(read({ tools: [{ ...search, max_uses: 8 }] }, searching).searchesMax).toBe(8)
    expect(read({ tools: [search] }, searching).searchesMax).toBe(20)
    expect(read({ tools: [tool] }, searching).searchesMax).toBe(0)
  })

  test('a search tool added in mid-conversation counts towards searchesMax', () => {
    const added = { type: 'tool_addition', tool: { type: 'tool_definition', definition: { ...search, max_uses: 3 } } }
    expect(read({ messages: user(added) }, searching).searchesMax).toBe(3)
  })

  test.each([0, 0.5, -4])('a max_uses of %p is refused on a search tool added in mid-conversation', (uses) => {
    const added = { type: 'tool_addition', tool: { definition: { ...search, max_uses: uses } } }
    const param = 'messages[0].content[0].tool.definition.max_uses'
    expect(refusal(() => read({ messages: user(added) }, searching))).toMatchObject({ kind: 'bad-request', param })
  })

  test('searchesMax is 0 on a model that has no price for searches', () => {
    expect(read({ tools: [search] }).searchesMax).toBe(0)
  })
})

describe('a request to count tokens', () => {
  test('a count needs messages but no max_tokens, and bounds the output at 0', () => {
    const { max_tokens: _, ...prompt } = base
    expect(count({ ...prompt, tools: [] })).toMatchObject({ outputTokensMax: 0, stream: false, searchesMax: 0 })
    expect(refusal(() => count({ model: 'm' }))).toMatchObject({ param: 'messages' })
  })

  test('our estimate counts text and whole images, not base64 data or signatures', () => {
    expect(estimate({})).toBeWithin(1, 10)
    expect(estimate({ system: 'word '.repeat(1_000) })).toBeWithin(800, 1_300)
    // An image does not count by the length of its base64, and a signature is not read by the model.
    const data = 'A'.repeat(40_000)
    expect(estimate({ messages: user({ ...image, source: { ...image.source, data } }) })).toBeWithin(1_500, 1_520)
    const thought = { type: 'thinking', thinking: 'Hm', signature: data }
    expect(estimate({ messages: [{ role: 'assistant', content: [thought] }] })).toBeWithin(1, 20)
  })
})
