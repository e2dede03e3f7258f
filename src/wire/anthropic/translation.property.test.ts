import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { conversations, cut, eventsOf, replies, replyOf, unplaced } from '../../../test/support/conversations.ts'
import { parseBody, type JsonObject } from '../../base/json.ts'
import { EventSplitter } from '../../base/sse.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import type { AssistantBlock, Choice, Conversation, ReplyEvent } from '../../capabilities/conversation.ts'
import { plainModel } from '../../capabilities/testing.ts'
import { readAsk } from './ask.ts'
import { readAnswer } from './read-answer.ts'
import { readConversation } from './read-conversation.ts'
import { openReader } from './reply-reader.ts'
import { openWriter } from './reply-writer.ts'
import { write } from './testing.ts'
import { writeAnswer } from './write-answer.ts'

const traits = { ...plainModel, contextTokens: 200_000, outputTokensMax: 8_000, choicesMax: 1 }

function asked(body: JsonObject): ChatAsk {
  const text = JSON.stringify(body)
  const parsed = parseBody(text, { depthMax: 128, keysMax: 10_000 }) as JsonObject
  return readAsk({ body: parsed, files: [], bodyBytes: text.length, header: () => null }, () => traits)
}

function through(conversation: Conversation, efforts: readonly string[]): Conversation {
  const { outputTokensMax } = traits
  const body = write(conversation, { efforts, outputTokensMax, searchesMax: 20, namespaced: (label) => label })
  const read = readConversation(asked(body))
  return { ...read, turns: unplaced(read.turns) }
}

const ladder = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']
const thinking = fc.record(
  { effort: fc.constantFrom('low', 'medium', 'high', 'xhigh', 'max'), isShown: fc.boolean() },
  { requiredKeys: ['isShown'] },
)

test('a conversation written for the vendor and read as a client’s is the same conversation', () => {
  fc.assert(
    fc.property(conversations(true), thinking, (plain, thinking) => {
      const isForced = plain.toolChoice === 'required' || typeof plain.toolChoice === 'object'
      const conversation = isForced ? plain : ({ ...plain, thinking } as Conversation)
      expect(through(conversation, ladder)).toEqual(conversation)
    }),
  )
})

const sampling = fc.oneof(
  fc.record({ temperature: fc.double({ min: 0, max: 1, noNaN: true }) }),
  fc.record({ topP: fc.double({ min: 0, max: 1, noNaN: true }), topK: fc.integer({ min: 0, max: 500 }) }),
)

test('a conversation with sampling fields survives the same round trip for an older model', () => {
  fc.assert(
    fc.property(conversations(false), sampling, (plain, sampling) => {
      const conversation = { ...plain, ...sampling }
      expect(through(conversation, [])).toEqual(conversation)
    }),
  )
})

const name = { requestId: 'req_1', createdAt: 0, elapsedMs: () => 0 }
const thinkingAsk = asked({
  model: 'm',
  max_tokens: 5_000,
  messages: [{ role: 'user', content: 'Hi' }],
  thinking: { type: 'adaptive' },
})

test('a reply written for a client and read as the vendor’s is the same reply', () => {
  fc.assert(
    fc.property(replies, (reply) => {
      expect(readAnswer(writeAnswer(thinkingAsk, reply, name))).toEqual(reply)
    }),
  )
})

const places = fc.array(fc.nat(100_000), { maxLength: 12 })

function read(chunks: readonly Uint8Array[]): ReplyEvent[] {
  const splitter = new EventSplitter(1_000_000)
  const reader = openReader()
  return chunks.flatMap((chunk) => splitter.push(chunk)).flatMap((event) => [...reader.read(event)])
}

test('a streamed reply survives the round trip, however it is cut and its calls are interleaved', () => {
  fc.assert(
    fc.property(replies, places, fc.infiniteStream(fc.nat()), (reply, places, turns) => {
      const events = eventsOf(reply, (pending) => (turns.next().value as number) % pending)
      const writer = openWriter(thinkingAsk, name)
      const written = events.flatMap((event) => writer.write([event]) ?? [])
      const bytes = Buffer.concat([...written, writer.closing(reply.usage)])
      expect(replyOf(read(cut(bytes, places)))).toEqual({ ...reply, choices: reply.choices.map(withCarriedSignatures) })
    }),
  )
})

/** A stream reader does not join a carried signature to its call, because only clients send such blocks back. */
function withCarriedSignatures(choice: Choice): Choice {
  const blocks = choice.blocks.flatMap((block): AssistantBlock[] => {
    if (block.kind !== 'tool-call' || block.signature === undefined) return [block]
    const { signature, ...call } = block
    return [{ kind: 'thinking', text: '', signature }, call]
  })
  return { ...choice, blocks }
}
