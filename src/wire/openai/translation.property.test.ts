import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { argumentsTexts, unplaced } from '../../../test/support/conversations.ts'
import type { JsonObject } from '../../base/json.ts'
import { EventSplitter } from '../../base/sse.ts'
import type { Conversation, Reply, ReplyEvent } from '../../capabilities/conversation.ts'
import { openaiChat } from './chat.ts'
import { readAnswer } from './read-answer.ts'
import { openReader } from './reply-reader.ts'
import { askOf, name, plainAsk, streamAsk, target } from './testing.ts'
import { writeAsk } from './write-ask.ts'

const text = fc.string({ minLength: 1, maxLength: 20 })
const id = fc.stringMatching(/^[A-Za-z0-9_-]{1,20}$/)
const call = fc.record({
  kind: fc.constant('tool-call' as const),
  id,
  name: id,
  argumentsText: argumentsTexts,
})
const bytes = fc.record({
  kind: fc.constant('bytes' as const),
  mediaType: fc.constantFrom('image/png', 'image/jpeg'),
  base64: fc.uint8Array({ minLength: 1, maxLength: 12 }).map((array) => Buffer.from(array).toString('base64')),
})
const image = fc.record({
  kind: fc.constant('image' as const),
  media: fc.oneof(bytes, fc.record({ kind: fc.constant('url' as const), url: fc.webUrl() })),
})
const said = text.map((value) => ({ kind: 'text' as const, text: value }))
const result = fc.record({
  kind: fc.constant('tool-result' as const),
  callId: id,
  blocks: fc.tuple(said),
  isError: fc.constant(false),
})
const userTurn = fc
  .tuple(fc.array(result, { maxLength: 2 }), fc.array(fc.oneof(said, image), { maxLength: 3 }))
  .map(([results, others]) => ({ role: 'user' as const, blocks: [...results, ...others] }))
  .filter(({ blocks }) => blocks.length > 0)
const assistantTurn = fc
  .tuple(fc.option(said, { nil: undefined }), fc.array(call, { maxLength: 2 }))
  .map(([spoken, calls]) => ({
    role: 'assistant' as const,
    blocks: [...(spoken === undefined ? [] : [spoken]), ...calls],
  }))
  .filter(({ blocks }) => blocks.length > 0)
const own = (value: string, turn: number, block: number) => `${value}_${turn}_${block}`

/** Results come right after their calls, before those that answer no call: any other order would not be kept. */
const turns = fc.array(fc.tuple(userTurn, assistantTurn), { minLength: 1, maxLength: 3 }).map((pairs) => {
  let unanswered: string[] = []
  return pairs.flat().map((turn, at) => {
    if (turn.role === 'user') {
      const answer = (block: (typeof turn.blocks)[number], index: number) =>
        block.kind === 'tool-result' ? { ...block, callId: unanswered.shift() ?? own(block.callId, at, index) } : block
      return { ...turn, blocks: turn.blocks.map(answer) }
    }
    const blocks = turn.blocks.map((block, index) =>
      block.kind === 'tool-call' ? { ...block, id: own(block.id, at, index) } : block,
    )
    unanswered = blocks.flatMap((block) => (block.kind === 'tool-call' ? [block.id] : []))
    return { ...turn, blocks }
  })
})
const anyChoice = fc.record({
  turns,
  tools: fc.array(fc.record({ name: id, description: text, schema: fc.constant({ type: 'object', properties: {} }) }), {
    minLength: 1,
    maxLength: 3,
  }),
  toolChoice: fc.constantFrom('auto' as const, 'none' as const, 'required' as const, 'the first' as const),
  outputTokensMax: fc.integer({ min: 1, max: 1_000 }),
  temperature: fc.integer({ min: 0, max: 20 }).map((tenths) => tenths / 10),
  stop: fc.array(text, { maxLength: 4 }),
  seed: fc.integer(),
})
const conversation = anyChoice.map(({ toolChoice, ...given }) => ({
  ...given,
  toolChoice: toolChoice === 'the first' ? { name: given.tools[0]?.name ?? '' } : toolChoice,
}))

