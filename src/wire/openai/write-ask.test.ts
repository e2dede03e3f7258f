import { expect, test } from 'bun:test'
import { errorOf } from '../../../test/support/thrown.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Protocol } from '../../capabilities/chat.ts'
import type { AssistantBlock, Conversation } from '../../capabilities/conversation.ts'
import { plainConversation } from '../../capabilities/testing.ts'
import { writeAsk as writeResponsesAsk } from '../responses/write-ask.ts'
import { plainAsk, target } from './testing.ts'
import { writeAsk, writeSchema, type TranslationTarget } from './write-ask.ts'

const conversation: Conversation = { ...plainConversation, verbosity: 'low', cacheKey: 'mine' }

const sent = (takesHints: boolean) => {
  const written = writeAsk(plainAsk, conversation, { ...target, takesHints, namespaced: (label) => `ours-${label}` })
  return JSON.parse(written) as JsonObject
}

test('hints go only to vendors that take them, and the cache key is namespaced', () => {
  expect(sent(true)).toMatchObject({ verbosity: 'low', prompt_cache_key: 'ours-mine' })
  for (const hint of ['verbosity', 'prompt_cache_key']) expect(sent(false)).not.toHaveProperty(hint)
})

const searching: Conversation = { ...conversation, hostedTools: [{ kind: 'web-search' }] }

test.each([
  ['chat completions', writeAsk],
  ['responses', writeResponsesAsk],
])('a hosted search that cannot be written in %s is refused, and left out for clients of messages', (_name, write) => {
  const paramOf = (protocol: Protocol) =>
    errorOf(() => write({ ...plainAsk, protocol }, searching, target)).details.param
  expect([paramOf('openai'), paramOf('responses')]).toEqual(['web_search_options', 'tools'])
  expect(JSON.parse(write({ ...plainAsk, protocol: 'anthropic' }, searching, target))).not.toHaveProperty('tools')
})

const formOf = (schema: JsonObject) => writeSchema({ kind: 'schema', schema })
const said = (text: string, isApart?: boolean): AssistantBlock => {
  return { kind: 'text', text, ...(isApart !== undefined && { isApart }) }
}
const call: AssistantBlock = { kind: 'tool-call', id: 'c', name: 'f', argumentsText: '{}' }

test.each([
  ['that were cut for a citation are joined', [said('Oslo is '), said('cold'), said('.')], 'Oslo is cold.'],
  ['from separate messages are separated', [said('One.'), said('Two.', true)], 'One.\n\nTwo.'],
  ['around a call are separated', [said('One.'), call, said('Two.')], 'One.\n\nTwo.'],
  ['around thinking are separated', [said('One.'), { kind: 'thinking', text: 'Hm' }, said('Two.')], 'One.\n\nTwo.'],
  ['after something else begin without a separator', [call, said('One.', true)], 'One.'],
] satisfies [string, AssistantBlock[], string][])('texts of an assistant %s', (_name, blocks, content) => {
  const turns = [...conversation.turns, { role: 'assistant' as const, blocks }]
  const { messages } = JSON.parse(writeAsk(plainAsk, { ...conversation, turns }, target)) as { messages: JsonObject[] }
  expect(messages[1]).toMatchObject({ role: 'assistant', content })
})

function effortOf(fields: Partial<Conversation>, to: Partial<TranslationTarget>): unknown {
  const written = writeAsk(plainAsk, { ...conversation, ...fields }, { ...target, ...to })
  return (JSON.parse(written) as JsonObject)['reasoning_effort']
}

