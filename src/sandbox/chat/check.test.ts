import { afterAll, describe, expect, test } from 'bun:test'
import { errorOf, openSandbox } from '../testing.ts'

const { sandbox, say, post } = openSandbox()
afterAll(() => sandbox.stop())

const user = { role: 'user', content: 'hi' }
const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }
const tool = { type: 'function', function: { name: 'f' } }

const offering = (pattern: string) => {
  const parameters = { type: 'object', properties: { a: { type: 'string', pattern } } }
  return { tools: [{ type: 'function', function: { name: 'f', parameters } }] }
}

describe('the validation of a request', () => {
  test.each([
    ['no messages', {}, 'messages', 'missing_required_parameter'],
    ['messages as text', { messages: 'hi' }, 'messages', 'invalid_type'],
    ['empty messages', { messages: [] }, 'messages', 'empty_array'],
    ['an unknown role', { messages: [{ role: 'robot', content: '' }] }, 'messages[0].role', 'invalid_value'],
    ['a user without content', { messages: [{ role: 'user' }] }, 'messages[0].content', null],
    [
      'an image from the assistant',
      { messages: [{ role: 'assistant', content: [{ type: 'image_url' }] }] },
      'messages[0].content[0].type',
      'invalid_value',
    ],
    [
      'a tool result without a call',
      { messages: [user, { role: 'tool', tool_call_id: 'x', content: '' }] },
      'messages.[1].role',
      null,
    ],
    [
      'a tool result without an id',
      { messages: [user, { role: 'tool', content: '' }] },
      'messages[1].tool_call_id',
      'missing_required_parameter',
    ],
    [
      'a tool call without a result',
      { messages: [user, { role: 'assistant', tool_calls: [call] }, user] },
      'messages.[2].role',
      null,
    ],
    [
      'a tool call at the end',
      { messages: [user, { role: 'assistant', tool_calls: [call] }] },
      'messages.[1].role',
      null,
    ],
    ['stream_options without stream', { messages: [user], stream_options: {} }, 'stream_options', null],
    ['no choices', { messages: [user], n: 0 }, 'n', 'integer_below_min_value'],
    ['too many choices', { messages: [user], n: 129 }, 'n', 'integer_above_max_value'],
    ['too high a temperature', { messages: [user], temperature: 2.1 }, 'temperature', 'decimal_above_max_value'],
    ['a temperature as text', { messages: [user], temperature: 'hot' }, 'temperature', 'invalid_type'],
    ["a cap above the model's maximum", { messages: [user], max_tokens: 4_097 }, 'max_tokens', 'invalid_value'],
    ['top_logprobs without logprobs', { messages: [user], top_logprobs: 2 }, 'top_logprobs', null],
    ['five stop sequences', { messages: [user], stop: ['a', 'b', 'c', 'd', 'e'] }, 'stop', 'array_above_max_length'],
    ['tool_choice without tools', { messages: [user], tool_choice: 'auto' }, 'tool_choice', null],
    ['parallel_tool_calls without tools', { messages: [user], parallel_tool_calls: true }, 'parallel_tool_calls', null],
    [
      'a tool without a name',
      { messages: [user], tools: [{ type: 'function' }] },
      'tools[0].function.name',
      'missing_required_parameter',
    ],
    [
      'a tool choice that is not offered',
      { messages: [user], tools: [tool], tool_choice: { type: 'function', function: { name: 'g' } } },
      'tool_choice',
      null,
    ],
    [
      'json_object without the word JSON in the messages',
      { messages: [user], response_format: { type: 'json_object' } },
      'messages',
      null,
    ],
    [
      'a schema without a name',
      { messages: [user], response_format: { type: 'json_schema', json_schema: {} } },
      'response_format.json_schema.name',
      'missing_required_parameter',
    ],
    ['an unknown verbosity', { messages: [user], verbosity: 'loud' }, 'verbosity', 'invalid_value'],
    ['an empty list of tools', { messages: [user], tools: [] }, 'tools', 'empty_array'],
    ['too high a logit bias', { messages: [user], logit_bias: { 5: 101 } }, 'logit_bias.5', 'decimal_above_max_value'],
    ['a field of another vendor', { messages: [user], enable_thinking: true }, 'enable_thinking', 'unknown_parameter'],
    ['an empty list of parts', { messages: [{ role: 'user', content: [] }] }, 'messages[0].content', 'empty_array'],
    [
      'an empty list of tool calls',
      { messages: [user, { role: 'assistant', content: 'a', tool_calls: [] }, user] },
      'messages[1].tool_calls',
      'empty_array',
    ],
    [
      'an effort for a model without reasoning',
      { messages: [user], reasoning_effort: 'low' },
      'reasoning_effort',
      'unsupported_parameter',
    ],
  ])('a request is refused with a 400: %s', async (_, body, param, code) => {
    const error = await errorOf(post({ model: 'plain', ...body }))
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error', param, code })
  })

  test.each([
    [{ id: '' }, 'id', 'missing_required_parameter'],
    [{ type: undefined }, 'type', 'invalid_value'],
    [{ function: { arguments: '{}' } }, 'function.name', 'missing_required_parameter'],
    [{ function: { name: 'f', arguments: {} } }, 'function.arguments', 'invalid_type'],
    [{ type: 'custom', custom: { name: 'f' } }, 'custom.input', 'invalid_type'],
  ])('an earlier tool call with %j is refused', async (change, field, code) => {
    const quoted = { role: 'assistant', tool_calls: [{ ...call, ...change }] }
    const result = { role: 'tool', tool_call_id: 'call_1', content: 'done' }
    const error = await errorOf(post({ model: 'plain', messages: [user, quoted, result] }))
    expect(error).toMatchObject({ status: 400, param: `messages[1].tool_calls[0].${field}`, code })
  })

  test.each([
    [{ type: 'text' }, 'text', 'missing_required_parameter'],
    [{ type: 'image_url', image_url: 'https://h.example/a.png' }, 'image_url.url', 'missing_required_parameter'],
    [{ type: 'image_url', image_url: { url: 'AAAA' } }, 'image_url.url', 'invalid_value'],
    [
      { type: 'image_url', image_url: { url: 'https://h.example/a.png', detail: 'fine' } },
      'image_url.detail',
      'invalid_value',
    ],
    [{ type: 'input_audio', input_audio: { data: 'AA', format: 'ogg' } }, 'input_audio.format', 'invalid_value'],
    [{ type: 'input_audio', input_audio: { format: 'wav' } }, 'input_audio.data', 'missing_required_parameter'],
    [{ type: 'file', file: { filename: 'a.pdf' } }, 'file.file_id', 'missing_required_parameter'],
  ])('the content part %j is refused', async (part, field, code) => {
    const error = await errorOf(post({ model: 'plain', messages: [{ role: 'user', content: [part] }] }))
    expect(error).toMatchObject({ status: 400, param: `messages[0].content[0].${field}`, code })
  })

  const named = { type: 'object', properties: { x: { type: 'number' } } }
  test.each([
    [named, "In context=(), 'additionalProperties' is required"],
    [{ ...named, additionalProperties: false }, "Missing 'x'"],
    [
      { type: 'object', properties: { y: named }, required: ['y'], additionalProperties: false },
      "In context=(/y), 'additionalProperties' is required",
    ],
  ])('a schema is refused as strict and accepted otherwise: %j', async (schema, message) => {
    const answer = { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema } }
    const format = await errorOf(say('hi', { response_format: answer }))
    expect([format.status, format.message]).toEqual([400, expect.stringContaining(message)])
    const strict = { type: 'function', function: { name: 'f', strict: true, parameters: schema } }
    const offered = await errorOf(say('hi', { tools: [strict] }))
    expect([offered.status, offered.message]).toEqual([400, expect.stringContaining(message)])
    // A schema that is not marked strict is not checked.
    const loose = { type: 'function', function: { name: 'f', parameters: schema } }
    expect((await say('hi', { tools: [loose] })).status).toBe(200)
  })

  test('a pattern that Python does not read is refused in every tool', async () => {
    const { status, code, message } = await errorOf(say('hi', offering('^\\p{L}$')))
    expect({ status, code }).toEqual({ status: 400, code: 'invalid_function_parameters' })
    expect(message).toBe("Invalid schema for function 'f': '^\\p{L}$' is not a 'regex'.")
    expect((await say('hi', offering('^\\\\p{2}$'))).status).toBe(200)
  })

  test('a prompt longer than the context is refused', async () => {
    const error = await errorOf(say('word '.repeat(100_000)))
    expect(error).toMatchObject({ status: 400, code: 'context_length_exceeded', param: 'messages' })
    expect(error.message).toContain('maximum context length is 100000 tokens')
  })

  test('DashScope and Ark refuse with error codes of their own', async () => {
    const dashscope = await errorOf(say('hi', { model: 'qwen-plus', n: 0 }, { vendor: 'dashscope' }))
    expect(dashscope).toMatchObject({ status: 400, code: 'invalid_parameter_error' })
    const ark = await errorOf(say('hi', { model: 'doubao', messages: null }, { vendor: 'ark' }))
    expect(ark).toMatchObject({ status: 400, code: 'MissingParameter.messages', type: 'BadRequest' })
  })

  test('null counts as absent', async () => {
    const nothing = {
      temperature: null,
      stop: null,
      tools: null,
      tool_choice: null,
      n: null,
      response_format: null,
      stream_options: null,
      max_tokens: null,
    }
    expect((await say('hi', nothing)).status).toBe(200)
    expect((await say('hi', { model: 'thinker', ...nothing })).status).toBe(200)
  })

  test('metadata is accepted only for an answer that is stored, and only texts in it', async () => {
    const unstored = await errorOf(say('hi', { metadata: { a: 'b' } }))
    expect(unstored).toMatchObject({ status: 400, param: 'metadata', code: null })
    expect(unstored.message).toBe("The 'metadata' parameter is only allowed when 'store' is enabled.")
    const number = await errorOf(say('hi', { metadata: { a: 1 }, store: true }))
    expect(number).toMatchObject({ status: 400, param: 'metadata.a', code: 'invalid_type' })
    expect((await say('hi', { metadata: { a: 'b' }, store: true })).status).toBe(200)
  })
})

