import { expect, test } from 'bun:test'
import type { ReplyEvent } from '../../capabilities/conversation.ts'
import { estimateOutput } from './estimate.ts'
import { ReplyFacts } from './translate.ts'

test.each([
  ['a token an event is one, however long its word', 100, ' rivers', 100],
  ['several tokens an event are counted by their length', 4, ' sea'.repeat(100), 396],
  ['which of letters beyond ASCII is that of their bytes', 4, '海'.repeat(100), 296],
])('the output of a stream without usage is estimated: %s', (_what, events, text, tokens) => {
  const facts = new ReplyFacts()
  const said: ReplyEvent = { kind: 'text-delta', choice: 0, text }
  facts.note(Array.from({ length: events }, () => said))
  expect(estimateOutput(facts)).toBe(tokens)
})
