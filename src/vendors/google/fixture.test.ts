import { expect, test } from 'bun:test'
import { restOf } from '../../../test/support/rest-of.ts'
import { EventSplitter } from '../../base/sse.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import type { ReplyEvent } from '../../capabilities/conversation.ts'
import { plainContext } from '../testing.ts'
import fixture from './fixtures/google.json' with { type: 'json' }
import { google } from './google.ts'

const { upstreamModel } = fixture
const context = { ...plainContext, baseUrl: 'https://vendor.example/base', upstreamModel }

test('the request has the recorded address and body', () => {
  const turns = [{ role: 'user', blocks: [{ kind: 'text', text: 'Hi' }] }] as const
  const conversation = { system: [], turns, tools: [], hostedTools: [], stop: [], outputTokensMax: 50 }
  // The only fields of the ask that the adapter reads.
  const call = google.chat?.translate({ protocol: 'openai', stream: true } as ChatAsk, conversation, context)
  expect(call?.url).toBe(context.baseUrl + fixture.sent.path)
  expect(JSON.parse(typeof call?.body === 'string' ? call.body : '')).toEqual(fixture.sent.body)
})

test('the recorded answer is read with its thinking and usage', () => {
  const reply = google.chat?.readAnswer(Buffer.from(JSON.stringify(fixture.answer)))
  expect(reply?.usage).toMatchObject(fixture.counts)
  expect(reply?.choices).toEqual([
    {
      blocks: [
        { kind: 'thinking', text: 'A greeting.' },
        { kind: 'text', text: fixture.text },
      ],
      finish: 'stop',
    },
  ])
})

test('the recorded stream is read byte by byte', () => {
  const reader = google.chat?.openReader()
  const splitter = new EventSplitter(1_000_000)
  const events: ReplyEvent[] = []
  for (const byte of Buffer.from(fixture.stream.join(''))) {
    for (const event of splitter.push(Uint8Array.of(byte))) events.push(...(reader?.read(event) ?? []))
  }
  expect(restOf(splitter)).toBe('')
  expect(events.map((event) => (event.kind === 'text-delta' ? event.text : '')).join('')).toBe(fixture.text)
  expect(events.findLast((event) => event.kind === 'usage-count')?.usage).toMatchObject(fixture.counts)
  expect(events.at(-1)).toEqual({ kind: 'choice-finish', choice: 0, finish: 'stop' })
})

test.each(fixture.refusals)(
  'a recorded refusal is explained: $status $body.error.message',
  ({ status, body, kind, retryable }) => {
    const verdict = google.explain({ status, retryAfterSeconds: undefined, body: JSON.stringify(body) }, context)
    expect<object>({ kind: verdict.error.kind, retryable: verdict.retryable }).toEqual({ kind, retryable })
  },
)
