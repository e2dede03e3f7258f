import { expect, test } from 'bun:test'
import type { ReplyEvent } from '../../capabilities/conversation.ts'
import { anthropicChat } from '../../wire/anthropic/chat.ts'
import { askOf as messagesAskOf } from '../../wire/anthropic/testing.ts'
import { openReader } from '../../wire/gemini/read-answer.ts'
import { openaiChat } from '../../wire/openai/chat.ts'
import { name, streamAsk } from '../../wire/openai/testing.ts'
import { responsesChat } from '../../wire/responses/chat.ts'
import { askOf as responsesAskOf } from '../../wire/responses/testing.ts'
import { estimateOutput } from './estimate.ts'
import { ReplyFacts, translateStream } from './translate.ts'

test.each([
  ['a short event counts as one token', 100, ' rivers', 100],
  ['a long event is counted by its length', 4, ' sea'.repeat(100), 396],
  ['characters beyond ASCII are counted by their bytes', 4, '海'.repeat(100), 296],
])('the output of a stream without usage is estimated: %s', (_what, events, text, tokens) => {
  const facts = new ReplyFacts()
  const said: ReplyEvent = { kind: 'text-delta', choice: 0, text }
  facts.note(Array.from({ length: events }, () => said))
  expect(estimateOutput(facts)).toBe(tokens)
})

const picture = { kind: 'bytes', mediaType: 'image/png', base64: 'AAAA' } as const

test.each<[ReplyEvent, number]>([
  [{ kind: 'text-delta', choice: 0, text: 'a' }, 1],
  [{ kind: 'thinking-delta', choice: 0, text: 'a' }, 1],
  [{ kind: 'thinking-redact', choice: 0, data: 'a' }, 1],
  [{ kind: 'refusal-delta', choice: 0, text: 'a' }, 1],
  [{ kind: 'tool-call-start', choice: 0, call: 0, id: 'a', name: 'f' }, 1],
  [{ kind: 'tool-call-delta', choice: 0, call: 0, text: '{' }, 1],
  [{ kind: 'image-add', choice: 0, media: picture }, 1],
  [{ kind: 'hosted-tool-run', searches: 1, foundBytes: 0 }, 1],
  [{ kind: 'thinking-sign', choice: 0, text: '', signature: 's' }, 0],
  [{ kind: 'heartbeat' }, 0],
  [{ kind: 'reply-start' }, 0],
])('output is what a cut stream is charged for: %j counts as %d', (event, outputEvents) => {
  const facts = new ReplyFacts()
  facts.note([event])
  expect(facts.outputEvents).toBe(outputEvents)
  expect(facts.images).toBe(event.kind === 'image-add' ? 1 : 0)
})

const finished = (...parts: object[]) => ({ candidates: [{ content: { parts }, finishReason: 'STOP' }] })

test('a finish that a vendor gives before its last output is written once, behind everything, as the last one given', () => {
  const stream = translateStream(openReader(), openaiChat.openWriter(streamAsk, name), () => undefined)
  const call = { functionCall: { name: 'f', args: {} } }
  const events = [finished(), finished({ text: 'Oslo' }), finished({ text: ' has' }), finished(call)]
  const written = events.map((event) => stream.take(Buffer.from(`data: ${JSON.stringify(event)}\n\n`)) ?? '')
  const text = [...written, stream.closing()].map((bytes) => Buffer.from(bytes).toString()).join('')
  const chunks = text.split('\n\n').flatMap((event) => (event.startsWith('data: {') ? [event.slice(6)] : []))
  const choices = chunks.flatMap((chunk) => (JSON.parse(chunk) as { choices: { finish_reason: unknown }[] }).choices)
  expect(choices.map(({ finish_reason: reason }) => reason)).toEqual([null, null, null, null, 'tool_calls'])
  expect(choices).toMatchObject([{ delta: { content: 'Oslo' } }, { delta: { content: ' has' } }, {}, {}, {}])
})

test.each([
  ['chat', openaiChat.openWriter(streamAsk, name)],
  ['messages', anthropicChat.openWriter(messagesAskOf({ model: 'm' }), name)],
  ['responses', responsesChat.openWriter(responsesAskOf({ model: 'm', input: 'Hi', stream: true }), name)],
])('a stream that fails before it showed anything is not begun: %s', (_protocol, writer) => {
  const stream = translateStream(openReader(), writer, () => undefined)
  const failed = { candidates: [{ content: {}, finishReason: 'MALFORMED_FUNCTION_CALL' }], usageMetadata: {} }
  expect(stream.take(Buffer.from(`data: ${JSON.stringify(failed)}\n\n`))).toBeUndefined()
  expect(stream.facts.failure?.kind).toBe('upstream-failed')
})

test('a last usage of zeros does not replace the one before it', () => {
  const facts = new ReplyFacts()
  facts.note([{ kind: 'usage-count', usage: { input: 0, output: 0 } }])
  expect(facts.usage).toEqual({ input: 0, output: 0 })
  facts.note([{ kind: 'usage-count', usage: { input: 5, output: 2 } }])
  facts.note([{ kind: 'usage-count', usage: { input: 0, output: 0 } }])
  expect(facts.usage).toEqual({ input: 5, output: 2 })
})

test('zeros that a vendor counts in two steps are a whole usage', () => {
  const facts = new ReplyFacts()
  facts.note([{ kind: 'usage-count', usage: { input: 0 } }])
  facts.note([{ kind: 'usage-count', usage: { input: 0, output: 0 } }])
  expect(facts.usage).toEqual({ input: 0, output: 0 })
})
