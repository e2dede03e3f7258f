import { describe, expect, test } from 'bun:test'
import { errorOf } from '../../../test/support/thrown.ts'
import { parseBody, type JsonObject } from '../../base/json.ts'
import type { ChatTraits } from '../../capabilities/chat.ts'
import { plainModel } from '../../capabilities/testing.ts'
import { readAsk } from './chat-ask.ts'

const plain: ChatTraits = {
  ...plainModel,
  efforts: ['low', 'high'],
  sells: (unit) => unit === 'input' || unit === 'output',
}
const reasoning: ChatTraits = { ...plain, reasoning: true }
const speaking: ChatTraits = { ...plain, sells: () => true }

const base = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] }
const tool = { type: 'function', function: { name: 'f' } }

/** As a client would send it: undefined leaves a field out. */
function read(fields: Record<string, unknown>, traits: ChatTraits = plain) {
  const text = JSON.stringify({ ...base, ...fields })
  const body = parseBody(text, { depthMax: 128, keysMax: 1_000 }) as JsonObject
  return readAsk({ body, bodyBytes: text.length, files: [], header: () => null }, () => traits)
}

function refusal(fields: Record<string, unknown>, traits: ChatTraits = plain) {
  const { kind, message, details } = errorOf(() => read(fields, traits))
  return { kind, param: details.param, code: details.code, message }
}

