import { describe, expect, test } from 'bun:test'
import { errorOf } from '../../../test/support/thrown.ts'
import type { JsonObject } from '../../base/json.ts'
import { imageTokensMax } from '../estimate.ts'
import { responsesChat } from './chat.ts'
import { plainModel } from '../../capabilities/testing.ts'
import { askOf } from './testing.ts'

const search = { type: 'web_search' }
const estimate = (body: JsonObject) => responsesChat.estimateInput(askOf(body, {}, 90_000))

const few = (mode: string, ...types: string[]) => {
  return { type: 'allowed_tools', mode, tools: types.map((type) => ({ type })) }
}

const refused = (body: JsonObject, more = {}) => {
  const { message, details } = errorOf(() => askOf(body, more))
  return { message, param: details.param, code: details.code }
}

describe('the facts of an ask', () => {
  test('an ask has one choice, bounds within the model’s limits and usage that is always shown', () => {
    expect(askOf({})).toMatchObject({
      capability: 'chat',
      protocol: 'responses',
      model: 'm',
      stream: false,
      usageShown: true,
      choices: 1,
      outputTokensMax: 1_000,
      inputTokensMax: 1_000,
      searchesMax: 0,
      bound: { input: 1_000, output: 1_000, webSearch: 0, request: 1 },
    })
    expect(askOf({ stream: true, max_output_tokens: 7 })).toMatchObject({ stream: true, outputTokensMax: 7 })
    expect(askOf({ max_output_tokens: 7_000 }).outputTokensMax).toBe(1_000)
    expect(askOf({}, {}, 1_000_000).inputTokensMax).toBe(plainModel.contextTokens)
  })

  test('images and files by URL raise the input bound, in messages and in tool results', () => {
    const image = { type: 'input_image', image_url: 'https://a.example/a.png' }
    const message = { role: 'user', content: [image] }
    const result = { type: 'function_call_output', call_id: 'c', output: [image] }
    expect(askOf({ input: [message] }).inputTokensMax).toBe(1_000 + imageTokensMax)
    expect(askOf({ input: [message, result] }).inputTokensMax).toBe(plainModel.contextTokens)
    expect(askOf({ input: [result] }).inputTokensMax).toBe(1_000 + imageTokensMax)
    const made = { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: null }
    expect(askOf({ input: [made, { role: 'user', content: 'Hi' }] }).inputTokensMax).toBe(1_000 + imageTokensMax)
    const file = { type: 'input_file', file_url: 'https://a.example/a.pdf' }
    expect(askOf({ input: [{ role: 'user', content: [file] }] }).inputTokensMax).toBe(plainModel.contextTokens)
    const audio = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }
    expect(askOf({ input: [{ role: 'user', content: [audio] }] }).inputTokensMax).toBe(plainModel.contextTokens)
    const text = { type: 'input_text', text: 'Hi' }
    expect(askOf({ input: [{ role: 'user', content: [text] }] }).inputTokensMax).toBe(1_000)
  })

  test('plain-text tools raise the input bound by what we add to them', () => {
    const plain = { type: 'custom', name: 'f' }
    const inside = { type: 'namespace', name: 'n', description: '', tools: [{ type: 'custom', name: 'g' }] }
    expect(askOf({ tools: [plain, inside] }).inputTokensMax).toBe(1_400)
  })

  test('searchesMax counts the searches allowed, and the input bound covers what they find', () => {
    expect(askOf({ tools: [search] })).toMatchObject({ searchesMax: 5, inputTokensMax: plainModel.contextTokens })
    expect(askOf({ tools: [search], max_tool_calls: 2 }).searchesMax).toBe(2)
    expect(askOf({ tools: [search], tool_choice: 'none' }).searchesMax).toBe(0)
    const inIndex = { ...search, external_web_access: false }
    expect(askOf({ tools: [inIndex] }, { sells: () => false })).toMatchObject({ searchesMax: 0, inputTokensMax: 1_000 })
    const later = { type: 'additional_tools', role: 'developer', tools: [search] }
    expect(askOf({ input: [later, { role: 'user', content: 'Hi' }] }).searchesMax).toBe(5)
  })
})