describe('a reasoning model of OpenAI', () => {
  test.each([
    [{ max_tokens: 5 }, 'max_tokens', 'unsupported_parameter'],
    [{ temperature: 0.2 }, 'temperature', 'unsupported_value'],
    [{ top_p: 1 }, 'top_p', 'unsupported_parameter'],
    [{ stop: 'x' }, 'stop', 'unsupported_parameter'],
    [{ frequency_penalty: 0 }, 'frequency_penalty', 'unsupported_parameter'],
    [{ presence_penalty: 0 }, 'presence_penalty', 'unsupported_parameter'],
    [{ logit_bias: {} }, 'logit_bias', 'unsupported_parameter'],
    [{ logprobs: true }, 'logprobs', 'unsupported_parameter'],
    [{ prediction: {} }, 'prediction', 'unsupported_parameter'],
    [{ modalities: ['text'] }, 'modalities', 'unsupported_parameter'],
  ])('%j is refused', async (more, param, code) => {
    expect(await errorOf(say('hi', { model: 'thinker', ...more }))).toMatchObject({ status: 400, param, code })
  })

  test('an unsupported effort is refused with a list of the supported ones', async () => {
    const several = await errorOf(say('hi', { model: 'thinker', reasoning_effort: 'max' }))
    expect(several.message).toBe(
      "Unsupported value: 'reasoning_effort' does not support 'max' with this model. Supported values are: 'minimal', 'low', 'medium', and 'high'.",
    )
    const one = await errorOf(say('hi', { model: 'one-effort', reasoning_effort: 'high' }))
    expect(one).toMatchObject({ status: 400, param: 'reasoning_effort', code: 'unsupported_value' })
    expect(one.message).toEndWith("Supported values are: 'medium'.")
  })

  test.each([
    ['gpt-5.4', { reasoning_effort: 'low' }, 400],
    ['gpt-5.4', { reasoning_effort: 'none' }, 200],
    ['gpt-5.4', {}, 200],
    ['gpt-5.6-sol', { reasoning_effort: 'low' }, 400],
    ['gpt-5.6-sol', {}, 400],
    ['gpt-5.6-sol', { reasoning_effort: 'none' }, 200],
    ['gpt-6.1-terra', {}, 400],
    ['gpt-6.1-terra', { reasoning_effort: 'none' }, 400],
    ['thinker', { reasoning_effort: 'low' }, 200],
  ])('functions together with reasoning depend on the model: %s, %p', async (model, more, status) => {
    const response = await say('hi', { model, tools: [tool], ...more })
    expect(response.status).toBe(status)
    if (status === 200) return
    expect(await errorOf(response)).toMatchObject({
      type: 'invalid_request_error',
      param: 'reasoning_effort',
      message: expect.stringMatching(/use \/v1\/responses(?: or set reasoning_effort to 'none')?\.$/),
    })
    expect((await say('hi', { model, ...more })).status).toBe(200)
  })

  test('a model of the newer protocol alone is refused', async () => {
    expect(await errorOf(say('hi', { model: 'gpt-5.3-codex' }))).toMatchObject({ status: 404, param: 'model' })
  })

  test.each([
    [{ thinking: { type: 'disabled' } }, 400],
    [{ temperature: 0.7 }, 400],
    [{ n: 2 }, 400],
    [{ temperature: 1, n: 1, reasoning_effort: 'low' }, 200],
  ])('Kimi always thinks, in its own way: %j', async (more, status) => {
    expect((await say('hi', { model: 'kimi-k3', ...more }, { vendor: 'moonshot' })).status).toBe(status)
  })

  test('temperature 1 is accepted, and DeepSeek accepts the other parameters', async () => {
    expect((await say('hi', { model: 'thinker', temperature: 1 })).status).toBe(200)
    const more = {
      model: 'reasoner',
      temperature: 0.2,
      top_p: 0.5,
      max_tokens: 100,
      stop: 'x',
      reasoning_effort: 'low',
    }
    expect((await say('hi', more, { vendor: 'deepseek' })).status).toBe(200)
  })
})