test.each([
  // With tools in chat completions, OpenAI refuses these any effort but `none`; the newest think by default.
  ['gpt-5.6-sol', { effort: 'high', isShown: true }, 'none'],
  ['gpt-5.6-sol', undefined, 'none'],
  ['gpt-5.4-mini', { effort: 'low', isShown: true }, 'none'],
  ['gpt-6-luna', { budget: 9_000, isShown: true }, 'none'],
  ['gpt-5.2', { effort: 'high', isShown: true }, 'high'],
  ['gpt-5.2', undefined, undefined],
  ['gpt-oss-120b', { effort: 'high', isShown: true }, 'high'],
] as const)('%s with tools and thinking %j gets the effort %p', (upstreamModel, thinking, effort) => {
  const to = { upstreamModel, efforts: ['none', 'low', 'high'] }
  const asked = thinking === undefined ? {} : { thinking }
  const tools = [{ name: 'f', schema: { type: 'object' } }]
  expect(effortOf({ ...asked, tools }, to)).toBe(effort)
  const alone = thinking === undefined ? undefined : 'effort' in thinking ? thinking.effort : 'high'
  expect(effortOf(asked, to)).toBe(alone)
})

test('a top-level $ref to a definition is replaced by the definition itself', () => {
  const node = {
    type: 'object',
    properties: { children: { type: 'array', items: { $ref: '#/$defs/Node' } } },
    required: ['children'],
    additionalProperties: false,
  }
  const top = { $defs: { Node: node }, $ref: '#/$defs/Node' }
  expect(formOf(top)).toMatchObject({ schema: { ...node, $defs: { Node: node } }, strict: true })
  expect(formOf(top)).not.toHaveProperty('schema.$ref')
  for (const schema of [node, { $ref: '#' }, { $ref: '#/$defs/Nobody' }]) {
    expect(formOf(schema)).toMatchObject({ schema })
  }
})

test('a tool schema gets the properties and items without which OpenAI refuses it', () => {
  const tools = [
    { name: 'f', schema: { $schema: 's', type: 'object' } },
    { name: 'g', schema: {} },
    {
      name: 'h',
      schema: {
        type: 'object',
        properties: {
          items: { type: 'array' },
          type: { type: ['array', 'null'], description: 'd' },
          tuple: { type: 'array', prefixItems: [{ type: 'array' }] },
          plain: { type: 'array', items: { anyOf: [{ type: 'array' }, { type: 'object' }] } },
        },
        $defs: { More: { type: 'array', default: [{ type: 'array' }] } },
      },
    },
  ]
  const written = JSON.parse(writeAsk(plainAsk, { ...conversation, tools }, target)) as {
    tools: { function: { parameters: unknown } }[]
  }
  expect(written.tools.map((tool) => tool.function.parameters)).toEqual([
    { type: 'object', properties: {} },
    { type: 'object', properties: {} },
    {
      type: 'object',
      properties: {
        items: { type: 'array', items: {} },
        type: { type: ['array', 'null'], description: 'd', items: {} },
        tuple: { type: 'array', prefixItems: [{ type: 'array', items: {} }], items: {} },
        plain: { type: 'array', items: { anyOf: [{ type: 'array', items: {} }, { type: 'object' }] } },
      },
      $defs: { More: { type: 'array', default: [{ type: 'array' }], items: {} } },
    },
  ])
})

const branch = (name: string) => {
  return { type: 'object', properties: { [name]: { type: 'string' } }, required: [name], additionalProperties: false }
}

test.each([
  ['chat completions', writeAsk],
  ['responses', writeResponsesAsk],
])('a union at the top of a tool schema, for which OpenAI refuses it, is merged in %s', (_name, write) => {
  const schema = { anyOf: [branch('text'), branch('url')] }
  const ask = { ...plainAsk, protocol: 'anthropic' as const }
  const written = JSON.parse(
    write(ask, { ...conversation, tools: [{ name: 'f', schema, isStrict: true }] }, target),
  ) as {
    tools: { function?: unknown }[]
  }
  const [tool] = written.tools
  expect(tool?.function ?? tool).toMatchObject({
    parameters: { type: 'object', properties: { text: { type: 'string' }, url: { type: 'string' } } },
    strict: false,
  })
  expect(JSON.stringify(tool)).not.toContain('anyOf')
})

const withField = (extra: JsonObject) => ({
  type: 'object',
  properties: { a: { anyOf: [{ type: 'string', ...extra }] } },
})