test('a conversation written for the vendor and read as a client’s is the same conversation', () => {
  fc.assert(
    fc.property(conversation, (given) => {
      const meant: Conversation = { ...given, system: [{ kind: 'text', text: 'Be brief.' }], hostedTools: [] }
      const body = JSON.parse(writeAsk(plainAsk, meant, target)) as JsonObject
      const read = openaiChat.readConversation(askOf({ ...body, model: 'm' }))
      expect({ ...read, turns: unplaced(read.turns) }).toEqual(meant)
    }),
  )
})

const usage = fc.record({
  input: fc.nat(1_000),
  cachedInput: fc.nat(1_000),
  output: fc.nat(1_000),
  reasoning: fc.constant(0),
})
const reply = fc.record({
  choices: fc.array(
    fc
      .tuple(fc.option(text, { nil: undefined }), fc.option(text, { nil: undefined }), fc.array(call, { maxLength: 2 }))
      .map(([thought, spoken, calls]): Reply['choices'][number] => ({
        blocks: [
          ...(thought === undefined ? [] : [{ kind: 'thinking' as const, text: thought }]),
          ...(spoken === undefined ? [] : [{ kind: 'text' as const, text: spoken }]),
          ...calls,
        ],
        finish: calls.length > 0 ? 'tool-calls' : 'stop',
      })),
    { minLength: 1, maxLength: 3 },
  ),
  usage,
})

test('a reply written and read again is the same', () => {
  fc.assert(
    fc.property(reply, (given) => {
      const read = readAnswer(openaiChat.writeAnswer(plainAsk, given, name))
      expect(read.choices).toEqual(given.choices)
      expect(read.usage).toMatchObject(given.usage)
    }),
  )
})

/** A reply as stream events, in small pieces. */
function eventsOf({ choices, usage: used }: Reply): ReplyEvent[] {
  const events: ReplyEvent[] = [{ kind: 'reply-start' }]
  for (const [choice, { blocks, finish }] of choices.entries()) {
    let calls = 0
    for (const block of blocks) {
      if (block.kind === 'text')
        events.push(...Array.from(block.text, (piece) => ({ kind: 'text-delta' as const, choice, text: piece })))
      if (block.kind === 'thinking') events.push({ kind: 'thinking-delta', choice, text: block.text })
      if (block.kind === 'tool-call') {
        events.push({ kind: 'tool-call-start', choice, call: calls, id: block.id, name: block.name })
        events.push({ kind: 'tool-call-delta', choice, call: calls, text: block.argumentsText })
        calls++
      }
    }
    events.push({ kind: 'choice-finish', choice, finish })
  }
  if (used !== undefined) events.push({ kind: 'usage-count', usage: used })
  return events
}

test('a streamed reply written, cut anywhere and read again is the same', () => {
  fc.assert(
    fc.property(reply, fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 20 }), (given, cuts) => {
      const writer = openaiChat.openWriter(streamAsk, name)
      const events = eventsOf(given)
      const written = [...events.map((event) => writer.write([event])), writer.closing(given.usage)]
      const whole = Buffer.concat(written.filter((piece) => piece !== undefined))
      const splitter = new EventSplitter(1_000_000)
      const reader = openReader()
      const read: ReplyEvent[] = []
      for (let at = 0, turn = 0; at < whole.length; turn++) {
        const end = at + (cuts[turn % cuts.length] ?? 1)
        for (const event of splitter.push(whole.subarray(at, end))) read.push(...reader.read(event))
        at = end
      }
      const kept = events.filter(({ kind }) => kind !== 'usage-count')
      expect(read.filter(({ kind }) => kind !== 'usage-count' && kind !== 'reply-end')).toEqual(kept)
      expect(read.at(-1)).toEqual({ kind: 'reply-end' })
      expect(read.findLast(({ kind }) => kind === 'usage-count')).toMatchObject({ usage: given.usage })
    }),
    { numRuns: 50 },
  )
})
