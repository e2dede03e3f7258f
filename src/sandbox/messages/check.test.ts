import { afterAll, describe, expect, test } from 'bun:test'
import { openMessages } from './testing.ts'
import { errorOf } from '../testing.ts'

const { sandbox, say, post, base } = openMessages()
afterAll(() => sandbox.stop())

const user = { role: 'user', content: 'hi' }
const tool = { name: 'f', input_schema: { type: 'object' } }
const use = { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }
const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'done' }
const called = { role: 'assistant', content: [use] }
const words = { type: 'text', text: 'And now?' }
const cached = { ...words, cache_control: { type: 'ephemeral' } }
const newer = { head: { 'anthropic-version': '2026-10-21' } }
const image = (media_type: string, data: string) => ({
  role: 'user',
  content: [{ type: 'image', source: { type: 'base64', media_type, data } }],
})

describe('the validation of messages', () => {
  test.each([
    ['no messages', [], 'messages: at least one message is required'],
    ['an unknown role', [{ role: 'tool', content: 'x' }], 'messages: Unexpected role "tool"'],
    [
      'a system message first',
      [{ role: 'system', content: 'x' }, user],
      'messages.0: use the top-level `system` parameter',
    ],
    [
      'an assistant message first',
      [{ role: 'assistant', content: 'x' }, user],
      'messages: first message must use the "user" role',
    ],
    ['a field of another protocol', [{ ...user, name: 'x' }], 'messages.0.name: Extra inputs are not permitted'],
    ['an empty text', [{ role: 'user', content: '' }], 'messages.0: all messages must have non-empty content'],
    [
      'an empty block',
      [{ role: 'user', content: [{ type: 'text', text: '' }] }],
      'messages: text content blocks must be non-empty',
    ],
    ['a blank text', [{ role: 'user', content: ' \n' }], 'messages: text content blocks must contain non-whitespace'],
    [
      'a block of another protocol',
      [{ role: 'user', content: [{ type: 'image_url' }] }],
      "messages.0.content.0: Input tag 'image_url'",
    ],
    [
      'an image in a system message',
      [user, { ...image('image/png', 'AAAA'), role: 'system' }],
      'messages.1.content.0: `image` blocks',
    ],
    [
      'a tool call by the user',
      [{ role: 'user', content: [use] }],
      'messages.0.content.0: `tool_use` blocks can only be in',
    ],
    [
      'a tool call without a result',
      [user, called],
      'messages.1: `tool_use` ids were found without `tool_result` blocks',
    ],
    [
      'a tool call answered with text',
      [user, called, user],
      'messages.1: `tool_use` ids were found without `tool_result`',
    ],
    [
      'a tool result after text',
      [user, called, { role: 'user', content: [words, result] }],
      'messages.1: `tool_use` ids were found without `tool_result`',
    ],
    [
      'tool results in two messages',
      [
        user,
        { role: 'assistant', content: [use, { ...use, id: 'toolu_2' }] },
        { role: 'user', content: [result] },
        { role: 'user', content: [{ ...result, tool_use_id: 'toolu_2' }] },
      ],
      'messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_2.',
    ],
    [
      'a tool result without a call',
      [{ role: 'user', content: [result] }],
      'messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1.',
    ],
    [
      'two results of one call',
      [user, called, { role: 'user', content: [result, result] }],
      'messages.2.content.1: each tool_use must',
    ],
    [
      'two calls with one id',
      [user, { role: 'assistant', content: [use, use] }],
      'messages: `tool_use` ids must be unique',
    ],
    [
      'an id in another form',
      [user, { role: 'assistant', content: [{ ...use, id: 'call:1' }] }],
      "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ],
    [
      'tool input as text',
      [user, { role: 'assistant', content: [{ ...use, input: '{}' }] }],
      'messages.1.content.0.tool_use.input: Input should be a valid dictionary',
    ],
    [
      'assistant text that ends with a space',
      [user, { role: 'assistant', content: 'So ' }],
      'messages: final assistant content cannot end',
    ],
    [
      'an unsupported image type',
      [image('image/bmp', 'AAAA')],
      'messages.0.content.0.image.source.base64.media_type: Input should be',
    ],
    [
      'a data URL as image data',
      [image('image/png', 'data:image/png;base64,AAAA')],
      'messages.0.content.0.image.source.base64.data: invalid',
    ],
    [
      'an image with the wrong media type',
      [image('image/png', '/9j/4AAQ')],
      'messages.0.content.0.image.source.base64: The image was specified',
    ],
    [
      'thinking without a signature',
      [user, { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm' }] }, user],
      'messages.1.content.0.thinking.signature: Field required',
    ],
    [
      'thinking with a forged signature',
      [user, { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm', signature: 'EqAAAA' }] }, user],
      'messages.1.content.0: Invalid `signature` in `thinking` block',
    ],
    [
      'forged redacted thinking',
      [user, { role: 'assistant', content: [{ type: 'redacted_thinking', data: 'x' }] }, user],
      'messages.1.content.0: Invalid `data` in `redacted_thinking` block',
    ],
    [
      'five cache breakpoints',
      [{ role: 'user', content: [cached, cached, cached, cached, cached] }],
      'A maximum of 4 blocks with cache_control',
    ],
    [
      'a one-hour cache after a five-minute one',
      [{ role: 'user', content: [cached, { ...words, cache_control: { type: 'ephemeral', ttl: '1h' } }] }],
      "a ttl='1h' cache_control block must not come after",
    ],
  ])('messages are refused with a 400: %s', async (_, messages, message) => {
    const error = await errorOf(say('', { messages, tools: [tool] }))
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error' })
    expect(error.message).toStartWith(message)
  })

  test('a well-formed conversation is accepted', async () => {
    const messages = [
      { role: 'user', content: [words, image('image/png', 'iVBORw0KGgo=').content[0]] },
      { role: 'user', content: 'twice in a row' },
      { role: 'assistant', content: [words, use, { ...use, id: 'call-2' }] },
      { role: 'user', content: [result, { type: 'tool_result', tool_use_id: 'call-2', is_error: false }, words] },
      { role: 'system', content: [words] },
    ]
    expect((await say('', { messages, tools: [tool], system: [cached] })).status).toBe(200)
  })
})

describe('the validation of fields', () => {
  const enabled = { type: 'enabled', budget_tokens: 1_024 }

  test.each([
    [{ max_tokens: undefined }, 'max_tokens: Field required'],
    [
      { max_tokens: 8_193 },
      'max_tokens: 8193 > 8192, which is the maximum allowed number of output tokens for claude-test',
    ],
    [{ model: undefined }, 'model: Field required'],
    [{ messages: undefined }, 'messages: Field required'],
    [{ n: 2 }, 'n: Extra inputs are not permitted'],
    [{ constructor: 2 }, 'constructor: Extra inputs are not permitted'],
    [{ context_management: {} }, 'context_management: Extra inputs are not permitted'],
    [{ mcp_servers: [] }, 'mcp_servers: Extra inputs are not permitted'],
    [{ safeguards: {} }, 'safeguards: Extra inputs are not permitted'],
    [{ temperature: 1.5 }, 'temperature: Input should be less than or equal to 1'],
    [{ temperature: 1, top_p: 1 }, '`temperature` and `top_p` cannot both be specified'],
    [{ stop_sequences: ['x', ' '] }, 'stop_sequences: each stop sequence must contain non-whitespace'],
    [{ stop_sequences: 'x' }, 'stop_sequences: Input should be a valid list'],
    [{ metadata: { user_id: 'a@example.com' } }, 'metadata.user_id: user_id appears to contain an email'],
    [{ metadata: { team: 'a' } }, 'metadata.team: Extra inputs are not permitted'],
    [{ system: [{ type: 'text', text: '' }] }, 'system: text content blocks must be non-empty'],
    [
      { thinking: { type: 'enabled', budget_tokens: 1_023 } },
      'thinking.enabled.budget_tokens: Input should be greater',
    ],
    [{ thinking: { ...enabled, budget_tokens: 2_000 } }, '`max_tokens` must be greater than `thinking.budget_tokens`'],
    [{ thinking: { type: 'adaptive', budget_tokens: 2_000 } }, 'thinking.adaptive.budget_tokens: Extra inputs are not'],
    [
      { thinking: { ...enabled, display: 'all' } },
      "thinking.enabled.display: Input should be 'summarized' or 'omitted'",
    ],
    [{ thinking: enabled, temperature: 0.5 }, '`temperature` may only be set to 1 when thinking is enabled'],
    [{ thinking: enabled, top_k: 5 }, '`top_k` must be unset when thinking is enabled'],
    [
      { thinking: enabled, tools: [tool], tool_choice: { type: 'any' } },
      'Thinking may not be enabled when tool_choice forces tool use.',
    ],
    [{ model: 'claude-plain', thinking: enabled }, "'claude-plain' does not support thinking."],
    [{ model: 'claude-new', thinking: enabled }, 'thinking.enabled: enabled thinking is not supported on this model'],
    [{ model: 'claude-plain', output_config: { effort: 'low' } }, 'This model does not support the effort parameter.'],
    [{ output_config: { effort: 'xhigh' } }, "This model does not support effort level 'xhigh'."],
    [{ output_config: { effort: 'minimal' } }, "output_config.effort: Input should be 'low'"],
    [
      { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } },
      "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
    ],
    [{ tool_choice: { type: 'auto' } }, 'tool_choice: `tool_choice` may only be specified while providing `tools`.'],
    [{ tools: [tool], tool_choice: 'auto' }, 'tool_choice: Input should be a valid dictionary'],
    [{ tools: [tool], tool_choice: { type: 'tool', name: 'g' } }, "Tool 'g' not found in provided tools"],
    [
      { tools: [tool], tool_choice: { type: 'none', disable_parallel_tool_use: true } },
      'tool_choice.none.disable_parallel_tool_use: Extra inputs are not permitted',
    ],
    [{ tools: [{ name: 'f' }] }, 'tools.0.custom.input_schema: Field required'],
    [{ tools: [{ name: 'f', input_schema: {} }] }, 'tools.0.custom.input_schema.type: Field required'],
    [{ tools: [{ ...tool, name: 'a.b' }] }, 'tools.0.custom.name: String should match pattern'],
    [{ tools: [{ ...tool, parameters: {} }] }, 'tools.0.custom.parameters: Extra inputs are not permitted'],
    [{ tools: [{ type: 'function', function: tool }] }, "tools.0: Input tag 'function' found using 'type'"],
    [{ tools: [tool, tool] }, 'tools: Tool names must be unique.'],
    [{ output_format: { type: 'json_schema', schema: {} } }, 'output_format: Extra inputs are not permitted'],
    [{ cache_control: { type: 'persistent' } }, "cache_control.type: Input should be 'ephemeral'"],
  ])('%j is refused with a 400', async (more, message) => {
    const error = await errorOf(say('hi', { max_tokens: 1_500, ...more }))
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error' })
    expect(error.message).toStartWith(message)
  })

  test('beta fields are accepted with their beta header, and an unknown beta is refused', async () => {
    const beta = 'claude-code-20250219,context-management-2025-06-27, mcp-client-2025-11-20,safeguards-2026-08-01'
    const more = { context_management: {}, mcp_servers: [], safeguards: {} }
    expect((await say('hi', more, { head: { 'anthropic-beta': beta } })).status).toBe(200)
    expect(await errorOf(say('hi', {}, { head: { 'anthropic-beta': 'magic' } }))).toMatchObject({
      status: 400,
      message: expect.stringContaining('Unexpected value(s) `magic`'),
    })
  })

  test('instructions among the messages may carry an effort, or be nothing else, with a beta header', async () => {
    const head = { 'anthropic-beta': 'per-turn-control-2026-07-01' }
    const asked = (message: object, more: object = { head }) =>
      post({ model: 'claude-new', max_tokens: 100, messages: [user, message] }, more)
    const control = { role: 'system', content: [], output_config: { effort: 'low' } }
    expect((await asked({ ...control, content: 'Be brief.' })).status).toBe(200)
    expect((await asked(control)).status).toBe(200)
    const refused = [
      asked(control, {}),
      asked({ ...control, role: 'user' }),
      asked({ ...control, output_config: { effort: 'huge' } }),
    ]
    expect((await Promise.all(refused.map(errorOf))).map(({ message }) => message)).toEqual([
      'messages.1.output_config: Extra inputs are not permitted',
      'messages.1.output_config: Extra inputs are not permitted',
      "messages.1.output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'",
    ])
  })

  test('what happens to thinking of another conversation may be chosen with a beta header', async () => {
    const thinking = { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } }
    const more = { model: 'claude-new', thinking }
    const head = { 'anthropic-beta': 'thinking-binding-controls-2026-08-01' }
    expect((await say('hi', more, { head })).status).toBe(200)
    const unknown = { ...more, thinking: { ...thinking, block_binding: { prefix_mismatch_behavior: 'keep' } } }
    const off = { ...more, thinking: { ...thinking, type: 'disabled' } }
    const refused = [say('hi', more), say('hi', unknown, { head }), say('hi', off, { head })]
    expect((await Promise.all(refused.map(errorOf))).map(({ message }) => message)).toEqual([
      'thinking.adaptive.block_binding: Extra inputs are not permitted',
      "thinking.adaptive.block_binding.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'",
      'thinking.disabled.block_binding: Extra inputs are not permitted',
    ])
  })

  test('max_tokens in a token count is refused', async () => {
    const body = { model: 'claude-test', messages: [user], max_tokens: 5 }
    const error = await errorOf(post(body, { path: '/v1/messages/count_tokens' }))
    expect(error.message).toBe('max_tokens: Extra inputs are not permitted')
  })

  test('a prompt beyond the context is a 400 and a body beyond the size limit a 413', async () => {
    const error = await errorOf(say('word '.repeat(100_000)))
    expect(error).toMatchObject({ status: 400, message: 'prompt is too long: 100004 tokens > 100000 maximum' })
    expect(await errorOf(post('x'.repeat(33 * 1024 * 1024)))).toMatchObject({ status: 413, type: 'request_too_large' })
  })

  test('a prefilled assistant turn is refused by a model that does not support it', async () => {
    const messages = [user, { role: 'assistant', content: 'So' }]
    expect((await say('', { messages })).status).toBe(200)
    expect(await errorOf(say('', { model: 'claude-new', messages }))).toMatchObject({
      status: 400,
      message: expect.stringContaining('does not support assistant message prefill'),
    })
  })

  test('instructions in the middle stand after the user, and before the model or at the end', async () => {
    const [system, model] = [
      { role: 'system', content: 'Be brief.' },
      { role: 'assistant', content: 'Hello.' },
    ]
    for (const messages of [
      [user, system],
      [user, system, model, user],
    ]) {
      expect((await say('', { messages })).status).toBe(200)
    }
    const follow = expect.stringContaining("role 'system' must follow a 'user' message")
    const precede = "messages.1: role 'system' must precede an 'assistant' message or end the array"
    for (const [messages, message] of [
      [[user, model, system, user], follow],
      [[user, model, system], follow],
      [[user, system, user], precede],
      [[user, system, system], precede],
    ] as const) {
      expect(await errorOf(say('', { messages }))).toMatchObject({ status: 400, message })
    }
    expect(await errorOf(say('', { model: 'claude-plain', messages: [user, system] }))).toMatchObject({
      status: 400,
      message: "role 'system' is not supported on this model",
    })
  })
})

describe('the newer API version', () => {
  const document = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } }

  test.each([
    [{ temperature: 1 }, 'temperature: not supported'],
    [{ top_p: 1 }, 'top_p: not supported'],
    [{ top_k: 5 }, 'top_k: not supported'],
    [{ messages: [user, { role: 'assistant', content: [document] }, user] }, 'messages.1.content.0: `document` blocks'],
    [
      { messages: [{ role: 'user', content: [{ ...words, citations: [{}] }] }] },
      'messages.0.content.0.text.citations: not',
    ],
  ])('%j is refused, though the older version accepts it', async (more, message) => {
    expect((await say('hi', more)).status).toBe(200)
    const error = await errorOf(say('hi', more, newer))
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error' })
    expect(error.message).toStartWith(message)
  })
})

describe('the request headers', () => {
  test.each([
    [{ 'x-api-key': '' }, 401, 'authentication_error', 'x-api-key header is required'],
    [{ 'x-api-key': 'bad-key' }, 401, 'authentication_error', 'invalid x-api-key'],
    [{ authorization: 'Bearer bad-key' }, 401, 'authentication_error', 'Invalid bearer token'],
    [{ 'anthropic-version': '2020-01-01' }, 400, 'invalid_request_error', 'anthropic-version: "2020-01-01" is not'],
  ])('the headers %j are refused', async (head, status, type, message) => {
    const error = await errorOf(say('hi', {}, { head }))
    expect(error).toMatchObject({ status, type })
    expect(error.message).toStartWith(message)
  })

  test('a missing version header is a 400', async () => {
    const response = await fetch(`${base}/v1/messages`, { method: 'POST', headers: { 'x-api-key': 'k' }, body: '{}' })
    expect(await errorOf(response)).toMatchObject({ status: 400, message: 'anthropic-version: header is required' })
  })

  test("an unknown model is a 404 in the vendor's error envelope", async () => {
    const response = await say('hi', { model: 'gpt-5' })
    const requestId = response.headers.get('request-id') ?? ''
    expect([response.status, await response.json()]).toEqual([
      404,
      { type: 'error', error: { type: 'not_found_error', message: 'model: gpt-5' }, request_id: requestId },
    ])
  })
})