test.each([
  ['^(?!__.*__$)[^\\p{Cc}\\p{Zl}"]{1,200}$', false],
  ['\\P{L}', false],
  ['(?<year>\\d{4})\\k<year>', false],
  ['\\u{1f600}', false],
  ['\\h', false],
  ['^[\\w-.]+$', false],
  ['^[a-\\d]$', false],
  ['[^]*', false],
  ['^[a-z+\\-=[\\]{}]*$', false],
  ['^[^\\u0000]*$', true],
  ['(?<!a)\\\\p{2}', true],
  ['^[a-z\\w-]+[-\\d][+-/\\d]$', true],
  ['\\[[\\[\\]\\w\\-.]*\\]', true],
  ['a'.repeat(1_000), true],
  ['a'.repeat(1_001), false],
])(
  'the pattern %s of a tool or an answer is kept only if all vendors read it, and else told to the model: %p',
  (pattern, isKept) => {
    const rule = `{pattern: ${JSON.stringify(pattern)}}`
    const schemas = [withField({ pattern }), withField({ description: 'A name.', pattern })]
    const tools = schemas.map((schema) => ({ name: 'f', schema }))
    const written = JSON.parse(writeAsk(plainAsk, { ...conversation, tools }, target)) as {
      tools: { function: { parameters: unknown } }[]
    }
    const expected = isKept
      ? schemas
      : [withField({ description: rule }), withField({ description: `A name.\n\n${rule}` })]
    expect(written.tools.map((tool) => tool.function.parameters)).toEqual(expected)
    expect(schemas.map((schema) => formOf(schema)['schema'])).toEqual(expected)
  },
)

const writtenForm = (more: JsonObject) => formOf({ type: 'object', ...more })['schema']

test('properties whose names have to match a pattern that vendors refuse are told to the model', () => {
  const letters = { '^\\p{L}+$': { type: 'string' } }
  const rule = `{patternProperties: ${JSON.stringify(letters)}}`
  const [plain, others] = [{ '^x-': { type: 'string', pattern: '^a' } }, { additionalProperties: { type: 'number' } }]
  expect(writtenForm({ patternProperties: letters, additionalProperties: false })).toEqual({
    type: 'object',
    description: rule,
  })
  expect(writtenForm({ patternProperties: { ...letters, ...plain }, ...others, description: 'Names.' })).toEqual({
    type: 'object',
    patternProperties: plain,
    ...others,
    description: `Names.\n\n${rule}`,
  })
  const unchanged = { type: 'object', patternProperties: plain, additionalProperties: false }
  expect(writtenForm(unchanged)).toEqual(unchanged)
})

test.each([true, false])(
  'a schema is written once: in its field, or told to the model (takes schemas: %p)',
  (takesSchema) => {
    const format = { kind: 'schema', schema: { title: 'Weather' } } as const
    const written = JSON.parse(
      writeAsk(plainAsk, { ...conversation, format }, { ...target, takesSchema }),
    ) as JsonObject
    expect(written['response_format']).toMatchObject({ type: takesSchema ? 'json_schema' : 'json_object' })
    expect(JSON.stringify(written['messages']).includes('Weather')).toBe(!takesSchema)
  },
)

test('audio of a client of responses, and the context of a file, are written for the common protocol', () => {
  const audio = { kind: 'bytes', mediaType: 'audio/wav', base64: 'AA' } as const
  const file = { kind: 'bytes', mediaType: 'application/pdf', base64: 'BB' } as const
  const blocks = [
    { kind: 'audio', media: audio, at: 'a' },
    { kind: 'document', media: file, at: 'b', title: 'report', context: 'Of last year.' },
  ] as const
  const turns = [{ role: 'user' as const, blocks }]
  const { messages } = JSON.parse(writeAsk(plainAsk, { ...conversation, turns }, target)) as { messages: JsonObject[] }
  expect(messages[0]?.['content']).toEqual([
    { type: 'input_audio', input_audio: { data: 'AA', format: 'wav' } },
    { type: 'text', text: 'Of last year.' },
    { type: 'file', file: { filename: 'report.pdf', file_data: 'data:application/pdf;base64,BB' } },
  ])
})
