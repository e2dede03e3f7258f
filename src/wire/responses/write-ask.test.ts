import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import { markGoogle, markOpenai, type Conversation, type UserBlock } from '../../capabilities/conversation.ts'
import { plainConversation as hello } from '../../capabilities/testing.ts'
import { textIn } from '../loose.ts'
import { askOf, target } from './testing.ts'
import { type ResponsesTarget, writeAsk } from './write-ask.ts'

function written(more: Partial<Conversation>, to: Partial<ResponsesTarget> = {}, stream = false): JsonObject {
  return JSON.parse(writeAsk(askOf({ stream }), { ...hello, ...more }, { ...target, ...to })) as JsonObject
}

const asked = (...blocks: readonly UserBlock[]) => written({ turns: [{ role: 'user', blocks }] })['input']

test('a minimal request stores nothing and asks for encrypted reasoning', () => {
  expect(written({})).toEqual({
    model: 'theirs',
    input: [{ role: 'user', content: 'Hi' }],
    include: ['reasoning.encrypted_content'],
    store: false,
  })
})

test('a stream is requested without obfuscation padding', () => {
  expect(written({}, {}, true)).toMatchObject({ stream: true, stream_options: { include_obfuscation: false } })
})

test('instructions get their own field, later ones keep their place, and alone they become input', () => {
  const system = [
    { kind: 'text', text: 'Be brief.' },
    { kind: 'text', text: 'Be kind.' },
  ] as const
  const turns = [...hello.turns, { role: 'system', blocks: [{ kind: 'text', text: 'Now be long.' }] } as const]
  expect(written({ system, turns })).toMatchObject({
    instructions: 'Be brief.\n\nBe kind.',
    input: [
      { role: 'user', content: 'Hi' },
      { role: 'developer', content: 'Now be long.' },
    ],
  })
  const alone = written({ system, turns: [] })
  expect(alone['input']).toEqual([{ role: 'developer', content: 'Be brief.\n\nBe kind.' }])
  expect(alone).not.toHaveProperty('instructions')
})

test('a tool is strict only where that was asked for', () => {
  const schema = { $schema: 'x', type: 'object', properties: {} }
  const tools = [
    { name: 'a', description: 'A.', schema },
    { name: 'b', schema, isStrict: true },
  ]
  const parameters = { type: 'object', properties: {} }
  expect(written({ tools, toolChoice: { name: 'a' }, parallelTools: false })).toMatchObject({
    tools: [
      { type: 'function', name: 'a', description: 'A.', parameters, strict: false },
      { type: 'function', name: 'b', parameters, strict: true },
    ],
    tool_choice: { type: 'function', name: 'a' },
    parallel_tool_calls: false,
  })
  expect(written({ toolChoice: 'auto', parallelTools: true })).not.toHaveProperty('tool_choice')
})

test('an overlong call id is replaced by the same short one in the call and in its result', () => {
  const id = 'x'.repeat(70)
  const [, call, result] = written({
    turns: [
      ...hello.turns,
      { role: 'assistant', blocks: [{ kind: 'tool-call', id, name: 'f', argumentsText: '{}' }] },
      { role: 'user', blocks: [{ kind: 'tool-result', callId: id, blocks: [], isError: true }] },
    ],
  })['input'] as JsonObject[]
  expect(call).toMatchObject({ type: 'function_call', name: 'f', arguments: '{}' })
  expect(textIn(call?.['call_id'])).toMatch(/^call_[0-9a-f]{32}$/)
  expect(result).toEqual({ type: 'function_call_output', call_id: call?.['call_id'] ?? '', output: 'Error: ' })
})