/** For every field of the specification's chat table: values it takes, and values it refuses with the error's code. */
const table: readonly {
  field: string
  takes: readonly unknown[]
  refuses: readonly (readonly [value: unknown, code: string, param?: string])[]
  beside?: Record<string, unknown>
  traits?: ChatTraits
}[] = [
  {
    field: 'model',
    takes: ['m'],
    refuses: [
      [undefined, 'missing_required_parameter'],
      [null, 'missing_required_parameter'],
      ['', 'missing_required_parameter'],
      [5, 'invalid_type'],
    ],
  },
  {
    field: 'messages',
    takes: [
      [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi', name: 'Ann' },
      ],
      [{ role: 'developer', content: [{ type: 'text', text: 'Be brief.' }] }],
      [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x/y.png', detail: 'low' } }] }],
      [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA' }, odd: 1 }] }],
      [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'AA', format: 'wav' } }] }],
      [{ role: 'user', content: [{ type: 'file', file: { file_id: 'f' } }] }],
      [{ role: 'user', content: [{ type: 'video_url', video_url: { url: 'https://x/y.mp4' } }] }],
      [
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'c', content: 'done' },
      ],
      [{ role: 'assistant', tool_calls: [{ id: 'c', type: 'custom', custom: { name: 'f', input: '' } }] }],
      [{ role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }],
      [{ role: 'function', name: 'f', content: null }],
    ],
    refuses: [
      [undefined, 'missing_required_parameter'],
      [null, 'invalid_type'],
      ['Hi', 'invalid_type'],
      [[], 'invalid_value'],
      [[{ content: 'Hi' }], 'invalid_value', 'messages[0].role'],
      [[{ role: 'nobody', content: 'Hi' }], 'invalid_value', 'messages[0].role'],
      [[{ role: 'user', content: 5 }], 'invalid_type', 'messages[0].content'],
      [[{ role: 'user', content: [] }], 'invalid_value', 'messages[0].content'],
      [[{ role: 'user', content: [{ type: 'odd' }] }], 'invalid_value', 'messages[0].content[0].type'],
      [[{ role: 'tool', content: 'x' }], 'missing_required_parameter', 'messages[0].tool_call_id'],
      [
        [
          { role: 'user', content: 'a' },
          { role: 'user', content: 'b', name: 5 },
        ],
        'invalid_type',
        'messages[1].name',
      ],
    ],
  },
  {
    field: 'stream',
    takes: [true, false, null],
    refuses: [
      ['true', 'invalid_type'],
      [1, 'invalid_type'],
    ],
  },
  {
    field: 'temperature',
    takes: [0, 0.5, 2, null],
    refuses: [
      [-0.01, 'invalid_value'],
      [2.01, 'invalid_value'],
      ['1', 'invalid_type'],
    ],
  },
  {
    field: 'top_p',
    takes: [0, 1, null],
    refuses: [
      [-0.1, 'invalid_value'],
      [1.01, 'invalid_value'],
      [true, 'invalid_type'],
    ],
  },
  {
    field: 'max_tokens',
    takes: [1, 1_000_000, null],
    refuses: [
      [0, 'invalid_value'],
      [1.5, 'invalid_type'],
      ['5', 'invalid_type'],
    ],
  },
  {
    field: 'max_completion_tokens',
    takes: [1, null],
    refuses: [
      [-1, 'invalid_value'],
      [0.5, 'invalid_type'],
    ],
  },
  {
    field: 'tools',
    takes: [
      [tool],
      [
        {
          type: 'function',
          function: { name: 'a-Z_9', description: 'x', parameters: { type: 'object' }, strict: true },
        },
      ],
      [{ type: 'custom', custom: { name: 'g', format: { type: 'text' } } }],
      [],
      null,
    ],
    refuses: [
      [{}, 'invalid_type'],
      [[{ type: 'odd' }], 'invalid_value', 'tools[0].type'],
      [[{ type: 'function', function: {} }], 'missing_required_parameter', 'tools[0].function.name'],
      [[{ type: 'function', function: { name: 'a b' } }], 'invalid_value', 'tools[0].function.name'],
      [[{ type: 'function', function: { name: 'x'.repeat(65) } }], 'invalid_value', 'tools[0].function.name'],
    ],
  },
  {
    field: 'tool_choice',
    beside: { tools: [tool] },
    takes: [
      'auto',
      'none',
      'required',
      { type: 'function', function: { name: 'f' } },
      { type: 'custom', custom: { name: 'f' } },
      { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [{}] } },
      'f',
      null,
    ],
    refuses: [
      ['g', 'invalid_value'],
      ['', 'invalid_value'],
      [5, 'invalid_type'],
    ],
  },
  {
    field: 'parallel_tool_calls',
    beside: { tools: [tool] },
    takes: [true, false, null],
    refuses: [['true', 'invalid_type']],
  },
  {
    field: 'response_format',
    takes: [
      { type: 'text' },
      { type: 'json_object' },
      { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' }, strict: true } },
      null,
    ],
    refuses: [
      ['json', 'invalid_type'],
      [{ type: 'xml' }, 'invalid_value', 'response_format.type'],
      [{ type: 'json_schema' }, 'missing_required_parameter', 'response_format.json_schema'],
      [{ type: 'json_schema', json_schema: {} }, 'missing_required_parameter', 'response_format.json_schema.name'],
    ],
  },
  {
    field: 'stop',
    takes: ['x', ['x'], ['1', '2', '3', '4'], null],
    refuses: [
      [{}, 'invalid_type'],
      [5, 'invalid_type'],
      [['1', '2', '3', '4', '5'], 'invalid_value'],
    ],
  },
  {
    field: 'n',
    takes: [1, 8, null],
    refuses: [
      [0, 'invalid_value'],
      [9, 'invalid_value'],
      [1.5, 'invalid_type'],
      ['2', 'invalid_type'],
    ],
  },
  {
    field: 'seed',
    takes: [0, -5, 9_007_199_254_740_991, null],
    refuses: [
      [1.5, 'invalid_type'],
      ['1', 'invalid_type'],
    ],
  },
  {
    field: 'frequency_penalty',
    takes: [-2, 2, null],
    refuses: [
      [2.01, 'invalid_value'],
      [-2.01, 'invalid_value'],
    ],
  },
  {
    field: 'presence_penalty',
    takes: [-2, 2, null],
    refuses: [
      [2.01, 'invalid_value'],
      ['0', 'invalid_type'],
    ],
  },
  {
    field: 'logit_bias',
    takes: [{ '50256': -100, '1': 100 }, {}, null],
    refuses: [
      [[], 'invalid_type'],
      [{ '1': 101 }, 'invalid_value', 'logit_bias.1'],
      [{ '1': 'x' }, 'invalid_type', 'logit_bias.1'],
    ],
  },
  { field: 'logprobs', takes: [true, false, null], refuses: [['true', 'invalid_type']] },
  {
    field: 'top_logprobs',
    beside: { logprobs: true },
    takes: [0, 20, null],
    refuses: [
      [21, 'invalid_value'],
      [-1, 'invalid_value'],
      [1.5, 'invalid_type'],
    ],
  },
  {
    field: 'reasoning_effort',
    takes: ['low', 'high', null],
    refuses: [
      ['xhigh', 'unsupported_value'],
      [5, 'invalid_type'],
    ],
  },
  {
    field: 'verbosity',
    takes: ['low', 'medium', 'high', null],
    refuses: [
      ['loud', 'invalid_value'],
      [1, 'invalid_value'],
    ],
  },
  {
    field: 'modalities',
    traits: speaking,
    takes: [['text'], ['text', 'audio'], ['image', 'text'], null],
    refuses: [['text', 'invalid_type']],
  },
  {
    field: 'audio',
    traits: speaking,
    beside: { modalities: ['audio'] },
    takes: [{ voice: 'alloy', format: 'wav' }, { voice: { id: 'v' }, format: 'mp3' }, null],
    refuses: [
      ['alloy', 'invalid_type'],
      [{ voice: 'alloy' }, 'missing_required_parameter', 'audio.format'],
    ],
  },
  { field: 'prediction', takes: [{ type: 'content', content: 'x' }, null], refuses: [['x', 'invalid_type']] },
  {
    field: 'stream_options',
    beside: { stream: true },
    takes: [{ include_usage: true }, { include_obfuscation: false }, {}, null],
    refuses: [
      [true, 'invalid_type'],
      [{ include_usage: 'yes' }, 'invalid_type', 'stream_options.include_usage'],
    ],
  },
  { field: 'store', takes: [true, false, null], refuses: [['true', 'invalid_type']] },
  {
    field: 'metadata',
    takes: [{ a: 'b' }, { a: 1, tags: ['a'], more: { deep: null } }, { a: 'x'.repeat(513) }, {}, null],
    refuses: [
      ['x', 'invalid_type'],
      [['a'], 'invalid_type'],
    ],
  },
  { field: 'user', takes: ['ann', '', null], refuses: [[5, 'invalid_type']] },
  { field: 'prompt_cache_key', takes: ['k', null], refuses: [[{}, 'invalid_type']] },
  { field: 'prompt_cache_retention', takes: ['24h', 'in_memory', null], refuses: [[24, 'invalid_type']] },
]