describe('a request that is refused', () => {
  test('fields that need stored state are refused with what to send instead', () => {
    for (const field of ['previous_response_id', 'conversation', 'prompt']) {
      const { message, param, code } = refused({ [field]: 'kept', input: null })
      expect({ param, code }).toEqual({ param: field, code: 'unsupported_value' })
      expect(message).toContain('`input`')
    }
    expect(refused({ background: true }).message).toContain('`stream`')
    expect(askOf({ background: false, previous_response_id: null, store: true }).model).toBe('m')
    for (const field of ['context_management', 'moderation']) expect(refused({ [field]: {} }).param).toBe(field)
  })

  test.each([
    ['max_tokens', 9, '`max_output_tokens`'],
    ['max_completion_tokens', 9, '`max_output_tokens`'],
    ['response_format', { type: 'json_object' }, '`text.format`'],
    ['reasoning_effort', 'low', '`reasoning.effort`'],
    ['verbosity', 'low', '`text.verbosity`'],
    ['messages', [{ role: 'user', content: 'Hi' }], '`input`'],
    ['functions', [{ name: 'f' }], '`tools`'],
    ['function_call', 'auto', '`tool_choice`'],
    ['web_search_options', {}, '`web_search`'],
    ['stop', ['.'], 'send the request there'],
    ['n', 2, 'send the request there'],
  ])('the chat completions field %s is refused with what to write instead', (field, value, instead) => {
    const { message, param, code } = refused({ [field]: value })
    expect({ param, code }).toEqual({ param: field, code: 'unsupported_parameter' })
    expect(message).toStartWith(`'${field}' is a field of \`/v1/chat/completions\``)
    expect(message.slice(`'${field}' is a field of \`/v1/chat/completions\``.length)).toContain(instead)
    expect(askOf({ [field]: null }).model).toBe('m')
  })

  test('unsupported reasoning modes, reasoning contexts and image settings are refused', () => {
    expect(refused({ reasoning: { mode: 'pro' } })).toMatchObject({
      param: 'reasoning.mode',
      code: 'unsupported_value',
    })
    expect(refused({ reasoning: { context: 'current_turn' } }).param).toBe('reasoning.context')
    expect(askOf({ reasoning: { context: 'all_turns' } }).model).toBe('m')
    expect(refused({ image: { context_compression: 'enabled' } }).param).toBe('image')
    expect(askOf({ n: 1, image: null, reasoning: { mode: 'standard', context: 'auto' } }).model).toBe('m')
    expect(askOf({ reasoning: { mode: null, context: null } }).model).toBe('m')
  })

  test('tools, tool options and service tiers without a price are refused', () => {
    const unsold = { sells: () => false }
    expect(refused({ tools: [search] }, unsold)).toMatchObject({ param: 'tools[0].type', code: 'unsupported_value' })
    const later = { type: 'additional_tools', role: 'developer', tools: [search] }
    expect(refused({ input: [later] }, unsold).param).toBe('input[0].tools[0].type')
    expect(refused({ service_tier: 'flex' }).message).toContain("'auto', 'default', and 'standard_only'")
    expect(refused({ tools: [{ ...search, filters: { allowed_domains: ['a.example'] } }] }).param).toBe(
      'tools[0].filters',
    )
    expect(refused({ tools: [{ ...search, user_location: { type: 'approximate' } }] }).param).toBe(
      'tools[0].user_location',
    )
  })

  test('an effort or a temperature that the model does not support is refused', () => {
    const reasoning = { reasoning: true, efforts: ['low', 'medium', 'high'] }
    expect(refused({ reasoning: { effort: 'minimal' } }, reasoning)).toEqual({
      message:
        "Unsupported value: 'minimal' is not supported with the 'm' model. Supported values are: 'low', 'medium', and 'high'.",
      param: 'reasoning.effort',
      code: 'unsupported_value',
    })
    expect(refused({ reasoning: { effort: 'huge' } }).param).toBe('reasoning.effort')
    expect(refused({ reasoning: { effort: 'low' } }, { refusesEffort: true })).toMatchObject({
      param: 'reasoning.effort',
      code: 'unsupported_parameter',
    })
    expect(refused({ temperature: 0.2 }, reasoning)).toMatchObject({ param: 'temperature', code: 'unsupported_value' })
    expect(askOf({ temperature: 1, top_p: 0.2, top_logprobs: 3 }, reasoning).native).toEqual({
      model: 'm',
      input: 'Hi',
      temperature: 1,
    })
  })

  test('a tool choice is refused where the tool that it needs is not offered', () => {
    const inIndex = { ...search, external_web_access: false }
    expect(refused({ tools: [], tool_choice: 'required' }).param).toBe('tool_choice')
    expect(refused({ tools: [inIndex], tool_choice: 'required' }).message).toContain('none of them is offered')
    expect(refused({ tools: [inIndex], tool_choice: few('required', 'web_search') }).param).toBe('tool_choice')
    const empty = { type: 'namespace', name: 'n', description: '', tools: [] }
    expect(refused({ tools: [empty], tool_choice: 'required' }).param).toBe('tool_choice')
    const tools = [{ type: 'function', name: 'f' }]
    expect(refused({ tools, tool_choice: few('required', 'web_search') }).param).toBe('tool_choice.tools[0].type')
    expect(refused({ tools, tool_choice: few('auto', 'web_search') }).param).toBe('tool_choice.tools[0].type')
    expect(askOf({ tools: [inIndex], tool_choice: few('auto', 'web_search') }).searchesMax).toBe(0)
    expect(askOf({ tools: [search], tool_choice: few('required', 'web_search') }).searchesMax).toBe(5)
    expect(askOf({ tools: [search], tool_choice: 'required' }).searchesMax).toBe(5)
    expect(askOf({ tools: [...tools, inIndex], tool_choice: 'required' }).searchesMax).toBe(0)
  })

  test('files given by file_id are refused', () => {
    const part = { type: 'input_file', file_id: 'file_1' }
    expect(refused({ input: [{ role: 'user', content: [part] }] }).param).toBe('input[0].content[0].file_id')
    expect(refused({ input: ['x', { role: 'user', content: ['x', part] }] }).param).toBe('input[1].content[1].file_id')
    const result = { type: 'function_call_output', call_id: 'c', output: [part] }
    expect(refused({ input: [result] }).param).toBe('input[0].output[0].file_id')
  })

  test('hosted tool search and the code interpreter are refused', () => {
    expect(refused({ tools: [{ type: 'tool_search' }] }).param).toBe('tools[0].execution')
    expect(refused({ tools: [{ type: 'code_interpreter', container: 'x' }] }).message).toContain("'web_search'")
  })
})