describe('media in a user turn', () => {
  const png = { kind: 'bytes', mediaType: 'image/png', base64: 'AAAA' } as const
  const image = { kind: 'image', media: png, detail: 'low' } as const

  test('images and files are written in messages and in tool results', () => {
    const report = { kind: 'document', media: { ...png, mediaType: 'application/pdf' }, title: 'Report' } as const
    const parts = [
      { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'low' },
      { type: 'input_file', filename: 'Report.pdf', file_data: 'data:application/pdf;base64,AAAA' },
    ]
    expect(asked(image, report)).toEqual([{ role: 'user', content: parts }])
    const text = { kind: 'text', text: 'Seen.' } as const
    expect(asked({ kind: 'tool-result', callId: 'c', blocks: [image, text, report], isError: false })).toEqual([
      { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: 'Seen.' }, ...parts] },
    ])
  })

  test('documents are written from bytes, from a URL and from text', () => {
    const pdf = { ...png, mediaType: 'application/pdf' }
    const url = { kind: 'url', url: 'https://pages.example/a.pdf' } as const
    const words = { kind: 'text', text: 'Words.' } as const
    expect(
      asked(
        { kind: 'document', media: pdf, title: 'Report', context: 'Of May.' },
        { kind: 'document', media: url },
        { kind: 'document', media: words, title: 'Notes' },
      ),
    ).toEqual([
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'Of May.' },
          { type: 'input_file', filename: 'Report.pdf', file_data: 'data:application/pdf;base64,AAAA' },
          { type: 'input_file', file_url: 'https://pages.example/a.pdf' },
          { type: 'input_text', text: 'Notes\n\nWords.' },
        ],
      },
    ])
  })

  test.each(['audio', 'video'] as const)('%s is refused with the place where it stands', (kind) => {
    const block = { kind, media: png, at: 'messages[0].content[1]' }
    expect(() => asked(block)).toThrow("Invalid 'messages[0].content[1]'")
  })
})

const thought = (signature: string) => ({ kind: 'thinking', text: 'Hm.', signature }) as const
const yes = { kind: 'text', text: 'Yes.' } as const
const answered = (...blocks: Extract<Conversation['turns'][number], { role: 'assistant' }>['blocks'][number][]) =>
  (written({ turns: [...hello.turns, { role: 'assistant', blocks }, ...hello.turns] })['input'] as JsonObject[])
    .slice(1, -1)
    .map((item) => item['type'])

describe('reasoning', () => {
  test('only reasoning that this vendor encrypted is sent back', () => {
    expect(answered(thought(markOpenai('gAAA')), yes)).toEqual(['reasoning', 'message'])
    expect(answered(thought(markGoogle('sig')), thought('EqSigned'), yes)).toEqual(['message'])
    expect(answered({ kind: 'thinking-redacted', data: 'x' }, yes)).toEqual(['message'])
  })

  test('reasoning with no output after it is not sent back', () => {
    expect(answered(yes, thought(markOpenai('gAAA')))).toEqual(['message'])
  })

  test.each([
    [
      { effort: 'xhigh', isShown: true },
      { effort: 'high', summary: 'auto' },
    ],
    [{ effort: 'low', isShown: false }, { effort: 'low' }],
    [{ effort: 'none', isShown: true }, { effort: 'none' }],
    [
      { budget: 1_000, isShown: true },
      { effort: 'low', summary: 'auto' },
    ],
  ] as const)('thinking %j is written as the reasoning %j', (thinking, reasoning) => {
    expect(written({ thinking })['reasoning']).toEqual(reasoning)
  })

  test('a client that says only that it wants to read the reasoning gets the summary of what the model thinks by itself', () => {
    expect(written({ showsOwnThinking: true })['reasoning']).toEqual({ summary: 'auto' })
    expect(written({ showsOwnThinking: true }, { hidesReasoning: true })).not.toHaveProperty('reasoning')
  })

  test('the reasoning field is left out where the client asked for none', () => {
    expect(written({})).not.toHaveProperty('reasoning')
  })

  test('only a model without reasoning gets sampling, and it is not asked for encrypted reasoning', () => {
    const body = written(
      { thinking: { effort: 'low', isShown: true }, temperature: 0.5, topP: 0.1 },
      { reasoning: false },
    )
    expect(body).toMatchObject({ temperature: 0.5, top_p: 0.1 })
    expect(body).not.toHaveProperty('include')
    expect(written({ temperature: 0.5 })).not.toHaveProperty('temperature')
  })
})

test('format, verbosity, output cap and labels are written', () => {
  const schema = { type: 'object', properties: {}, required: [], additionalProperties: false }
  expect(
    written({
      format: { kind: 'schema', name: 'answer', description: 'It.', schema },
      verbosity: 'low',
      outputTokensMax: 100_000,
      user: 'u'.repeat(100),
      cacheKey: 'k',
    }),
  ).toMatchObject({
    text: {
      format: { type: 'json_schema', name: 'answer', description: 'It.', schema, strict: true },
      verbosity: 'low',
    },
    max_output_tokens: 8_000,
    safety_identifier: `mine/${'u'.repeat(59)}`,
    prompt_cache_key: 'mine/k',
  })
  expect(written({ format: { kind: 'json' } })['text']).toEqual({ format: { type: 'json_object' } })
})
