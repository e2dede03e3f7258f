import { expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import type { ReplyFormat } from '../../capabilities/conversation.ts'
import { readConversation } from './read-conversation.ts'
import { askOf, user } from './testing.ts'

const calls = {
  role: 'assistant',
  tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
}
const turnsWith = (...content: JsonObject[]) => {
  const messages = [user, calls, { role: 'tool', tool_call_id: 'c', content }]
  return readConversation(askOf({ model: 'm', messages })).turns
}

test('images and files of a tool result stay in it', () => {
  const turns = turnsWith(
    { type: 'text', text: 'This:' },
    { type: 'text', text: '' },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } },
    { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,BB' } },
  )
  expect(turns[2]?.blocks).toMatchObject([
    {
      kind: 'tool-result',
      callId: 'c',
      blocks: [
        { kind: 'text', text: 'This:' },
        { kind: 'image', media: { mediaType: 'image/png', base64: 'AA' }, at: 'messages[2].content[2]' },
        { kind: 'document', media: { mediaType: 'application/pdf', base64: 'BB' }, title: 'a.pdf' },
      ],
    },
  ])
})

const pdf = Buffer.from('%PDF-1.7\n').toString('base64')

test.each([
  ['application/octet-stream', pdf, 'application/pdf'],
  ['binary/octet-stream', pdf, 'application/pdf'],
  ['', pdf, 'application/pdf'],
  ['text/plain', pdf, 'text/plain'],
  ['application/octet-stream', 'AA==', 'application/octet-stream'],
])('a file of type %j that begins with %s is read as one of type %s', (told, base64, mediaType) => {
  const [document] = turnsWith({ type: 'file', file: { file_data: `data:${told};base64,${base64}` } })[2]?.blocks ?? []
  expect(document).toMatchObject({ blocks: [{ kind: 'document', media: { mediaType, base64 } }] })
})

test('audio in a tool result is refused', () => {
  const audio = { type: 'input_audio', input_audio: { data: 'AA', format: 'wav' } }
  expect(() => turnsWith(audio)).toThrow("Invalid 'messages[2].content[0].type'")
})

test('a cache hint on a message applies to its last block', () => {
  const cache_control = { type: 'ephemeral', ttl: '1h' }
  const parts = [
    { type: 'text', text: 'This', cache_control: { type: 'ephemeral' } },
    { type: 'text', text: 'and that.' },
  ]
  const messages = [
    { role: 'system', content: 'Rules.', cache_control },
    { ...user, content: parts, cache_control },
    { ...calls, content: 'Well.', cache_control },
    { role: 'tool', tool_call_id: 'c', content: 'noon', cache_control },
    { role: 'user', content: [{ ...parts[0] }], cache_control },
  ]
  const { system, turns } = readConversation(askOf({ model: 'm', messages }))
  expect([system, ...turns.map(({ blocks }) => blocks)].map((blocks) => blocks.map(cacheOf))).toEqual([
    ['1h'],
    ['5m', '1h'],
    [undefined, '1h'],
    ['1h', '5m'],
  ])
})

const cacheOf = (block: object) => ('cache' in block ? block.cache : undefined)

test.each<[JsonObject, unknown]>([
  [{}, undefined],
  [
    { reasoning_effort: 'low', thinking: { type: 'disabled' } },
    { effort: 'low', isShown: true },
  ],
  [{ thinking: { type: 'enabled', budget_tokens: 2_000 } }, { budget: 2_000, isShown: true }],
  [{ thinking: { type: 'enabled', budget_tokens: -1 } }, { isShown: true }],
  [{ thinking: { type: 'enabled', budget_tokens: 0 } }, { effort: 'none', isShown: false }],
  [{ thinking: { type: 'adaptive', display: 'omitted' } }, { isShown: false }],
  [{ thinking: { type: 'between_tools' } }, { isShown: true }],
  [{ thinking: { type: 'auto' } }, { isShown: true }],
  [{ thinking: { type: 'disabled' } }, { effort: 'none', isShown: false }],
  [{ thinking: { type: 'otherwise' } }, undefined],
  [
    { thinking: null, reasoning: { effort: 'high', exclude: true } },
    { effort: 'high', isShown: false },
  ],
  [{ reasoning: { max_tokens: 3_000 } }, { budget: 3_000, isShown: true }],
  [{ reasoning: { max_tokens: 0 } }, { effort: 'none', isShown: false }],
  [{ reasoning: { enabled: true } }, { isShown: true }],
  [{ reasoning: { enabled: false, effort: 'high' } }, { effort: 'none', isShown: false }],
  [{ reasoning: { exclude: true } }, undefined],
])('the thinking that a client asks for is read from %j', (fields, thinking) => {
  expect(readConversation(askOf({ model: 'm', messages: [user], ...fields })).thinking).toEqual(thinking as never)
})

// Mistral's answers have it in a list.
test.each([['Hm.'], [[{ type: 'text', text: 'Hm.' }]]])(
  'reasoning among the parts of an answer is read: %j',
  (thinking) => {
    const content = [
      { type: 'thinking', thinking, closed: true },
      { type: 'reference', reference_ids: [1] },
      { type: 'text', text: 'Noon.' },
    ]
    const { turns } = readConversation(askOf({ model: 'm', messages: [user, { role: 'assistant', content }, user] }))
    expect(turns[1]?.blocks).toEqual([
      { kind: 'thinking', text: 'Hm.' },
      { kind: 'text', text: 'Noon.' },
    ])
  },
)

test('the fields that steer the sampling, and the label of the user, are read under their neutral names', () => {
  const sampling = { temperature: 0.5, top_p: 0.9, top_k: 40, seed: 7, presence_penalty: 0.1, frequency_penalty: 0.2 }
  const asked = { ...sampling, logprobs: true, top_logprobs: 3, user: 'ann', safety_identifier: 'safe' }
  expect(readConversation(askOf({ model: 'm', messages: [user], ...asked }))).toMatchObject({
    temperature: 0.5,
    topP: 0.9,
    topK: 40,
    seed: 7,
    presencePenalty: 0.1,
    frequencyPenalty: 0.2,
    logprobs: 3,
    user: 'safe',
  })
  expect(readConversation(askOf({ model: 'm', messages: [user], logprobs: true, user: 'ann' }))).toMatchObject({
    logprobs: 0,
    user: 'ann',
  })
})

test.each<[JsonObject, ReplyFormat]>([
  [{}, { kind: 'json' }],
  [{ schema: {} }, { kind: 'json' }],
  [{ schema: null }, { kind: 'json' }],
  [{ schema: 'object' }, { kind: 'json' }],
  [{ value: { type: 'object' } }, { kind: 'schema', schema: { type: 'object' } }],
  [{ schema: { type: 'object' } }, { kind: 'schema', schema: { type: 'object' } }],
])('a schema beside json_object, where some clients write it, is not lost: %j', (beside, format) => {
  const response_format = { type: 'json_object', ...beside }
  expect(readConversation(askOf({ model: 'm', messages: [user], response_format })).format).toEqual(format)
})