describe.each(table)('the field $field', ({ field, takes, refuses, beside = {}, traits = plain }) => {
  test.each(takes.map((value) => [JSON.stringify(value), value] as const))('%s is accepted', (_shown, value) => {
    expect(read({ ...beside, [field]: value }, traits).model).toBe('m')
  })

  test.each(
    refuses.map(([value, code, param]) => [JSON.stringify(value) ?? 'nothing', value, code, param ?? field] as const),
  )('%s is refused with its param and code', (_shown, value, code, param) => {
    expect(refusal({ ...beside, [field]: value }, traits)).toMatchObject({ kind: 'bad-request', param, code })
  })
})

describe('fields that need each other', () => {
  test.each([
    [{ top_logprobs: 2 }, 'top_logprobs'],
    [{ top_logprobs: 0, logprobs: false }, 'top_logprobs'],
    [{ stream_options: {} }, 'stream_options'],
    [{ tool_choice: 'auto' }, 'tool_choice'],
    [{ tool_choice: 'auto', tools: [] }, 'tool_choice'],
    [{ parallel_tool_calls: false }, 'parallel_tool_calls'],
    [{ audio: { voice: 'alloy', format: 'wav' } }, 'audio'],
    [{ audio: { voice: 'alloy', format: 'wav' }, modalities: ['text'] }, 'audio'],
  ])('%j is refused for lack of a field that it depends on', (fields, param) => {
    expect(refusal(fields, speaking)).toMatchObject({ param, code: 'invalid_value' })
  })
})

const refusedEffort = (efforts: readonly string[]) =>
  refusal({ reasoning_effort: 'odd' }, { ...reasoning, efforts }).message

describe('a reasoning model', () => {
  test('fields that a reasoning model ignores are removed before they are checked', () => {
    const ask = read(
      {
        top_p: 9,
        stop: 5,
        top_logprobs: 3,
        audio: 'x',
        modalities: 7,
        logit_bias: 1,
        prediction: [],
        logprobs: 'a',
        frequency_penalty: 'b',
        presence_penalty: {},
      },
      reasoning,
    )
    expect(Object.keys(ask.native).toSorted()).toEqual(['messages', 'model'])
  })

  test('a reasoning model accepts only the default temperature', () => {
    expect(read({ temperature: 1 }, reasoning).native['temperature']).toBe(1)
    expect(refusal({ temperature: 0 }, reasoning)).toMatchObject({ param: 'temperature', code: 'unsupported_value' })
  })

  test('an unsupported effort is refused with the list of supported ones', () => {
    expect(refusedEffort(['medium'])).toEndWith("Supported values are: 'medium'.")
    expect(refusedEffort(['low', 'high'])).toContain("'low'")
    expect(refusedEffort(['none', 'low', 'high'])).toEndWith("Supported values are: 'none', 'low', and 'high'.")
  })

  test.each(['none', 'xhigh', 'max', 'default'])(
    'the effort %s is passed to the vendor where the model’s efforts are unknown',
    (effort) => {
      const { native } = read({ reasoning_effort: effort }, { ...reasoning, efforts: [] })
      expect(native['reasoning_effort']).toBe(effort)
    },
  )

  test('an effort that no vendor has is refused even where the model’s efforts are unknown', () => {
    expect(refusedEffort([])).toContain("Supported values are: 'none', 'minimal', 'low'")
  })
})
