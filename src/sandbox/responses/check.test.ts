import { afterAll, describe, expect, test } from 'bun:test'
import { answerOf, openResponses } from './testing.ts'
import { errorOf } from '../testing.ts'

const { sandbox, say, post } = openResponses()
afterAll(() => sandbox.stop())

const user = { role: 'user', content: 'hi' }
const call = { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' }
const output = { type: 'function_call_output', call_id: 'call_1', output: 'done' }
const open = { type: 'object', properties: { x: { type: 'string' } } }
const closed = { ...open, required: ['x'], additionalProperties: false }
const tool = { type: 'function', name: 'f', parameters: closed }
const long = 'x'.repeat(65)
const user1 = (...content: unknown[]) => [{ role: 'user', content }]

type Row = readonly [label: string, body: object, param: string | null, code: string | null]

describe('the validation of fields', () => {
  test.each<Row>([
    ['no input', { input: undefined }, 'input', 'missing_required_parameter'],
    ['an empty input', { input: [] }, 'input', 'missing_required_parameter'],
    ['a number as input', { input: 5 }, 'input', 'invalid_type'],
    ...[
      'messages',
      'max_tokens',
      'response_format',
      'reasoning_effort',
      'stop',
      'n',
      'seed',
      'logprobs',
      'verbosity',
    ].map((name): Row => [`the field ${name} of chat`, { [name]: 1 }, name, 'unknown_parameter']),
    [
      'include_usage in a stream',
      { stream: true, stream_options: { include_usage: true } },
      'stream_options.include_usage',
      'unknown_parameter',
    ],
    ['stream_options without stream', { stream_options: {} }, 'stream_options', null],
    ["a cap above the model's maximum", { max_output_tokens: 4_097 }, 'max_output_tokens', 'integer_above_max_value'],
    ['too high a temperature', { temperature: 2.1 }, 'temperature', 'decimal_above_max_value'],
    ['too many top_logprobs', { top_logprobs: 21 }, 'top_logprobs', 'integer_above_max_value'],
    ['too long a cache key', { prompt_cache_key: long }, 'prompt_cache_key', 'string_above_max_length'],
    ['too long a safety identifier', { safety_identifier: long }, 'safety_identifier', 'string_above_max_length'],
    ['instructions as a list', { instructions: [user] }, 'instructions', 'invalid_type'],
    ['a number in the metadata', { metadata: { a: 1 } }, 'metadata.a', 'invalid_type'],
    [
      '17 metadata entries',
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`k${at}`, ''])) },
      'metadata',
      'object_above_max_properties',
    ],
    ['an unknown truncation', { truncation: 'middle' }, 'truncation', 'invalid_value'],
    ['text in place of a boolean', { store: 'yes' }, 'store', 'invalid_type'],
    ['an unknown include', { include: ['everything'] }, 'include[0]', 'invalid_value'],
    ['encrypted reasoning of a model without reasoning', { include: ['reasoning.encrypted_content'] }, 'include', null],
    [
      'a schema nested as in chat',
      { text: { format: { type: 'json_schema', json_schema: {} } } },
      'text.format.name',
      'missing_required_parameter',
    ],
    [
      'a schema in both forms',
      { text: { format: { type: 'json_schema', name: 'a', schema: closed, json_schema: {} } } },
      'text.format.json_schema',
      'unknown_parameter',
    ],
    [
      'a strict schema that allows further properties',
      { text: { format: { type: 'json_schema', name: 'a', schema: open, strict: true } } },
      'text.format.schema',
      'invalid_json_schema',
    ],
    [
      'a strict schema of a list',
      { text: { format: { type: 'json_schema', name: 'a', schema: { type: 'array' }, strict: true } } },
      'text.format.schema',
      'invalid_json_schema',
    ],
    ['json_object without the word JSON in the input', { text: { format: { type: 'json_object' } } }, 'input', null],
    ['an unknown verbosity', { text: { verbosity: 'max' } }, 'text.verbosity', 'invalid_value'],
    [
      'an effort for a model without reasoning',
      { reasoning: { effort: 'low' } },
      'reasoning.effort',
      'unsupported_parameter',
    ],
    [
      'a summary from a model without reasoning',
      { reasoning: { summary: 'auto' } },
      'reasoning.summary',
      'unsupported_parameter',
    ],
    [
      'an unknown earlier response',
      { previous_response_id: 'resp_1' },
      'previous_response_id',
      'previous_response_not_found',
    ],
    ['a conversation', { conversation: { id: 'conv_1' } }, 'conversation', null],
    ['an unknown effort', { model: 'gpt-5', reasoning: { effort: 'utmost' } }, 'reasoning.effort', 'invalid_value'],
    ['a temperature with reasoning', { model: 'gpt-5', temperature: 0.2 }, 'temperature', 'unsupported_parameter'],
    ['top_p with reasoning', { model: 'gpt-5.6-sol', top_p: 0.2 }, 'top_p', 'unsupported_parameter'],
  ])('a request is refused with a 400: %s', async (_, body, param, code) => {
    const error = await errorOf(say('hi', body))
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error', param, code })
  })

  test("a cap that is too small and an unsupported effort are refused in the vendor's words", async () => {
    expect((await errorOf(say('hi', { max_output_tokens: 5 }))).message).toBe(
      "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 5 instead.",
    )
    expect((await errorOf(say('hi', { model: 'gpt-5.4', reasoning: { effort: 'minimal' } }))).message).toBe(
      "Unsupported value: 'minimal' is not supported with the 'gpt-5.4' model. Supported values are: 'none', 'low', 'medium', 'high', and 'xhigh'.",
    )
  })

  test('an unknown model, an unsuitable model and malformed JSON are refused', async () => {
    expect(await errorOf(say('hi', { model: 'gone' }))).toMatchObject({ status: 404, code: 'model_not_found' })
    expect(await errorOf(say('hi', { model: 'painter' }))).toMatchObject({ status: 400, param: 'model' })
    expect(await errorOf(post('{'))).toMatchObject({ status: 400, param: null })
  })

  test('null counts as absent, and effort none allows sampling parameters', async () => {
    const nothing = {
      temperature: null,
      tools: null,
      reasoning: null,
      text: null,
      include: null,
      metadata: null,
      user: null,
    }
    expect((await say('hi', nothing)).status).toBe(200)
    const resting = {
      model: 'gpt-5.6-sol',
      reasoning: { effort: 'none' },
      temperature: 0.2,
      top_p: 0.5,
      top_logprobs: 2,
    }
    expect((await say('hi', resting)).status).toBe(200)
    expect((await say('hi', { tools: [], tool_choice: 'auto', parallel_tool_calls: true })).status).toBe(200)
    // The metadata that the vendor's own command-line tool sends about itself.
    expect((await say('hi', { client_metadata: { installation: 'x' } })).status).toBe(200)
  })
})

