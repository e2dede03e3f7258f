import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { conversations, cut, eventsOf, replies, replyOf, unplaced } from '../../../test/support/conversations.ts'
import type { JsonObject } from '../../base/json.ts'
import { EventSplitter } from '../../base/sse.ts'
import {
  markOpenai,
  openaiReasoning,
  type AssistantBlock,
  type Conversation,
  type Reply,
  type Turn,
} from '../../capabilities/conversation.ts'
import { textIn } from '../loose.ts'
import { responsesChat } from './chat.ts'
import { passStream } from './pass-stream.ts'
import { readAnswer } from './read-answer.ts'
import { openReader } from './reply-reader.ts'
import { seal } from './sealed.ts'
import { askOf, name, target, thinker } from './testing.ts'
import { writeAsk } from './write-ask.ts'

/** What this protocol can express of a conversation: its vendor's own thinking, and system texts joined into one. */
function sayable({ turns, system, ...rest }: Conversation): Conversation {
  const { tools, toolChoice, parallelTools, outputTokensMax } = rest
  return {
    system: system.length === 0 ? [] : [{ kind: 'text', text: system.map(({ text }) => text).join('\n\n') }],
    turns: turns.map((turn): Turn => {
      if (turn.role === 'user') {
        return {
          ...turn,
          blocks: turn.blocks.flatMap((block) => (block.kind === 'document' ? [] : [plainResult(block)])),
        }
      }
      return turn.role === 'assistant' ? { ...turn, blocks: turn.blocks.flatMap(ownThought) } : turn
    }),
    tools: tools.map(({ name: called, description, schema, isStrict = false }) => {
      return { name: called, ...(description !== undefined && { description }), schema, isStrict }
    }),
    hostedTools: [],
    stop: [],
    ...(toolChoice !== undefined && { toolChoice }),
    ...(parallelTools !== undefined && { parallelTools }),
    ...(outputTokensMax !== undefined && { outputTokensMax }),
  }
}

function plainResult(block: Turn['blocks'][number]) {
  if (block.kind !== 'tool-result') return block as never
  return { ...block, isError: false, blocks: [{ kind: 'text', text: 'done' }] } as never
}

function ownThought(block: AssistantBlock): AssistantBlock[] {
  if (block.kind === 'thinking') return [{ ...block, signature: markOpenai(block.signature ?? '') }]
  return block.kind === 'thinking-redacted' ? [] : [block]
}

test('a conversation written for the vendor and read as a client’s is the same conversation', () => {
  fc.assert(
    fc.property(conversations(true), (given) => {
      const meant = sayable(given)
      fc.pre(meant.turns.every(({ blocks }) => blocks.length > 0))
      const body = JSON.parse(writeAsk(askOf({}), meant, target)) as JsonObject
      const read = responsesChat.readConversation(askOf(asSealed(body), thinker))
      expect({ ...read, turns: unplaced(read.turns) }).toEqual(meant)
    }),
  )
})

/** A client gets thinking as we seal it; the vendor gets it as it encrypted it. */
function asSealed(body: JsonObject): JsonObject {
  const items = body['input'] as JsonObject[]
  return {
    ...body,
    input: items.map((item) => {
      if (item['type'] !== 'reasoning') return item
      const [part] = item['summary'] as { text: string }[]
      const signature = markOpenai(textIn(item['encrypted_content']))
      return { ...item, encrypted_content: seal({ kind: 'thought', text: part?.text ?? '', signature }) }
    }),
  }
}

const keeping = { include: ['reasoning.encrypted_content'], reasoning: { summary: 'auto' } }

/** What this protocol can express of a reply: thinking without signatures, and text without citations. */
function tellable({ choices, usage }: Reply): Reply {
  const { input = 0, cachedInput = 0, cacheWrite = 0, cacheWriteHour = 0, output = 0, reasoning = 0 } = usage ?? {}
  const [choice] = choices
  const blocks = (choice?.blocks ?? []).flatMap((block): AssistantBlock[] => {
    if (block.kind === 'thinking-redacted') return []
    if (block.kind === 'thinking') return [{ kind: 'thinking', text: block.text }]
    if (block.kind === 'text') return [{ kind: 'text', text: block.text }]
    if (block.kind !== 'tool-call') return [block]
    const { signature: _, ...call } = block
    return [call]
  })
  const finish = choice?.finish ?? 'stop'
  const ends = finish === 'stop-sequence' || finish === 'pause' ? 'stop' : finish
  const counted = { input, cachedInput, cacheWrite: cacheWrite + cacheWriteHour, output, reasoning }
  return { choices: [{ blocks, finish: ends }], usage: counted }
}

/** The reply without the items that only carry a seal, and without the seals' content. */
function unsealed({ choices, usage }: Reply): Reply {
  const [choice] = choices
  const blocks = (choice?.blocks ?? []).flatMap((block): AssistantBlock[] => {
    if (block.kind === 'text') return [{ kind: 'text', text: block.text }]
    if (block.kind !== 'thinking') return [block]
    const held = Buffer.from((openaiReasoning(block.signature) ?? '').slice('tpk_'.length), 'base64url').toString()
    return held.includes('"kind":"thought"') ? [{ kind: 'thinking', text: block.text }] : []
  })
  return { choices: [{ blocks, finish: choice?.finish ?? 'stop' }], usage }
}

const webSearch = (reply: Reply): Reply => ({ ...reply, usage: { ...reply.usage, webSearch: 0 } })

test('a response written for a client and read as the vendor’s is the same reply', () => {
  fc.assert(
    fc.property(replies.map(webSearch), (reply) => {
      const read = readAnswer(responsesChat.writeAnswer(askOf(keeping), reply, name))
      expect(unsealed(read)).toEqual(tellable(reply))
    }),
  )
})

const streamed = fc.tuple(
  replies.map(webSearch),
  fc.infiniteStream(fc.nat()),
  fc.array(fc.nat(100_000), { maxLength: 20 }),
)

test('a streamed response is the same reply wherever it is cut, translated or passed through', () => {
  fc.assert(
    fc.property(streamed, ([reply, turns, places]) => {
      const writer = responsesChat.openWriter(askOf({ ...keeping, stream: true }), name)
      const events = eventsOf(reply, (pending) => (turns.next().value ?? 0) % pending)
      const written = [...events.map((event) => writer.write([event])), writer.closing(reply.usage)]
      const stream = Buffer.concat(written.filter((piece) => piece !== undefined))
      expect(unsealed(replyOf(readAll(stream, places)))).toEqual(tellable(reply))

      const passing = passStream(askOf({ stream: true }))
      const passed = splitAt(stream, places).flatMap((event) => passing.take(event) ?? [])
      expect(passing.facts).toMatchObject({ finished: true, ended: true, failure: undefined })
      expect(passing.facts.usage).toEqual(tellable(reply).usage)
      const whole = Buffer.concat([...passed, passing.closing()])
      expect(unsealed(replyOf(readAll(whole, [])))).toEqual(tellable(reply))
    }),
    { numRuns: 60 },
  )
})

function splitAt(stream: Uint8Array, places: readonly number[]): Uint8Array[] {
  const splitter = new EventSplitter(1_000_000)
  return cut(stream, places).flatMap((piece) => splitter.push(piece))
}

function readAll(stream: Uint8Array, places: readonly number[]) {
  const reader = openReader()
  return splitAt(stream, places).flatMap((event) => [...reader.read(event)])
}
