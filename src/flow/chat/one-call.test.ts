import { describe, expect, test } from 'bun:test'
import type { AssistantBlock, Conversation, ReplyEvent } from '../../capabilities/conversation.ts'
import type { ChatAdapter } from '../../vendors/vendor.ts'
import { readersFor } from './one-call.ts'

const call = (id: string) => ({ kind: 'tool-call', id, name: 'f', argumentsText: '{}' }) as const
const start = (at: number) => ({ kind: 'tool-call-start', choice: 0, call: at, id: `${at}`, name: 'f' }) as const
const text = { kind: 'text', text: 'Both.' } as const
const blocks: readonly AssistantBlock[] = [text, call('a'), call('b')]
const events: readonly ReplyEvent[] = [start(0), start(1), { kind: 'tool-call-delta', choice: 0, call: 1, text: '{}' }]

// A vendor that makes as many calls as it likes.
const chat: ChatAdapter = {
  protocol: 'gemini',
  choicesMax: 1,
  translate: () => ({ url: '', headers: {}, body: '' }),
  readAnswer: () => ({ choices: [{ blocks, finish: 'tool-calls' }], usage: undefined }),
  openReader: () => ({ read: () => events }),
}
const asked: Conversation = { system: [], turns: [], tools: [], hostedTools: [], stop: [] }
const nothing = new Uint8Array()

describe('a client that wants one tool call at a time', () => {
  const readers = readersFor(chat, { ...asked, parallelTools: false })

  test('the first tool call of a whole answer is kept', () => {
    expect(readers.readAnswer(nothing).choices[0]?.blocks).toEqual([text, call('a')])
  })

  test('the first tool call of a stream is kept, and the others become heartbeats', () => {
    expect(readers.openReader().read(nothing)).toEqual([start(0), { kind: 'heartbeat' }, { kind: 'heartbeat' }])
  })
})

test.each([asked, { ...asked, parallelTools: true }])('any other client gets all tool calls: %j', (conversation) => {
  const readers = readersFor(chat, conversation)
  expect(readers.readAnswer(nothing).choices[0]?.blocks).toEqual([...blocks])
  expect(readers.openReader().read(nothing)).toEqual([...events])
})