describe('the validation of tools', () => {
  test.each<Row>([
    [
      'a function in the form of chat',
      { tools: [{ type: 'function', function: { name: 'f' } }] },
      'tools[0].name',
      'missing_required_parameter',
    ],
    ['a function in both forms', { tools: [{ ...tool, function: {} }] }, 'tools[0].function', 'unknown_parameter'],
    [
      'a schema that cannot be strict',
      { tools: [{ ...tool, strict: true, parameters: open }] },
      'tools[0].parameters',
      'invalid_function_parameters',
    ],
    [
      'oneOf in a strict schema',
      {
        tools: [
          {
            ...tool,
            strict: true,
            parameters: { type: 'object', properties: {}, additionalProperties: false, oneOf: [] },
          },
        ],
      },
      'tools[0].parameters',
      'invalid_function_parameters',
    ],
    [
      'parameters that are not an object',
      { tools: [{ ...tool, strict: false, parameters: {} }] },
      'tools[0].parameters',
      'invalid_function_parameters',
    ],
    ['a name with a space', { tools: [{ ...tool, name: 'a b' }] }, 'tools[0].name', 'invalid_value'],
    ['too long a name', { tools: [{ ...tool, name: long }] }, 'tools[0].name', 'string_above_max_length'],
    ['a tool without a type', { tools: [{ name: 'f' }] }, 'tools[0].type', 'missing_required_parameter'],
    ['an unknown type of tool', { tools: [{ type: 'web_search_20250305' }] }, 'tools[0].type', 'invalid_value'],
    [
      'an unknown grammar syntax',
      { tools: [{ type: 'custom', name: 'f', format: { type: 'grammar', syntax: 'ebnf', definition: '' } }] },
      'tools[0].format.syntax',
      'invalid_value',
    ],
    [
      'a namespace in a namespace',
      { tools: [{ type: 'namespace', name: 'n', description: 'd', tools: [{ type: 'namespace' }] }] },
      'tools[0].tools[0].type',
      'invalid_value',
    ],
    [
      'a schema that cannot be strict in a namespace',
      {
        tools: [
          { type: 'namespace', name: 'n', description: 'd', tools: [{ ...tool, strict: true, parameters: open }] },
        ],
      },
      'tools[0].tools[0].parameters',
      'invalid_function_parameters',
    ],
    [
      'a tool choice in the form of chat',
      { tools: [tool], tool_choice: { type: 'function', function: { name: 'f' } } },
      'tool_choice.name',
      'missing_required_parameter',
    ],
    [
      'a tool choice that is not offered',
      { tools: [tool], tool_choice: { type: 'function', name: 'g' } },
      'tool_choice',
      null,
    ],
    ['tool_choice without tools', { tool_choice: 'required' }, 'tool_choice', null],
    ['the tool choice any', { tools: [tool], tool_choice: 'any' }, 'tool_choice', 'invalid_value'],
    [
      'allowed tools in the form of chat',
      { tools: [tool], tool_choice: { type: 'allowed_tools', allowed_tools: {} } },
      'tool_choice.allowed_tools',
      'unknown_parameter',
    ],
  ])('tools are refused with a 400: %s', async (_, body, param, code) => {
    expect(await errorOf(say('hi', body))).toMatchObject({ status: 400, param, code })
  })

  test('a schema unfit for strict mode is accepted unless strict is set', async () => {
    const open1 = { ...tool, parameters: open }
    expect((await say('hi', { tools: [open1, { ...open1, name: 'g', strict: false }] })).status).toBe(200)
    const space = { type: 'namespace', name: 'n', description: 'd', tools: [open1] }
    expect((await say('hi', { tools: [space, { type: 'shell' }, { type: 'web_search' }] })).status).toBe(200)
  })
})

