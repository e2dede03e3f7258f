import { afterAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { conversations } from '../../../test/support/conversations.ts'
import type { JsonObject } from '../../base/json.ts'
import { markGoogle, type AssistantBlock, type Conversation, type Turn } from '../../capabilities/conversation.ts'
import { openMessages } from '../../sandbox/messages/testing.ts'
import { readAnswer } from '../../wire/anthropic/read-answer.ts'
import { alwaysLadder, newLadder, oldLadder, target } from '../../wire/anthropic/testing.ts'
import { writeAsk } from '../../wire/anthropic/write-ask.ts'

// The simulator refuses what the vendor refuses, so every translation from another protocol must be one that it takes.
const { sandbox, post } = openMessages()
afterAll(() => sandbox.stop())

const models = {
  'claude-test': { efforts: oldLadder }, // thinks by budget
  'claude-new': { efforts: newLadder }, // thinks by effort, and takes no prefilled answer
  // It cannot stop thinking, and cannot be forced.
  'claude-always': { efforts: alwaysLadder, rules: ['refuses-forced-calls'] },
  'claude-between': { efforts: newLadder, rules: ['rests-between-tools', 'refuses-forced-calls'] },
} as const

function write(conversation: Conversation, model: keyof typeof models): JsonObject {
  const changed = { upstreamModel: model, ...models[model], outputTokensMax: 8_192, namespaced: () => 'opaque' }
  return writeAsk(conversation, { ...target, ...changed })
}

async function expectTaken(body: JsonObject): Promise<void> {
  const response = await post(body)
  const answer = new Uint8Array(await response.arrayBuffer())
  expect({ status: response.status, said: response.status === 200 ? '' : Buffer.from(answer).toString() }).toEqual({
    status: 200,
    said: '',
  })
  expect(readAnswer(answer).usage?.output).toBeGreaterThanOrEqual(0)
}

const thinking = fc.option(
  fc.record(
    {
      effort: fc.constantFrom('none', 'minimal', 'low', 'medium', 'high'),
      budget: fc.integer({ min: 1, max: 9_000 }),
      isShown: fc.boolean(),
    },
    { requiredKeys: ['isShown'] },
  ),
  { nil: undefined },
)
const model = fc.constantFrom('claude-test', 'claude-new', 'claude-always', 'claude-between')

/** The simulator takes back only reasoning of its own, and these conversations are made up. */
function withoutThoughts(turn: Turn): Turn {
  if (turn.role !== 'assistant') return turn
  return { role: 'assistant', blocks: turn.blocks.filter(({ kind }) => !kind.startsWith('thinking')) }
}

test('the simulator accepts every translated conversation in valid order', async () => {
  await fc.assert(
    fc.asyncProperty(conversations(true), thinking, model, async (plain, thinking, model) => {
      const conversation = { ...plain, turns: plain.turns.map(withoutThoughts), ...(thinking && { thinking }) }
      await expectTaken(write(conversation, model))
    }),
  )
})

const words = fc.constantFrom('', ' ', 'Hi', 'Hi ', 'What is the weather?')
const id = fc.constantFrom('a', 'b', 'functions.f:0', '')
const text = words.map((text) => ({ kind: 'text' as const, text }))
const result = fc.record({
  kind: fc.constant('tool-result' as const),
  callId: id,
  blocks: fc.array(text, { maxLength: 2 }),
  isError: fc.boolean(),
})
const said: fc.Arbitrary<AssistantBlock> = fc.oneof(
  text,
  fc.record({
    kind: fc.constant('tool-call' as const),
    id,
    name: fc.constantFrom('f', 'g'),
    argumentsText: fc.constantFrom('{}', '{"a":1}', '{"a":', '[]'),
  }),
  fc.record({ kind: fc.constant('thinking' as const), text: words, signature: fc.constant(markGoogle('x')) }),
  fc.constant({ kind: 'thinking' as const, text: 'unsigned' }),
  fc.constant({ kind: 'refusal' as const, text: 'No.' }),
  fc.constant({ kind: 'image' as const, media: { kind: 'bytes' as const, mediaType: 'image/png', base64: 'AA==' } }),
)
const turn: fc.Arbitrary<Turn> = fc.oneof(
  fc.record({ role: fc.constant('user' as const), blocks: fc.array(fc.oneof(text, result), { maxLength: 3 }) }),
  fc.record({ role: fc.constant('assistant' as const), blocks: fc.array(said, { maxLength: 3 }) }),
  fc.record({ role: fc.constant('system' as const), blocks: fc.array(text, { maxLength: 1 }) }),
)
const tools = [
  { name: 'f', schema: {} },
  { name: 'g', schema: { type: 'object', anyOf: [{ required: ['a'] }] }, isStrict: true },
]

test('the simulator accepts every translated conversation in invalid order', async () => {
  const messy = fc.record({
    turns: fc.array(turn, { maxLength: 6 }),
    tools: fc.constantFrom([], tools),
    toolChoice: fc.constantFrom(undefined, 'auto', 'none', 'required'),
    parallelTools: fc.constantFrom(undefined, true, false),
    outputTokensMax: fc.constantFrom(undefined, 1, 1_024, 1_025, 5_000, 1_000_000),
    temperature: fc.constantFrom(undefined, 0, 1.5),
    topP: fc.constantFrom(undefined, 0.5),
    thinking,
  })
  await fc.assert(
    fc.asyncProperty(messy, model, async (messy, model) => {
      const given = Object.fromEntries(Object.entries(messy).filter(([, value]) => value !== undefined))
      const plain = { system: [], hostedTools: [], stop: [''] }
      await expectTaken(write({ ...plain, ...given } as unknown as Conversation, model))
    }),
    { numRuns: 500 },
  )
})