test('the estimate counts text and images, not encrypted content, base64 data or URLs', () => {
  const words = estimate({ input: 'The long road to the north.' })
  expect(words).toBeGreaterThan(4)
  expect(estimate({ input: [{ role: 'user', content: 'The long road to the north.' }] })).toBeGreaterThanOrEqual(words)
  const sealed = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x'.repeat(9_000) }
  const user = { role: 'user', content: 'Hi' }
  expect(estimate({ input: [sealed, user] })).toBe(estimate({ input: [user] }))
  const image = { type: 'input_image', image_url: `data:image/png;base64,${'x'.repeat(9_000)}` }
  const seen = estimate({ input: [{ role: 'user', content: [image] }] })
  expect(seen).toBeGreaterThanOrEqual(1_500)
  expect(seen).toBeLessThan(1_600)
  const file = { type: 'input_file', file_url: 'https://papers.example/'.padEnd(9_000, 'x') }
  expect(estimate({ input: [{ role: 'user', content: [file] }] })).toBeLessThan(10)
  expect(estimate({ input: 'data: The long road to the north.' })).toBeGreaterThanOrEqual(words)
})

test('parameter names of tools are counted as text', () => {
  const names = ['customer_identifier', 'shipping_address', 'delivery_date']
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]))
  const tools = [{ type: 'function', name: 'order', parameters: { type: 'object', properties } }]
  expect(estimate({ input: 'Hi', tools }) - estimate({ input: 'Hi' })).toBeGreaterThan(30)
})