describe('the validation of input items', () => {
  test.each<readonly [string, unknown[], string, string | null]>([
    ['an item without a type', [{ content: 'x' }], 'input[0].type', 'missing_required_parameter'],
    ['an item of an unknown type', [{ type: 'tool_use' }], 'input[0].type', 'invalid_value'],
    ['the role tool of chat', [{ role: 'tool', content: 'x' }], 'input[0].role', 'invalid_value'],
    ['the field name of chat', [{ ...user, name: 'x' }], 'input[0].name', 'unknown_parameter'],
    [
      'tool_calls of chat',
      [{ role: 'assistant', content: '', tool_calls: [] }],
      'input[0].tool_calls',
      'unknown_parameter',
    ],
    [
      'a message without content',
      [{ role: 'assistant', content: null }],
      'input[0].content',
      'missing_required_parameter',
    ],
    ['a text part of chat', user1({ type: 'text', text: 'x' }), 'input[0].content[0]', 'invalid_value'],
    [
      'an output_text part from the user',
      user1({ type: 'output_text', text: 'x' }),
      'input[0].content[0]',
      'invalid_value',
    ],
    [
      'an input_text part from the assistant',
      [{ role: 'assistant', content: [{ type: 'input_text', text: 'x' }] }],
      'input[0].content[0]',
      'invalid_value',
    ],
    [
      'an image part in the form of chat',
      user1({ type: 'input_image', image_url: { url: 'https://example.com/a.png' } }),
      'input[0].content[0].image_url',
      'invalid_type',
    ],
    [
      'an image with a relative URL',
      user1({ type: 'input_image', image_url: 'a.png' }),
      'input[0].content[0].image_url',
      'invalid_value',
    ],
    [
      'a file without a data URL',
      user1({ type: 'input_file', file_data: 'AAAA', filename: 'a.pdf' }),
      'input[0].content[0].file_data',
      'invalid_value',
    ],
    [
      'a file part without a file',
      user1({ type: 'input_file', filename: 'a.pdf' }),
      'input[0].content[0].file_id',
      'missing_required_parameter',
    ],
    [
      'a cache_control field',
      user1({ type: 'input_text', text: 'x', cache_control: {} }),
      'input[0].content[0].cache_control',
      'unknown_parameter',
    ],
    ['call arguments as an object', [user, { ...call, arguments: {} }, output], 'input[1].arguments', 'invalid_type'],
    ['a call without an id', [user, { ...call, call_id: undefined }], 'input[1].call_id', 'missing_required_parameter'],
    ['too long a call id', [user, { ...call, call_id: long }], 'input[1].call_id', 'string_above_max_length'],
    ['a call id in the field id', [user, { ...call, id: 'call_1' }, output], 'input[1].id', 'invalid_value'],
    ['a result without a call', [user, output], 'input', null],
    ['a call without a result', [user, call, user], 'input', null],
    [
      'a result of another kind than its call',
      [user, call, { ...output, type: 'custom_tool_call_output' }],
      'input',
      null,
    ],
    ['a result before its call', [user, output, call], 'input', null],
    [
      'two items with one id',
      [
        user,
        { ...call, id: 'fc_1' },
        output,
        { ...call, id: 'fc_1', call_id: 'call_2' },
        { ...output, call_id: 'call_2' },
      ],
      'input',
      null,
    ],
    [
      'a tool search without a result',
      [user, { type: 'tool_search_call', call_id: 'call_1', execution: 'client', arguments: {} }],
      'input',
      null,
    ],
    [
      'additional tools that cannot be strict',
      [user, { type: 'additional_tools', role: 'developer', tools: [{ ...tool, strict: true, parameters: open }] }],
      'input[1].tools[0].parameters',
      'invalid_function_parameters',
    ],
    [
      'reasoning without a summary',
      [user, { type: 'reasoning', id: 'rs_1' }],
      'input[1].summary',
      'missing_required_parameter',
    ],
  ])('an input item is refused with a 400: %s', async (_, input, param, code) => {
    expect(await errorOf(say(input, { store: false }))).toMatchObject({ status: 400, param, code })
  })

  test('the error names the call without a counterpart or the missing item', async () => {
    expect((await errorOf(say([user, { ...output, call_id: 'call_x' }]))).message).toBe(
      'No tool call found for function call output with call_id call_x.',
    )
    expect((await errorOf(say([user, call]))).message).toBe('No tool output found for function call call_1.')
    const thought = { type: 'reasoning', id: 'rs_1', summary: [] }
    for (const item of [thought, { type: 'item_reference', id: 'rs_1' }]) {
      const error = await errorOf(
        say([user, item, { role: 'assistant', content: 'x' }], { model: 'gpt-5', store: false }),
      )
      expect(error).toMatchObject({ status: 400, param: 'input' })
      expect(error.message).toStartWith(
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
      )
    }
  })

  test('the items of earlier turns are accepted as input', async () => {
    const items = [
      { role: 'developer', content: [{ type: 'input_text', text: 'Be brief.' }] },
      ...user1(
        { type: 'input_text', text: 'Look' },
        { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'low' },
        { type: 'input_file', file_data: 'data:application/pdf;base64,AAAA', filename: 'a.pdf' },
      ),
      {
        type: 'message',
        role: 'assistant',
        id: 'msg_1',
        status: 'completed',
        content: [{ type: 'output_text', text: 'x', annotations: [], logprobs: [] }],
      },
      { ...call, id: 'fc_1', status: 'completed', namespace: 'n' },
      { ...output, output: [{ type: 'input_text', text: 'done' }] },
      { type: 'custom_tool_call', id: 'ctc_1', status: 'completed', call_id: 'call_2', name: 'g', input: 'x' },
      { type: 'custom_tool_call_output', call_id: 'call_2', output: 'y' },
      { type: 'tool_search_call', call_id: 'call_3', execution: 'client', arguments: { query: 'x' } },
      { type: 'tool_search_output', call_id: 'call_3', execution: 'client', status: 'completed', tools: [tool] },
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x' } },
      { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
      user,
    ]
    expect((await answerOf(say(items, { store: false }))).status).toBe('completed')
  })
})
